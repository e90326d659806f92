"""`kagzi schedule`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...core.text.commands import quoted
from ...core.text.plurals import counted
from ..console import put_fields, say
from ..groups import Listing
from ..options import Server, kebab
from ..output import Output, Rows, list_command, server_command
from ..runs.pages import put_run
from ..times import local_text
from ..views import cells
from .schedule_edit import create, update
from .schedule_times import backfill, preview
from .schedule_views import fire_row, fire_view, schedule_view, when_text

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.operations.schedule_records import Schedule, ScheduleFire


@click.group(cls=Listing)
def schedule() -> None:
    """Create and manage schedules, which start runs at set times."""


for _command in (create, update, backfill, preview):
    schedule.add_command(_command)


@schedule.command("list")
@click.option("--workflow", metavar="WORKFLOW", help="Only schedules of this workflow.")
@list_command("schedule", limit=100)
def list_schedules(*, workflow: str | None, limit: int, server: Server) -> Rows[Schedule]:
    """List schedules, newest first."""
    schedules = server.ask_all(lambda client: client.schedules.list(workflow=workflow, limit=limit))
    create_one = 'No schedules. Create one: kagzi schedule create ID WORKFLOW --cron "0 6 * * *"'
    return Rows(schedules, schedule_view, _row, "No schedules match." if workflow else create_one)


def _row(schedule: Schedule) -> dict[str, str]:
    paused = click.style("paused", fg="magenta") if schedule.paused else ""
    return {
        **cells(schedule, "schedule=id", "workflow"),
        "when": when_text(schedule),
        "next": paused or local_text(schedule.next_at),
        "last": local_text(schedule.last_fired_at),
        "owner": schedule.owner,
    }


@schedule.command()
@click.argument("id", metavar="ID")
@server_command
def get(*, id: str, server: Server) -> Output:
    """Show one schedule."""
    return _output(server.ask(lambda client: client.schedules.get(id)))


@schedule.command()
@click.argument("id", metavar="ID")
@click.option("--reason", default="", help="Reason, kept with the schedule.")
@server_command
def pause(*, id: str, reason: str, server: Server) -> Output:
    """Pause a schedule. Times that pass while it is paused are not caught up with."""
    return _output(server.ask(lambda client: client.schedules.pause(id, reason)))


@schedule.command()
@click.argument("id", metavar="ID")
@server_command
def resume(*, id: str, server: Server) -> Output:
    """Resume a paused schedule at its next time."""
    return _output(server.ask(lambda client: client.schedules.resume(id)))


@schedule.command()
@click.argument("id", metavar="ID")
@server_command
def trigger(*, id: str, server: Server) -> Output:
    """Start a run of a schedule now, even if it is paused. Prints the run id."""
    run = server.ask(lambda client: client.schedules.trigger(id))
    return Output({"run_id": run.id, "workflow_id": run.workflow_id, "url": run.url or None}, lambda: put_run(run))


@schedule.command()
@click.argument("id", metavar="ID")
@list_command("time", limit=50)
def runs(*, id: str, limit: int, server: Server) -> Rows[ScheduleFire]:
    """Show the past times of a schedule, newest first. Each has its run, or the reason why it was skipped."""
    fires = server.ask_all(lambda client: client.schedules.runs(id, limit=limit))
    return Rows(fires, fire_view, fire_row, f"No runs yet. Start one now: kagzi schedule trigger {quoted(id)}")


@schedule.command()
@click.argument("id", metavar="ID")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@server_command
def delete(*, id: str, yes: bool, server: Server) -> Output:
    """Delete a schedule. Its runs stay."""
    if not yes:
        click.confirm(f"Delete schedule {id}?", abort=True, err=True)

    async def ask(client: Kagzi) -> bool:
        await client.schedules.get(id)  # sets the exit code: deleting a missing one is not an error
        return await client.schedules.delete(id)

    deleted = server.ask(ask)
    return Output({"schedule": id, "deleted": deleted}, lambda: say(f"schedule {id} is deleted; its runs stay"))


def _output(schedule: Schedule) -> Output:
    view = schedule_view(schedule)
    fields = {
        **cells(schedule, "schedule=id", "workflow"),
        "when": when_text(schedule),
        **cells(schedule, "next=next_at", "last=last_fired_at"),
        "paused": (schedule.paused_reason or "yes") if schedule.paused else "",
        "overlap": kebab(schedule.overlap),
        "catch-up": f"{counted(schedule.max_catchup, 'time')}, not older than {view['catchup_window']}",
        "jitter": "" if view["jitter"] == "0s" else view["jitter"],
        **cells(schedule, "from=start_at", "until=end_at"),
        "timeout": view["timeout"],
        **cells(schedule, "version", "labels", "owner"),
    }
    return Output(view, lambda: put_fields(fields))
