"""`kagzi schedule preview` and `kagzi schedule backfill`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from ..console import put_json, put_table, say
from ..exits import Exit
from ..options import Server, duration, json_option, server_options
from .schedule_views import fire_row, fire_view, moment, rule, utc_text

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi


@click.command()
@click.argument("id", metavar="[ID]", required=False)
@click.option("--cron", metavar="EXPR", help="Show the times of this expression instead of a schedule.")
@click.option("--timezone", metavar="ZONE", help="Time zone of the expression, by its IANA name.  [default: UTC]")
@click.option(
    "--every", type=duration, metavar="DURATION", help="Show the times of this interval instead of a schedule."
)
@click.option("--count", type=click.IntRange(1, 1_000), default=10, show_default=True, help="Show this many times.")
@click.option("--after", type=moment, metavar="TIME", help="Show times after this one (RFC 3339).  [default: now]")
@json_option
@server_options
def preview(
    *,
    id: str | None,
    cron: str | None,
    timezone: str | None,
    every: timedelta | None,
    count: int,
    after: datetime | None,
    as_json: bool,
    server: Server,
) -> int:
    """Show the next times of a schedule, in its time zone and in UTC.

    Without ID, those of an expression (--cron) or of an interval (--every).
    """

    async def ask(client: Kagzi) -> tuple[str, Sequence[datetime]]:
        zone = timezone or "UTC" if id is None else (await client.schedules.get(id)).tz
        return zone, await client.schedules.preview(
            id, cron=cron, timezone=timezone, every=every, count=count, after=after
        )

    if id is None and cron is None and every is None:
        raise click.UsageError('give the ID of a schedule, --cron "0 6 * * *" or --every 5m.')
    if id is not None and (cron is not None or every is not None or timezone is not None):
        raise click.UsageError("--cron, --timezone and --every do not go with the ID of a schedule.")
    rule(cron, timezone, every)
    zone, times = server.ask(ask)
    views = [_view(at, zone) for at in times]
    if as_json:
        put_json(views)
    elif not views:
        say("No more times.")
    else:
        put_table([{"local": view["local"], "zone": f"{view['zone']} ({zone})", "utc": view["utc"]} for view in views])
    return Exit.OK


def _view(at: datetime, zone: str) -> dict[str, str]:
    from zoneinfo import ZoneInfo

    local = at.astimezone(ZoneInfo(zone))
    return {
        "local": local.strftime("%a %Y-%m-%d %H:%M:%S"),
        "zone": local.tzname() or zone,
        "utc": utc_text(at) or "",
    }


@click.command()
@click.argument("id", metavar="ID")
@click.option(
    "--from", "start", type=moment, required=True, metavar="TIME", help="First time to start a run for (RFC 3339)."
)
@click.option(
    "--to", "end", type=moment, required=True, metavar="TIME", help="End: only times before this one (RFC 3339)."
)
@json_option
@server_options
def backfill(*, id: str, start: datetime, end: datetime, as_json: bool, server: Server) -> int:
    """Start runs for past times of a schedule that have none. At most 1,000; repeating it starts no others."""
    fires = server.ask(lambda client: client.schedules.backfill(id, start, end))
    if as_json:
        put_json([fire_view(fire) for fire in fires])
    elif not fires:
        say("The schedule has no times there.")
    else:
        put_table([fire_row(fire) for fire in fires])
    return Exit.OK
