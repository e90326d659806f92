"""`kagzi schedule`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...core.text.plurals import counted
from ..console import put, put_fields, put_json, put_list, say
from ..exits import Exit
from ..groups import Listing
from ..options import Server, json_option, kebab, list_options, server_options
from ..times import local_text
from .schedule_edit import create, update
from .schedule_times import backfill, preview
from .schedule_views import fire_row, fire_view, schedule_view, when_text

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.operations.schedule_records import Schedule


@click.group(cls=Listing)
def schedule() -> None:
    """Create and manage schedules, which start runs at set times."""


for _command in (create, update, backfill, preview):
    schedule.add_command(_command)


@schedule.command("list")
@click.option("--workflow", metavar="WORKFLOW", help="Only schedules of this workflow.")
@list_options("schedule", limit=100)
@server_options
def list_schedules(*, workflow: str | None, limit: int, jsonl: bool, as_json: bool, server: Server) -> int:
    """List schedules, newest first."""
    found = server.ask_all(lambda client: client.schedules.list(workflow=workflow, limit=limit))
    create_one = 'No schedules. Create one: kagzi schedule create ID WORKFLOW --cron "0 6 * * *"'
    empty = "No schedules match." if workflow else create_one
    put_list(found, schedule_view, _row, jsonl=jsonl, as_json=as_json, empty=empty)
    return Exit.OK


def _row(found: Schedule) -> dict[str, str]:
    paused = click.style("paused", fg="magenta") if found.paused else ""
    return {
        "schedule": found.id,
        "workflow": found.workflow,
        "when": when_text(found),
        "next": paused or local_text(found.next_at),
        "last": local_text(found.last_fired_at),
    }


@schedule.command()
@click.argument("id", metavar="ID")
@json_option
@server_options
def get(*, id: str, as_json: bool, server: Server) -> int:
    """Show one schedule."""
    return _put(server.ask(lambda client: client.schedules.get(id)), as_json=as_json)


@schedule.command()
@click.argument("id", metavar="ID")
@click.option("--reason", default="", help="Reason, shown with the schedule.")
@json_option
@server_options
def pause(*, id: str, reason: str, as_json: bool, server: Server) -> int:
    """Pause a schedule. Times that pass while it is paused are not caught up with."""
    return _put(server.ask(lambda client: client.schedules.pause(id, reason)), as_json=as_json)


@schedule.command()
@click.argument("id", metavar="ID")
@json_option
@server_options
def resume(*, id: str, as_json: bool, server: Server) -> int:
    """Resume a paused schedule at its next time."""
    return _put(server.ask(lambda client: client.schedules.resume(id)), as_json=as_json)


@schedule.command()
@click.argument("id", metavar="ID")
@json_option
@server_options
def trigger(*, id: str, as_json: bool, server: Server) -> int:
    """Start a run of a schedule now, even if it is paused. Prints the run id."""
    run = server.ask(lambda client: client.schedules.trigger(id))
    if as_json:
        put_json({"run_id": run.id, "workflow_id": run.workflow_id, "url": run.url or None})
    else:
        put(run.id)
    return Exit.OK


@schedule.command()
@click.argument("id", metavar="ID")
@list_options("time", limit=50)
@server_options
def runs(*, id: str, limit: int, jsonl: bool, as_json: bool, server: Server) -> int:
    """Show the past times of a schedule, newest first. With the runs, and what was skipped and why."""
    fires = server.ask_all(lambda client: client.schedules.runs(id, limit=limit))
    empty = f"No runs yet. Start one now: kagzi schedule trigger {id}"
    put_list(fires, fire_view, fire_row, jsonl=jsonl, as_json=as_json, empty=empty)
    return Exit.OK


@schedule.command()
@click.argument("id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
@server_options
def delete(*, id: str, yes: bool, as_json: bool, server: Server) -> int:
    """Delete a schedule. Its runs stay."""
    if not yes:
        click.confirm(f"Delete schedule {id}?", abort=True, err=True)

    async def ask(client: Kagzi) -> bool:
        await client.schedules.get(id)  # for the exit code: deleting a missing one is not an error
        return await client.schedules.delete(id)

    deleted = server.ask(ask)
    if as_json:
        put_json({"schedule": id, "deleted": deleted})
    else:
        say(f"schedule {id} is deleted; its runs stay")
    return Exit.OK


def _put(found: Schedule, *, as_json: bool) -> int:
    view = schedule_view(found)
    if as_json:
        put_json(view)
        return Exit.OK
    shown = {
        "schedule": found.id,
        "workflow": found.workflow,
        "when": when_text(found),
        "next": local_text(found.next_at),
        "last": local_text(found.last_fired_at),
        "paused": (found.paused_reason or "yes") if found.paused else "",
        "overlap": kebab(found.overlap),
        "catch-up": f"{counted(found.max_catchup, 'time')}, not older than {view['catchup_window']}",
        "jitter": "" if view["jitter"] == "0s" else view["jitter"],
        "from": local_text(found.start_at),
        "until": local_text(found.end_at),
        "timeout": view["timeout"] or "",
        "version": found.version,
        "labels": " ".join(f"{key}={value}" for key, value in sorted(found.labels.items())),
    }
    put_fields(shown)
    return Exit.OK
