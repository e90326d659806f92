"""`kagzi stats`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ..console import put_table, say
from ..options import DURATION, Server
from ..output import Output, server_command
from ..times import short_utc_text, span_text
from ..views import cells, view

if TYPE_CHECKING:
    from ...sdk.client.operations.stats import StatsMinute

_COUNTS = ("started", "completed", "failed", "cancelled")


@click.command()
@click.option("--workflow", default="", metavar="WORKFLOW", help="Only this workflow.")
@click.option("--since", type=DURATION, help="Start of the period: this long ago.  [default: 1h]")
@click.option("--until", type=DURATION, help="End of the period: this long ago.  [default: now]")
@click.option(
    "--step",
    type=click.Choice(["1m", "5m", "1h", "1d"]),
    default=None,
    help="Show one line per step of this length and workflow: the ten busiest workflows, and the others as one.",
)
@click.option("--by-minute", is_flag=True, help="Show one line per minute instead of one per workflow.")
@server_command
def stats(*, by_minute: bool, step: str | None, server: Server, **options: Any) -> Output:
    """Show how many runs started, ended and are open, and how long they took.

    The figures are up to 5 seconds old. Percentiles of a minute are exact, those of longer times are known within a
    factor of two.
    """
    record = server.ask(lambda client: client.stats(step=step or "", **options))

    def show() -> None:
        if not record.minutes:
            say("No run was started or ended in this period.")
        else:
            by_step = by_minute or step is not None
            put_table([_row(minute) for minute in record.minutes] if by_step else _totals(record.minutes))
        counts = [f"{count}{'+' if count >= 10_000 else ''} {status}" for status, count in record.open.items() if count]
        say(f"Open now: {', '.join(counts) or 'no runs'}")

    minutes = [_view(minute) for minute in record.minutes]
    return Output({"minutes": minutes, **view(record, "open", "open_is_capped", "step")}, show)


def _view(minute: StatsMinute) -> dict[str, Any]:
    percentiles = {"p50_ms": _ms(minute.p50), "p95_ms": _ms(minute.p95)}
    return view(minute, "minute", "workflow", *_COUNTS, moment=short_utc_text) | percentiles | {"took": minute.took}


def _row(minute: StatsMinute) -> dict[str, str]:
    return {**cells(minute, "minute", "workflow", *_COUNTS), "p50": _span(minute.p50), "p95": _span(minute.p95)}


def _totals(minutes: tuple[StatsMinute, ...]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for workflow in sorted({minute.workflow for minute in minutes}):
        own = [minute for minute in minutes if minute.workflow == workflow]
        totals = {name: str(sum(getattr(minute, name) for minute in own)) for name in _COUNTS}
        rows.append({"workflow": workflow, **totals, "p50": _about(own, 50), "p95": _about(own, 95)})
    return rows


def _about(minutes: list[StatsMinute], percent: int) -> str:
    """Percentiles cannot be combined, but counts by duration can."""
    from ...core.stats import percentile_us

    took = [sum(counts) for counts in zip(*(minute.took for minute in minutes if minute.took), strict=True)]
    microseconds = percentile_us(took, percent)
    return "-" if microseconds is None else f"~{span_text(timedelta(microseconds=microseconds))}"


def _ms(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds() * 1_000


def _span(span: timedelta | None) -> str:
    return "-" if span is None else span_text(span)
