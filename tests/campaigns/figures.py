"""Figures of a campaign: printed, and kept in a file, part by part, so that an interrupted campaign continues.

The files are `build/campaigns/<campaign>.json` (KAGZI_CAMPAIGN_RESULTS names another directory). A part that was
measured at this commit is not measured again, unless KAGZI_CAMPAIGN_AGAIN=1.
"""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from kagzi.cli.bench.load import percentile
from kagzi.cli.bench.machine import describe_versions

RESULTS = Path(os.environ.get("KAGZI_CAMPAIGN_RESULTS") or Path(__file__).resolve().parents[2] / "build" / "campaigns")


class Figures:
    """`known(part)` is what was measured before; `put` says and keeps."""

    def __init__(self, campaign: str) -> None:
        self.path = RESULTS / f"{campaign}.json"
        again = os.environ.get("KAGZI_CAMPAIGN_AGAIN")
        self._commit = describe_versions()["commit"]
        self._document: dict[str, Any] = {} if again or not self.path.exists() else json.loads(self.path.read_text())

    def known(self, part: str) -> dict[str, Any] | None:
        recorded = self._document.get("parts", {}).get(part)
        if recorded is not None and recorded["commit"] != self._commit:
            return None
        if recorded is not None:
            print(f"{part}: measured before, kept in {self.path}")
        return recorded

    def put(self, part: str, figures: dict[str, Any]) -> None:
        print(f"\n{part}")
        for name, value in figures.items():
            print(f"  {name:32} {_words(value)}")
        self._document["machine"] = {"cores": os.cpu_count(), "platform": platform.platform()}
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._document.setdefault("parts", {})[part] = {"at": at, "commit": self._commit, **figures}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self._document, indent=1) + "\n")


def spread(samples: list[float], unit: str = "ms") -> dict[str, float]:
    """Nearest ranks, as `kagzi bench` has them."""
    return {
        "samples": len(samples),
        f"p50_{unit}": round(percentile(samples, 50), 3),
        f"p99_{unit}": round(percentile(samples, 99), 3),
        f"max_{unit}": round(max(samples), 3),
    }


def number(variable: str, default: float) -> float:
    """A size or a length of a campaign, smaller in a smoke test: KAGZI_CAMPAIGN_<VARIABLE>."""
    return float(os.environ.get(f"KAGZI_CAMPAIGN_{variable}") or default)


def _words(value: object) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{name} {each}" for name, each in value.items())
    return str(value)
