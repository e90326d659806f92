"""`kagzi stats`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ..console import put_json, put_table, say
from ..exits import Exit
from ..options import Server, duration, json_option, server_options

if TYPE_CHECKING:
    from datetime import datetime

    from ...sdk.client.operations.stats import Stats, StatsMinute


@click.command()
@click.option("--workflow", default="", metavar="NAME", help="Only this workflow.")
@click.option("--since", type=duration, metavar="DURATION", help="Start this long ago.  [default: 1h]")
@click.option("--until", type=duration, metavar="DURATION", help="End this long ago.  [default: now]")
@click.option("--by-minute", is_flag=True, help="Show one line per minute instead of one per workflow.")
@json_option
@server_options
def stats(
    *,
    workflow: str,
    since: timedelta | None,
    until: timedelta | None,
    by_minute: bool,
    as_json: bool,
    server: Server,
) -> int:
    """Show how many runs were started and ended, how long they took, and how many are open."""
    found = server.ask(lambda client: client.stats(workflow=workflow, since=since, until=until))
    if as_json:
        put_json(_view(found))
        return Exit.OK
    if not found.minutes:
        say("No run was started or ended in this time.")
    else:
        put_table([_row(each) for each in found.minutes] if by_minute else _totals(found.minutes))
    open_runs = ", ".join(
        f"{count}{'+' if count >= 10_000 else ''} {status}" for status, count in found.open.items() if count
    )
    say(f"Open now: {open_runs or 'no runs'}")
    return Exit.OK


def _view(found: Stats) -> dict[str, Any]:
    return {
        "minutes": [
            {
                "minute": _moment(each.minute),
                "workflow": each.workflow,
                "started": each.started,
                "completed": each.completed,
                "failed": each.failed,
                "cancelled": each.cancelled,
                "p50_ms": _ms(each.p50),
                "p95_ms": _ms(each.p95),
            }
            for each in found.minutes
        ],
        "open": dict(found.open),
        "open_is_capped": found.open_is_capped,
    }


def _row(each: StatsMinute) -> dict[str, str]:
    from ..times import local_text

    return {
        "minute": local_text(each.minute),
        "workflow": each.workflow,
        "started": str(each.started),
        "completed": str(each.completed),
        "failed": str(each.failed),
        "cancelled": str(each.cancelled),
        "p50": _span(each.p50),
        "p95": _span(each.p95),
    }


def _totals(minutes: tuple[StatsMinute, ...]) -> list[dict[str, str]]:
    """Percentiles cannot be added up: the worst minute is shown."""
    rows: list[dict[str, str]] = []
    for workflow in sorted({each.workflow for each in minutes}):
        mine = [each for each in minutes if each.workflow == workflow]
        spans = [each.p95 for each in mine if each.p95 is not None]
        rows.append(
            {
                "workflow": workflow,
                "started": str(sum(each.started for each in mine)),
                "completed": str(sum(each.completed for each in mine)),
                "failed": str(sum(each.failed for each in mine)),
                "cancelled": str(sum(each.cancelled for each in mine)),
                "p95 of the slowest minute": _span(max(spans, default=None)),
            }
        )
    return rows


def _moment(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _ms(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds() * 1_000


def _span(span: timedelta | None) -> str:
    from ..times import span_text

    return "-" if span is None else span_text(span)
