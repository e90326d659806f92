"""`kagzi schedule preview` and `kagzi schedule backfill`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from ..console import put_table, say
from ..options import DURATION, TIME, Server
from ..output import Output, server_command
from ..times import short_utc_text
from .schedule_views import fire_row, fire_view

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi


@click.command()
@click.argument("id", metavar="[ID]", required=False)
@click.option("--cron", metavar="EXPR", help="Show the times of this expression instead of a schedule.")
@click.option("--timezone", metavar="ZONE", help="Time zone of the expression: an IANA name.  [default: UTC]")
@click.option("--every", type=DURATION, help="Show the times of this interval instead of a schedule.")
@click.option(
    "--count", type=click.IntRange(1, 1_000), default=10, show_default=True, metavar="N", help="Show this many times."
)
@click.option("--after", type=TIME, help="Show times after this one (RFC 3339).  [default: now]")
@server_command
def preview(
    *,
    id: str | None,
    cron: str | None,
    timezone: str | None,
    every: timedelta | None,
    count: int,
    after: datetime | None,
    server: Server,
) -> Output:
    """Show the next times of a schedule, in its time zone and in UTC.

    Without ID, show those of an expression (--cron) or of an interval (--every).
    """

    async def ask(client: Kagzi) -> tuple[str, Sequence[datetime]]:
        zone = timezone or "UTC" if id is None else (await client.schedules.get(id)).tz
        return zone, await client.schedules.preview(
            id, cron=cron, timezone=timezone, every=every, count=count, after=after
        )

    if id is None and cron is None and every is None:
        raise click.UsageError('give the ID of a schedule, --cron "0 6 * * *" or --every 5m.')
    if id is not None and (cron is not None or every is not None or timezone is not None):
        raise click.UsageError("--cron, --timezone and --every cannot be combined with the ID of a schedule.")
    check_times(cron, timezone, every)
    zone, times = server.ask(ask)
    views = [_view(at, zone) for at in times]
    rows = [{**view, "zone": f"{view['zone']} ({zone})"} for view in views]
    return Output(views, lambda: put_table(rows) if rows else say("No more times."))


def check_times(cron: str | None, timezone: str | None, every: timedelta | None) -> None:
    """Raises UsageError for options that cannot be combined."""
    if cron is not None and every is not None:
        raise click.UsageError("--cron and --every cannot be combined. Give exactly one.")
    if every is not None and timezone is not None:
        raise click.UsageError("--timezone needs --cron: an interval has no time zone.")


def _view(at: datetime, zone: str) -> dict[str, str]:
    from ...core.schedules.local_time import local_time

    local, name = local_time(at, zone)
    return {"local": local, "zone": name, "utc": short_utc_text(at)}


@click.command()
@click.argument("id", metavar="ID")
@click.option("--from", "start", type=TIME, required=True, help="First time to start a run for (RFC 3339).")
@click.option("--to", "end", type=TIME, required=True, help="End: only times before this one (RFC 3339).")
@server_command
def backfill(*, id: str, start: datetime, end: datetime, server: Server) -> Output:
    """Start runs for past times of a schedule that have none. At most 1,000. You can safely repeat it."""
    fires = server.ask(lambda client: client.schedules.backfill(id, start, end))
    rows = [fire_row(fire) for fire in fires]
    empty = "The schedule has no times in this range."
    return Output([fire_view(fire) for fire in fires], lambda: put_table(rows) if rows else say(empty))
