"""Measure both stores and write `bench/results/<date>-<commit>.json`.

    make bench                                  everything (minutes; leave the machine alone meanwhile)
    make bench ARGS="--quick"                   does it run at all?
    make bench ARGS="--only W1 --store sqlite"

The workloads are those of `kagzi bench` (src/kagzi/cli/workloads). PostgreSQL is a private one, durable, on the same machine;
KAGZI_TEST_POSTGRES_URL names another.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from kagzi.cli.bench import make_plan, put_results, write_json
from kagzi.cli.loops import fast_runner
from kagzi.cli.options import duration
from kagzi.cli.workloads.plan import WORKLOADS, Plan
from kagzi.cli.workloads.session import bench_store
from tests.support.postgres import temporary_postgres

RESULTS = Path(__file__).parent / "results"
STORES = ("postgresql", "sqlite")


@click.command()
@click.option("--store", "stores", multiple=True, type=click.Choice(STORES), help="May be repeated. Default: both.")
@click.option("--only", multiple=True, type=click.Choice(WORKLOADS), help="May be repeated. Default: all.")
@click.option("--duration", "span", type=duration, default="10s", show_default=True)
@click.option("--warm-up", type=duration, default="2s", show_default=True)
@click.option("--in-flight", multiple=True, type=click.IntRange(1, 10_000), help="For W1 and W1r.  [default: 100, 500]")
@click.option("--quick", is_flag=True, help="A tenth of everything.")
@click.option("--output", type=click.Path(path_type=Path), help="Instead of bench/results/<date>-<commit>.json.")
def main(
    *,
    stores: Sequence[str],
    only: Sequence[str],
    span: timedelta,
    warm_up: timedelta,
    in_flight: Sequence[int],
    quick: bool,
    output: Path | None,
) -> None:
    plan = make_plan(only, span, warm_up, in_flight, quick=quick)
    documents: dict[str, Any] = {}
    for store in stores or STORES:
        click.echo(f"--- {store}")
        documents[store] = _measure(store, plan)
        put_results(documents[store]["results"])
    path = output or _path(documents)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(write_json(documents))
    click.echo(f"written: {path}")


def _measure(store: str, plan: Plan) -> dict[str, Any]:
    if store == "sqlite":
        with fast_runner() as runner:
            return runner.run(bench_store(None, plan, click.echo))
    with temporary_postgres() as url, fast_runner() as runner:
        return runner.run(bench_store(url, plan, click.echo))


def _path(documents: dict[str, Any]) -> Path:
    commit = next(iter(documents.values()))["versions"]["commit"] or "no-commit"
    return RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{commit}.json"
