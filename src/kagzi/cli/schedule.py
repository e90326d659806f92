"""`kagzi schedule`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from .console import put, put_fields, put_json, put_list, say
from .exits import Exit
from .options import address_options, json_option
from .schedule_edit import create, update
from .schedule_times import backfill, preview
from .schedule_views import fire_row, fire_view, schedule_view, schedules_at, utc_text, when_text

if TYPE_CHECKING:
    from ..sdk.run import Run
    from ..sdk.schedule_records import Schedule, ScheduleFire


@click.group(invoke_without_command=True)
@click.pass_context
def schedule(context: click.Context) -> int:
    """Look after schedules: runs started by the clock."""
    if context.invoked_subcommand is not None:
        return Exit.OK
    code: int = context.invoke(list_schedules)
    return code


for _command in (create, update, backfill, preview):
    schedule.add_command(_command)


@schedule.command("list")
@click.option("--workflow", metavar="WORKFLOW", help="Only those that start it.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, show_default=True)
@click.option("--jsonl", is_flag=True, help="Print JSON, one schedule a line.")
@json_option
@address_options
def list_schedules(
    *, workflow: str | None, limit: int, jsonl: bool, as_json: bool, address: str | None, namespace: str | None
) -> int:
    """List schedules, newest first."""
    found = asyncio.run(_list(workflow, limit, address, namespace))
    put_list(
        found,
        schedule_view,
        _row,
        jsonl=jsonl,
        as_json=as_json,
        empty='No schedules. Make one: kagzi schedule create ID WORKFLOW --cron "0 6 * * *"',
    )
    return Exit.OK


async def _list(workflow: str | None, limit: int, address: str | None, namespace: str | None) -> list[Schedule]:
    async with schedules_at(address, namespace) as schedules:
        return [each async for each in schedules.list(workflow=workflow, limit=limit)]


def _row(found: Schedule) -> dict[str, str]:
    paused = click.style("paused", fg="magenta") if found.paused else ""
    return {
        "schedule": found.id,
        "workflow": found.workflow,
        "when": when_text(found),
        "next": paused or utc_text(found.next_at) or "",
        "last": utc_text(found.last_fired_at) or "",
    }


@schedule.command()
@click.argument("id", metavar="ID")
@json_option
@address_options
def get(*, id: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Show one schedule."""

    async def ask() -> Schedule:
        async with schedules_at(address, namespace) as schedules:
            return await schedules.get(id)

    _put(asyncio.run(ask()), as_json=as_json)
    return Exit.OK


@schedule.command()
@click.argument("id", metavar="ID")
@click.option("--reason", default="", help="Why, for those who look at it.")
@json_option
@address_options
def pause(*, id: str, reason: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Start no more runs until it is resumed. Times that pass meanwhile are not caught up with."""

    async def ask() -> Schedule:
        async with schedules_at(address, namespace) as schedules:
            return await schedules.pause(id, reason)

    _put(asyncio.run(ask()), as_json=as_json)
    return Exit.OK


@schedule.command()
@click.argument("id", metavar="ID")
@json_option
@address_options
def resume(*, id: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Let a paused schedule go on with its next time."""

    async def ask() -> Schedule:
        async with schedules_at(address, namespace) as schedules:
            return await schedules.resume(id)

    _put(asyncio.run(ask()), as_json=as_json)
    return Exit.OK


@schedule.command()
@click.argument("id", metavar="ID")
@json_option
@address_options
def trigger(*, id: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Start a run now, beside its times; also of a paused schedule. Prints the run id."""

    async def ask() -> Run[object]:
        async with schedules_at(address, namespace) as schedules:
            return await schedules.trigger(id)

    run = asyncio.run(ask())
    if as_json:
        put_json({"run_id": run.id, "workflow_id": run.workflow_id, "url": run.url or None})
    else:
        put(run.id)
    return Exit.OK


@schedule.command()
@click.argument("id", metavar="ID")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--jsonl", is_flag=True, help="Print JSON, one time a line.")
@json_option
@address_options
def runs(*, id: str, limit: int, jsonl: bool, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Show what became of its times, newest first: runs, and what was skipped, with the reason."""

    async def ask() -> list[ScheduleFire]:
        async with schedules_at(address, namespace) as schedules:
            return [fire async for fire in schedules.runs(id, limit=limit)]

    fires = asyncio.run(ask())
    empty = f"None of its times has come yet. Start a run now: kagzi schedule trigger {id}"
    put_list(fires, fire_view, fire_row, jsonl=jsonl, as_json=as_json, empty=empty)
    return Exit.OK


@schedule.command()
@click.argument("id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@address_options
def delete(*, id: str, yes: bool, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Forget a schedule, and what became of its times. Its runs stay."""
    if not yes:
        click.confirm(f"Delete schedule {id}?", abort=True, err=True)

    async def ask() -> bool:
        async with schedules_at(address, namespace) as schedules:
            await schedules.get(id)  # for the sake of the exit code: deleting again is no error
            return await schedules.delete(id)

    deleted = asyncio.run(ask())
    if as_json:
        put_json({"schedule": id, "deleted": deleted})
    else:
        say(f"schedule {id} is deleted; its runs stay")
    return Exit.OK


def _put(found: Schedule, *, as_json: bool) -> None:
    view = schedule_view(found)
    if as_json:
        put_json(view)
        return
    shown = {
        "schedule": found.id,
        "workflow": found.workflow,
        "when": when_text(found),
        "next": view["next_at"] or "",
        "last": view["last_fired_at"] or "",
        "paused": (found.paused_reason or "yes") if found.paused else "",
        "overlap": found.overlap,
        "catch-up": f"{found.max_catchup} times, not older than {view['catchup_window']}",
        "jitter": "" if view["jitter"] == "0s" else view["jitter"],
        "from": view["start_at"] or "",
        "until": view["end_at"] or "",
        "timeout": view["timeout"] or "",
        "version": found.version,
        "labels": " ".join(f"{key}={value}" for key, value in sorted(found.labels.items())),
    }
    put_fields(shown)
