"""`kagzi schedule create` and `kagzi schedule update`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..console import put
from ..options import DURATION, PAIR, TIME, Kebab, Server, changes, options
from ..output import Output, server_command
from ..runs.inputs import read_input, text_option
from ..times import local_text
from .schedule_times import check_times
from .schedule_views import schedule_view

if TYPE_CHECKING:
    from ...sdk.client.operations.schedule_records import Schedule

_OVERLAPS = ["allow", "skip", "buffer_one", "cancel_other"]

_schedule_options = options(
    click.option("--cron", metavar="EXPR", help="Cron expression: 5 fields, or 6 with seconds first."),
    click.option("--timezone", metavar="ZONE", help="Time zone of the cron expression: an IANA name.  [default: UTC]"),
    click.option("--every", type=DURATION, help="Interval instead of a cron expression, at least 1s."),
    click.option(
        "--catchup",
        type=click.IntRange(0),
        metavar="N",
        help="Catch up with at most this many missed times.  [default: 100]",
    ),
    click.option("--catchup-window", type=DURATION, help="Catch up with times no older than this.  [default: 24h]"),
    click.option(
        "--overlap", type=Kebab(_OVERLAPS), help="What to do while one of its runs is open.  [default: allow]"
    ),
    click.option("--jitter", type=DURATION, help="Delay each start by a random time up to this."),
    click.option("--label", "labels", multiple=True, type=PAIR, help="Label its runs. Repeatable."),
    click.option("--priority", type=int, metavar="N", help="Priority of its runs.  [default: 0]"),
    click.option("--version", metavar="VERSION", help="Version of the workflow.  [default: its default version]"),
    click.option("--start-at", type=TIME, help="Skip times before this one (RFC 3339)."),
    click.option("--end-at", type=TIME, help="Skip times at or after this one (RFC 3339)."),
)


@click.command()
@click.argument("id", metavar="ID")
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("input", nargs=-1, metavar="[INPUT]...")
@text_option("INPUT")
@_schedule_options
@click.option("--paused", is_flag=True, help="Create it paused.")
@click.option("--upsert", is_flag=True, help="Update the schedule if it exists.")
@server_command
def create(*, paused: bool, upsert: bool, server: Server, **options: Any) -> Output:
    """Create a schedule that starts runs of WORKFLOW. Write INPUT as for kagzi start."""
    from ...sdk.client.operations.schedule_options import ScheduleOptions
    from ...system import SystemIds

    settings = _settings(**options)
    if "cron" not in settings and "every" not in settings:
        raise click.UsageError("give exactly one of --cron and --every.")
    schedule = ScheduleOptions(paused=True if paused else None, **settings)
    request_id = SystemIds().token()
    if upsert:
        return _output(server.ask(lambda client: client.schedules.upsert(schedule, request_id)))
    return _output(server.ask(lambda client: client.schedules.create(schedule, request_id)))


@click.command()
@click.argument("id", metavar="ID")
@click.argument("input", nargs=-1, metavar="[INPUT]...")
@text_option("INPUT")
@click.option("--workflow", metavar="WORKFLOW", help="Start runs of this workflow instead.")
@_schedule_options
@click.option("--next-at", type=TIME, help="Skip times before this one (RFC 3339), once.")
@server_command
def update(*, id: str, server: Server, **options: Any) -> Output:
    """Change a schedule. Settings that you do not name stay as they are. Write INPUT as for kagzi start."""
    settings = _settings(**options)
    if not settings:
        raise click.UsageError("nothing to change. Give an option or an INPUT.")
    return _output(server.ask(lambda client: client.schedules.update(id, **settings)))


def _settings(*, input: Sequence[str], as_text: bool, **options: Any) -> dict[str, Any]:
    """The options that were set, as keywords of the client. Raises UsageError."""
    check_times(options["cron"], options["timezone"], options["every"])
    settings = changes(options)
    if "labels" in settings:
        settings["labels"] = dict(settings["labels"])
    if (data := read_input(input, sys.stdin.buffer.read, as_text=as_text)) is not None:
        settings["input"] = json.loads(data)
    return settings


def _output(schedule: Schedule) -> Output:
    next_time = f"next at {local_text(schedule.next_at)}" if schedule.next_at else "no more times"
    text = f"{schedule.id}  {'paused' if schedule.paused else next_time}"
    return Output(schedule_view(schedule), lambda: put(text))
