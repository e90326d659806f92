"""`kagzi schedule preview` and `kagzi schedule backfill`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from .console import put_json, put_table, say
from .exits import Exit
from .options import address_options, duration, json_option
from .schedule_views import fire_row, fire_view, moment, schedules_at, utc_text

if TYPE_CHECKING:
    from ..sdk.schedule_records import ScheduleFire


@click.command()
@click.argument("id", metavar="[ID]", required=False)
@click.option("--cron", metavar="EXPR", help="Instead of a schedule: an expression to look at.")
@click.option("--timezone", metavar="ZONE", help="IANA name of its zone.  [default: UTC]")
@click.option("--every", type=duration, metavar="DURATION", help="Instead of a schedule: an interval to look at.")
@click.option("--count", type=click.IntRange(1, 1_000), default=10, show_default=True)
@click.option("--after", type=moment, metavar="TIME", help="Times after this (RFC 3339).  [default: now]")
@json_option
@address_options
def preview(
    *,
    id: str | None,
    cron: str | None,
    timezone: str | None,
    every: timedelta | None,
    count: int,
    after: datetime | None,
    as_json: bool,
    address: str | None,
    namespace: str | None,
) -> int:
    """Show the next times of a schedule, or of an expression: by the clock of its zone, and in UTC."""

    async def ask() -> tuple[str, Sequence[datetime]]:
        async with schedules_at(address, namespace) as schedules:
            zone = timezone or "UTC" if id is None else (await schedules.get(id)).tz
            return zone, await schedules.preview(
                id, cron=cron, timezone=timezone, every=every, count=count, after=after
            )

    if id is None and cron is None and every is None:
        raise click.UsageError('Name a schedule, or give --cron "0 6 * * *" or --every 5m.')
    zone, times = asyncio.run(ask())
    views = [_view(at, zone) for at in times]
    if as_json:
        put_json(views)
    elif not views:
        say("No time lies ahead.")
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
@click.option("--from", "start", type=moment, required=True, metavar="TIME", help="From this time on (RFC 3339).")
@click.option("--to", "end", type=moment, required=True, metavar="TIME", help="And before this.")
@json_option
@address_options
def backfill(
    *, id: str, start: datetime, end: datetime, as_json: bool, address: str | None, namespace: str | None
) -> int:
    """Start runs for past times that have none, at most 1,000; repeating it starts no others."""

    async def ask() -> tuple[ScheduleFire, ...]:
        async with schedules_at(address, namespace) as schedules:
            return await schedules.backfill(id, start, end)

    fires = asyncio.run(ask())
    if as_json:
        put_json([fire_view(fire) for fire in fires])
    elif not fires:
        say("None of its times lies there.")
    else:
        put_table([fire_row(fire) for fire in fires])
    return Exit.OK
