"""`kagzi workers`."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ...core.text.commands import quoted
from ...core.text.plurals import counted
from ..console import put_fields, say
from ..exits import Exit, Stop
from ..groups import Listing
from ..options import DURATION, Server, same_server
from ..output import Output, Rows, list_command, server_command
from ..times import age_text, now
from ..views import cells, view

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.operations.workers import WorkerEvent, WorkerInfo

_COLOURS = {"online": "green", "draining": "yellow", "offline": "bright_black", "lost": "red", "trouble": "red"}
_POLL_S = 0.2


@click.group(cls=Listing)
def workers() -> None:
    """List workers, show what happened to them, and drain them."""


@workers.command("list")
@click.option("--status", type=click.Choice(["online", "draining", "offline"]), help="Only workers with this status.")
@click.option("--workflow", metavar="WORKFLOW", help="Only workers that serve this workflow.")
@list_command("worker", limit=100)
def list_workers(*, status: str | None, workflow: str | None, limit: int, server: Server) -> Rows[WorkerInfo]:
    """List workers, most recently registered first."""
    records = server.ask_all(lambda client: client.workers.list(status=status, workflow=workflow, limit=limit))
    empty = "No workers match." if status or workflow else "No workers. Start one: kagzi worker MODULE"
    return Rows(records, _view, _row, empty)


@workers.command()
@click.argument("worker", metavar="WORKER")
@server_command
def get(*, worker: str, server: Server) -> Output:
    """Show one worker."""
    record = server.ask(lambda client: client.workers.get(worker))
    fields = {
        "worker": record.id,
        "status": _styled(record.status),
        "host": record.hostname,
        "pid": str(record.pid or ""),
        **cells(record, "build=build_id", "SDK=sdk_version"),
        "serves": _served(record),
        "slots": f"{record.active} of {record.max_concurrent} in use",
        "ended": f"{record.completed} completed, {record.failed} failed",
        **cells(record, "labels", "registered=registered_at", "last_seen=last_seen_at"),
    }
    return Output(_view(record), lambda: put_fields(fields))


@workers.command()
@click.argument("worker", metavar="[WORKER]", required=False)
@list_command("event", limit=100)
def events(*, worker: str | None, limit: int, server: Server) -> Rows[WorkerEvent]:
    """Show the events of a worker, or of all workers, newest first."""
    records = server.ask_all(lambda client: client.workers.events(worker, limit=limit))
    return Rows(records, _event_view, _event_row, "No events.")


@workers.command()
@click.argument("worker", metavar="WORKER")
@click.option("--wait", is_flag=True, help="Wait until the worker has exited.")
@click.option("--timeout", type=DURATION, default="5m", show_default=True, help="With --wait: wait at most this long.")
@server_command
def drain(*, worker: str, wait: bool, timeout: timedelta, server: Server) -> Output:
    """Drain a worker: it accepts no more work and exits.

    It has its shutdown_grace to finish its runs; other workers take over the rest at once.
    """
    record = server.ask(lambda client: _drain(client, worker, timeout.total_seconds() if wait else 0.0))
    exited = record.status == "offline"
    show_it = f"Show it: kagzi workers get {quoted(worker)}{same_server()}"
    open_runs = f"{worker} is {record.status} and has {counted(record.active, 'run')} left. {show_it}"
    late = Stop(Exit.TIMED_OUT, f"{worker} has not exited within {timeout.total_seconds():g} s")
    return Output(
        _view(record),
        lambda: say(f"{worker} has exited" if exited else open_runs),
        stop=late if wait and not exited else None,
    )


async def _drain(client: Kagzi, worker_id: str, wait_s: float) -> WorkerInfo:
    """Returns the worker as last seen: when it had exited, or when the wait timed out."""
    worker = await client.workers.drain(worker_id)
    if wait_s:
        try:
            async with asyncio.timeout(wait_s):
                while worker.status != "offline":
                    await asyncio.sleep(_POLL_S)
                    worker = await client.workers.get(worker_id)
        except TimeoutError:
            pass
    return worker


# --- views ------------------------------------------------------------------------------------------------------------


def _view(worker: WorkerInfo) -> dict[str, Any]:
    counts = ("max_concurrent", "active", "completed", "failed", "registered_at", "last_seen_at")
    return {
        **view(worker, "worker_id=id", "status", "hostname", "pid", "build_id", "sdk_version"),
        "workflows": [{"workflow": workflow, "version": version} for workflow, version in worker.workflows],
        **view(worker, "labels", *counts),
    }


def _row(worker: WorkerInfo) -> dict[str, str]:
    return {
        "worker": worker.id,
        "status": _styled(worker.status),
        "host": f"{worker.hostname}{f' ({worker.pid})' if worker.pid else ''}",
        "slots": f"{worker.active}/{worker.max_concurrent}",
        "serves": _served(worker),
        "build": worker.build_id,
        "last seen": age_text(worker.last_seen_at, now()),
    }


def _event_view(event: WorkerEvent) -> dict[str, Any]:
    return view(event, "worker_id", "kind", "at", "detail")


def _event_row(event: WorkerEvent) -> dict[str, str]:
    kind = {"event": _styled(event.kind)}
    return {**cells(event, "at", "worker=worker_id"), **kind, "detail": event.detail.partition("\n")[0]}


def _served(worker: WorkerInfo) -> str:
    return ", ".join(f"{workflow}@{version}" for workflow, version in worker.workflows)


def _styled(word: str) -> str:
    return click.style(word, fg=_COLOURS.get(word))
