"""The result of a comparison: one JSON document with all figures and everything needed to judge them."""

import asyncio
import json
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.cores import cores_together
from bench.engines.base import Engine
from bench.workloads import Plan, Workload
from kagzi.cli.bench.machine import describe_database, describe_machine, describe_versions
from tests.support.postgres import PostgresAbsentError, temporary_postgres

FORMAT = 1

Document = dict[str, Any]


def new_document(
    engines: Sequence[type[Engine]], workloads: Sequence[Workload], plan: Plan, *, rounds: int, scale_rounds: int
) -> Document:
    """A document without results. Raises EngineError if an engine is not installed."""
    versions = describe_versions()
    return {
        "format": FORMAT,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        "commit": versions["commit"],
        "machine": {**describe_machine(), "kernel": platform.release(), "cores_together": cores_together()},
        "versions": versions,
        "database": _database(),
        "rounds": rounds,
        "scale_rounds": scale_rounds,
        "plan": asdict(plan),
        "engines": {
            engine.name: {
                "title": engine.title,
                "store": engine.store,
                "mode": engine.mode,
                "versions": engine.versions(),
                "cannot": dict(engine.cannot),
            }
            for engine in engines
        },
        "workloads": {
            workload.name: {
                "what": workload.what.format(**asdict(plan)),
                "unit": workload.unit,
                "higher_is_better": workload.higher_is_better,
                "has_ratio": workload.has_ratio,
            }
            for workload in workloads
        },
        "results": [],
    }


def write_document(document: Document, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    results = document["results"]
    head = json.dumps({**_without_results(document), "results": []}, indent=1)
    lines = ",\n".join("  " + json.dumps(result) for result in results)  # one line each, so that diffs are readable
    path.write_text(head.removesuffix('"results": []\n}') + f'"results": [\n{lines}\n ]\n}}\n')


def _without_results(document: Document) -> Document:
    return {name: value for name, value in document.items() if name != "results"}


def read_document(path: Path) -> Document:
    document: Document = json.loads(path.read_text())
    if document.get("format") != FORMAT:
        raise ValueError(f"{path} has format {document.get('format')!r}; this program reads {FORMAT}")
    return document


def _database() -> dict[str, Any]:
    """The durability settings of the PostgreSQL that engines use."""
    try:
        with temporary_postgres() as url:
            return asyncio.run(describe_database(url))[0]
    except PostgresAbsentError as absent:
        return {"kind": "postgresql", "absent": str(absent)}
