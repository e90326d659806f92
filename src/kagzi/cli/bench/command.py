"""`kagzi bench`."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..console import put, put_table, say
from ..exits import Exit, Stop
from ..options import DURATION
from ..processes import fast_runner
from .plan import WORKLOADS, Measurement, Plan

if TYPE_CHECKING:
    from .progress import Bar


@click.command()
@click.option(
    "--db",
    "url",
    envvar="KAGZI_BENCH_DB",
    metavar="URL",
    help="Database to use: postgresql://... or sqlite:///FILE.  [default: a temporary SQLite file]",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(WORKLOADS),
    help="Run only this workload. Repeatable.  [default: all]",
)
@click.option(
    "--duration",
    "span",
    type=DURATION,
    default="10s",
    show_default=True,
    help="Length of each throughput measurement.",
)
@click.option(
    "--warm-up",
    type=DURATION,
    default="2s",
    show_default=True,
    help="Time before each measurement.",
)
@click.option(
    "--in-flight",
    multiple=True,
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Runs at a time in W1 and W1r. Repeatable.  [default: 100, 500]",
)
@click.option("--quick", is_flag=True, help="Measure a tenth of everything, to see that it works.")
@click.option("--markdown", is_flag=True, help="Print a block of Markdown to share, with machine and versions.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write all results to a file, with raw samples.",
)
def bench(
    *,
    url: str | None,
    only: Sequence[str],
    span: timedelta,
    warm_up: timedelta,
    in_flight: Sequence[int],
    quick: bool,
    markdown: bool,
    json_file: Path | None,
) -> int:
    """Measure the throughput, latency and CPU use of Kagzi on this machine.

    Server, worker and client are separate processes, and everything is durable. With --db, the runs stay in that
    database, in a namespace bench-...; use a separate database.

    \b
    W1   runs of 10 sequential steps, 100 and 500 at a time; steps/s
    W1r  runs of 3-17 steps, out of phase; steps/s
    W1b  runs of 10 steps whose bodies take 20 ms, 500 at a time; steps/s
    W2   one run at a time, 100 sequential steps; ms/step
    W3   idle: start a 1-step run and await its result; ms
    W4   starts/s, 50 in flight, no worker
    W5   one run with 100 concurrent steps; ms
    W6   10,000 sleeping runs due at once: how late the last one continues; ms
    W7   a run of 10,000 steps whose worker is killed: its replay; s
    W8   at rest with 100,000 sleeping runs: CPU of all processes
    """
    from .progress import Bar
    from .share import details, shared

    check_writable(json_file)
    plan = make_plan(only, span, warm_up, in_flight, quick=quick)
    bar = Bar(("start", "warm-up", *plan.workloads))
    try:
        with fast_runner() as runner:
            document = runner.run(_until_stopped(url, plan, bar))
    finally:
        bar.close()
    if markdown:
        put(shared(document))
    else:
        put_results(document["results"])
        for line in details(document["results"]):
            put(line)
    if json_file is not None:
        json_file.write_text(write_json(document))
        say(f"written: {json_file}")
    return Exit.OK


async def _until_stopped(url: str | None, plan: Plan, bar: "Bar") -> dict[str, Any]:
    """SIGTERM ends a bench like Ctrl-C, together with all its processes."""
    import asyncio
    import signal

    from .load import WrongResultError
    from .session import bench_store

    measuring = asyncio.ensure_future(bench_store(url, plan, bar))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, measuring.cancel)
    try:
        return await measuring
    except asyncio.CancelledError:
        if measuring.cancelled():
            raise Stop(Exit.INTERRUPTED, "the bench was stopped") from None
        raise
    except WrongResultError as error:
        raise Stop(Exit.FAILED, f"{error}: no figure can be trusted", "please report it as a bug of Kagzi") from error


def check_writable(file: Path | None) -> None:
    """Checks before minutes of measuring, not after them."""
    if file is not None and not file.resolve().parent.is_dir():
        raise Stop(Exit.FAILED, f"--json {file}: the folder {file.resolve().parent} does not exist", "create it first")


def make_plan(
    only: Sequence[str], span: timedelta, warm_up: timedelta, in_flight: Sequence[int], *, quick: bool
) -> Plan:
    scale = 0.1 if quick else 1.0
    plan = Plan(
        workloads=tuple(name for name in WORKLOADS if not only or name in only),
        seconds=span.total_seconds() * scale,
        warm_up_seconds=warm_up.total_seconds() * scale,
        in_flight=tuple(in_flight) or Plan().in_flight,
    )
    if not quick:
        return plan
    return msgspec.structs.replace(
        plan,
        bodies_in_flight=50,
        latency_runs=2,
        pickups=20,
        fan_out_runs=2,
        timers=100,
        lone_timers=2,
        timer_margin_seconds=0.5,
        replayed_steps=100,
        sleepers=100,
        idle_seconds=0.5,
    )


def write_json(document: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def put_results(results: Sequence[Measurement]) -> None:
    """The table for people."""
    rows: list[dict[str, str]] = []
    for result in results:
        cpu = result.cpu_seconds_per_1000
        rows.append(
            {
                "workload": result.workload,
                "what": result.what,
                "value": f"{result.value:,.0f}" if result.higher_is_better else f"{result.value:.2f}",
                "unit": result.unit,
                "p99": "" if result.p99 is None else f"{result.p99:.2f}",
                "cpu s per 1000": f"{sum(cpu.values()):.3f}" if cpu else "",
                "of it": " ".join(f"{name} {seconds:.3f}" for name, seconds in cpu.items()),
            }
        )
    put_table(rows)
