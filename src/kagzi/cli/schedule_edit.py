"""`kagzi schedule create` and `kagzi schedule update`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from .console import put, put_json
from .exits import Exit
from .inputs import read_input
from .options import Command, address_options, duration, json_option, key_value
from .schedule_views import moment, schedule_view, schedules_at

if TYPE_CHECKING:
    from ..sdk.schedule_options import ScheduleOptions
    from ..sdk.schedule_records import Schedule

_OVERLAPS = ["allow", "skip", "buffer_one", "cancel_other"]

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--cron", metavar="EXPR", help="5 fields, or 6 with seconds first."),
    click.option(
        "--timezone", metavar="ZONE", help="IANA name of the zone that the expression is about.  [default: UTC]"
    ),
    click.option(
        "--every", type=duration, metavar="DURATION", help="An interval instead of an expression, 1s or more."
    ),
    click.option("--catchup", type=click.IntRange(0), help="How many missed times become runs later.  [default: 100]"),
    click.option(
        "--catchup-window", type=duration, metavar="DURATION", help="How old a missed time may be.  [default: 24h]"
    ),
    click.option("--overlap", type=click.Choice(_OVERLAPS), help="While one of its runs is open.  [default: allow]"),
    click.option("--jitter", type=duration, metavar="DURATION", help="Start up to so much later."),
    click.option(
        "--label", "labels", multiple=True, type=key_value, metavar="KEY=VALUE", help="Of its runs; repeatable."
    ),
    click.option("--priority", type=int, help="Of its runs."),
    click.option("--version", metavar="VERSION", help="Of the workflow."),
    click.option("--start-at", type=moment, metavar="TIME", help="No time before this (RFC 3339)."),
    click.option("--end-at", type=moment, metavar="TIME", help="No time at or after this."),
)


def _schedule_options(command: Command) -> Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("id", metavar="ID")
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("input", nargs=-1, metavar="[INPUT]")
@_schedule_options
@click.option("--paused", is_flag=True, help="It starts no runs until it is resumed.")
@click.option("--upsert", is_flag=True, help="Change it if it is there, and leave it alone if it says the same.")
@json_option
@address_options
def create(
    *,
    id: str,
    workflow: str,
    input: Sequence[str],
    paused: bool,
    upsert: bool,
    as_json: bool,
    address: str | None,
    namespace: str | None,
    **said: Any,
) -> int:
    """Start runs of WORKFLOW by the clock. INPUT as with kagzi start."""
    from ..sdk.schedule_options import ScheduleOptions

    given = {name: value for name, value in said.items() if value is not None}
    given["labels"] = dict(given["labels"])
    if (data := read_input(input, sys.stdin.buffer.read)) is not None:
        given["input"] = json.loads(data)
    options = ScheduleOptions(id=id, workflow=workflow, paused=True if paused else None, **given)
    _put(asyncio.run(_create(options, address, namespace, upsert=upsert)), as_json=as_json)
    return Exit.OK


async def _create(options: ScheduleOptions, address: str | None, namespace: str | None, *, upsert: bool) -> Schedule:
    from ..system import SystemIds

    async with schedules_at(address, namespace) as schedules:
        request_id = SystemIds().token()
        return await (schedules.upsert if upsert else schedules.create)(options, request_id)


@click.command()
@click.argument("id", metavar="ID")
@click.argument("input", nargs=-1, metavar="[INPUT]")
@click.option("--workflow", metavar="WORKFLOW", help="What it starts.")
@_schedule_options
@click.option("--next-at", type=moment, metavar="TIME", help="Go on at or after this; times before it are skipped.")
@json_option
@address_options
def update(
    *, id: str, input: Sequence[str], as_json: bool, address: str | None, namespace: str | None, **said: Any
) -> int:
    """Change what is given; its times are computed from now on. INPUT as with kagzi start."""
    given = {name: value for name, value in said.items() if value is not None and value != ()}
    if "labels" in given:
        given["labels"] = dict(given["labels"])
    if (data := read_input(input, sys.stdin.buffer.read)) is not None:
        given["input"] = json.loads(data)
    if not given:
        raise click.UsageError("There is nothing to change. Give an option, or an input.")

    async def ask() -> Schedule:
        async with schedules_at(address, namespace) as schedules:
            return await schedules.update(id, **given)

    _put(asyncio.run(ask()), as_json=as_json)
    return Exit.OK


def _put(found: Schedule, *, as_json: bool) -> None:
    view = schedule_view(found)
    if as_json:
        put_json(view)
    else:
        put(f"{found.id}  next at {view['next_at'] or 'no time'}{'  (paused)' if found.paused else ''}")
