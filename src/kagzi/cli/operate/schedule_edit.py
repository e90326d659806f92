"""`kagzi schedule create` and `kagzi schedule update`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..console import put, put_json
from ..exits import Exit
from ..options import Command, Kebab, Server, duration, json_option, key_value, server_options
from ..runs.inputs import read_input, text_option
from ..times import local_text
from .schedule_views import moment, rule, schedule_view

if TYPE_CHECKING:
    from ...sdk.client.operations.schedule_records import Schedule

_OVERLAPS = ["allow", "skip", "buffer_one", "cancel_other"]

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--cron", metavar="EXPR", help="Cron expression: 5 fields, or 6 with seconds first."),
    click.option(
        "--timezone", metavar="ZONE", help="Time zone of the cron expression, by its IANA name.  [default: UTC]"
    ),
    click.option(
        "--every", type=duration, metavar="DURATION", help="Interval instead of a cron expression, at least 1s."
    ),
    click.option(
        "--catchup", type=click.IntRange(0), help="Catch up with at most this many missed times.  [default: 100]"
    ),
    click.option(
        "--catchup-window",
        type=duration,
        metavar="DURATION",
        help="Catch up with times no older than this.  [default: 24h]",
    ),
    click.option(
        "--overlap", type=Kebab(_OVERLAPS), help="What to do while one of its runs is open.  [default: allow]"
    ),
    click.option("--jitter", type=duration, metavar="DURATION", help="Delay each start by a random time up to this."),
    click.option(
        "--label", "labels", multiple=True, type=key_value, metavar="KEY=VALUE", help="Label its runs. Repeatable."
    ),
    click.option("--priority", type=int, help="Priority of its runs.  [default: 0]"),
    click.option("--version", metavar="VERSION", help="Version of the workflow.  [default: its default version]"),
    click.option("--start-at", type=moment, metavar="TIME", help="Skip times before this one (RFC 3339)."),
    click.option("--end-at", type=moment, metavar="TIME", help="Skip times at or after this one (RFC 3339)."),
)


def _schedule_options(command: Command) -> Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("id", metavar="ID")
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("input", nargs=-1, metavar="[INPUT]...")
@text_option("INPUT")
@_schedule_options
@click.option("--paused", is_flag=True, help="Create it paused.")
@click.option("--upsert", is_flag=True, help="Update the schedule if it exists.")
@json_option
@server_options
def create(
    *,
    id: str,
    workflow: str,
    input: Sequence[str],
    as_text: bool,
    paused: bool,
    upsert: bool,
    as_json: bool,
    server: Server,
    **options: Any,
) -> int:
    """Create a schedule that starts runs of WORKFLOW. INPUT is given as with kagzi start."""
    from ...sdk.client.operations.schedule_options import ScheduleOptions
    from ...system import SystemIds

    rule(options["cron"], options["timezone"], options["every"])
    if options["cron"] is None and options["every"] is None:
        raise click.UsageError("give exactly one of --cron and --every.")
    given = {name: value for name, value in options.items() if value is not None}
    given["labels"] = dict(given["labels"])
    if (data := read_input(input, sys.stdin.buffer.read, as_text=as_text)) is not None:
        given["input"] = json.loads(data)
    schedule = ScheduleOptions(id=id, workflow=workflow, paused=True if paused else None, **given)
    request_id = SystemIds().token()
    if upsert:
        return _put(server.ask(lambda client: client.schedules.upsert(schedule, request_id)), as_json=as_json)
    return _put(server.ask(lambda client: client.schedules.create(schedule, request_id)), as_json=as_json)


@click.command()
@click.argument("id", metavar="ID")
@click.argument("input", nargs=-1, metavar="[INPUT]...")
@text_option("INPUT")
@click.option("--workflow", metavar="WORKFLOW", help="Start runs of this workflow instead.")
@_schedule_options
@click.option("--next-at", type=moment, metavar="TIME", help="Skip times before this one (RFC 3339), once.")
@json_option
@server_options
def update(
    *,
    id: str,
    input: Sequence[str],
    as_text: bool,
    as_json: bool,
    server: Server,
    **options: Any,
) -> int:
    """Change a schedule. What you do not name stays as it is. INPUT is given as with kagzi start."""
    rule(options["cron"], options["timezone"], options["every"])
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    if "labels" in given:
        given["labels"] = dict(given["labels"])
    if (data := read_input(input, sys.stdin.buffer.read, as_text=as_text)) is not None:
        given["input"] = json.loads(data)
    if not given:
        raise click.UsageError("nothing to change. Give an option or an INPUT.")
    return _put(server.ask(lambda client: client.schedules.update(id, **given)), as_json=as_json)


def _put(found: Schedule, *, as_json: bool) -> int:
    view = schedule_view(found)
    if as_json:
        put_json(view)
    else:
        next_time = f"next at {local_text(found.next_at)}" if found.next_at else "no more times"
        put(f"{found.id}  {'paused' if found.paused else next_time}")
    return Exit.OK
