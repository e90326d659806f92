"""Kagzi from another checkout: shows the effect of a change in one comparison."""

import subprocess
from pathlib import Path

from bench.engines.base import Engine
from bench.engines.kagzi import KagziEmbedded, KagziPostgres, KagziSqlite
from bench.launch import EngineError

BEFORE = "before-"
"""Prefix of the name of the set-up that it is compared with."""


def engines_before(checkout: Path) -> tuple[type[Engine], ...]:
    """Raises EngineError if the checkout has no environment: `make .venv/.installed-dev` creates it."""
    python = checkout.absolute() / ".venv" / "bin" / "python"
    if not python.exists():
        raise EngineError(f"{python} does not exist; run `make .venv/.installed-dev` in {checkout}")
    commit = _commit(checkout)

    def before(engine: type[KagziPostgres | KagziSqlite | KagziEmbedded]) -> type[Engine]:
        def versions(_cls: type[Engine]) -> dict[str, str]:
            return {**engine.versions(), "commit": commit}

        members = {
            "name": BEFORE + engine.name,
            "title": f"{engine.title}, {commit}",
            "python": str(python),
            "versions": classmethod(versions),
        }
        return type(f"{engine.__name__}Before", (engine,), members)

    return before(KagziPostgres), before(KagziSqlite), before(KagziEmbedded)


def _commit(checkout: Path) -> str:
    answer = subprocess.run(
        ["git", "-C", checkout, "rev-parse", "--short", "HEAD"], check=False, capture_output=True, text=True
    )
    if answer.returncode:
        raise EngineError(f"{checkout} is not a checkout of Kagzi: {answer.stderr.strip()}")
    return answer.stdout.strip()
