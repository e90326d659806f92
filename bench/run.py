"""Measures both stores and writes `bench/results/<date>-<commit>.json`.

    make bench                                  everything (minutes; leave the machine alone until it is done)
    make bench ARGS="--quick"                   does it run at all?
    make bench ARGS="--only W1 --store sqlite"

The workloads are those of `kagzi bench` (src/kagzi/cli/bench). PostgreSQL is a private one, durable, on the same
machine; KAGZI_TEST_POSTGRES_URL names another.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tests.support.postgres import temporary_postgres

RESULTS = Path(__file__).parent / "results"
STORES = ("postgresql", "sqlite")


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--store", "stores", multiple=True, type=click.Choice(STORES), help="May be repeated. Default: both.")
@click.option("--output", type=click.Path(path_type=Path), help="Instead of bench/results/<date>-<commit>.json.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(*, stores: Sequence[str], output: Path | None, options: Sequence[str]) -> None:
    """Measure Kagzi on both stores. OPTIONS are those of `kagzi bench`: --only W1, --duration 10s, --quick ..."""
    documents: dict[str, Any] = {}
    for store in stores or STORES:
        click.echo(f"--- {store}")
        documents[store] = _measure(store, options)
    path = output or _path(documents)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(documents, indent=1) + "\n")
    click.echo(f"written: {path}")


def _measure(store: str, options: Sequence[str]) -> dict[str, Any]:
    if store == "sqlite":
        return _bench({}, options)
    with temporary_postgres() as url:
        return _bench({"KAGZI_BENCH_DB": url}, options)


def _bench(environment: dict[str, str], options: Sequence[str]) -> dict[str, Any]:
    """A process of its own for each store, so that no client inherits the warmth of another."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "result.json"
        command = [sys.executable, "-m", "kagzi", "bench", *options, "--json", str(file)]
        if subprocess.run(command, env={**os.environ, **environment}, check=False).returncode:
            raise click.ClickException("kagzi bench failed")
        return json.loads(file.read_text())


def _path(documents: dict[str, Any]) -> Path:
    commit = next(iter(documents.values()))["versions"]["commit"] or "no-commit"
    return RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{commit}.json"
