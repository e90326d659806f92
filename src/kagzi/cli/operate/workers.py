"""`kagzi workers`."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ...core.text.plurals import counted
from ..console import put_fields, put_json, put_list, say
from ..exits import Exit
from ..groups import Listing
from ..options import Server, duration, json_option, list_options, same_server, server_options
from ..times import age_text, local_text, utc_text

if TYPE_CHECKING:
    from datetime import datetime

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
@list_options("worker", limit=100)
@server_options
def list_workers(
    *,
    status: str | None,
    workflow: str | None,
    limit: int,
    jsonl: bool,
    as_json: bool,
    server: Server,
) -> int:
    """List workers, most recently registered first."""
    from ...core.times import to_datetime
    from ...system import SystemClock

    found = server.ask_all(lambda client: client.workers.list(status=status, workflow=workflow, limit=limit))
    now = to_datetime(SystemClock().now())
    empty = "No workers match." if status or workflow else "No workers. Start one: kagzi worker MODULE"
    put_list(found, _view, lambda worker: _row(worker, now), jsonl=jsonl, as_json=as_json, empty=empty)
    return Exit.OK


@workers.command()
@click.argument("worker", metavar="WORKER")
@json_option
@server_options
def get(*, worker: str, as_json: bool, server: Server) -> int:
    """Show one worker."""
    found = server.ask(lambda client: client.workers.get(worker))
    view = _view(found)
    if as_json:
        put_json(view)
        return Exit.OK
    put_fields(
        {
            "worker": found.id,
            "status": _styled(found.status),
            "host": found.hostname,
            "pid": str(found.pid or ""),
            "build": found.build_id,
            "SDK": found.sdk_version,
            "serves": _served(found),
            "slots": f"{found.active} of {found.max_concurrent} in use",
            "ended": f"{found.completed} completed, {found.failed} failed",
            "labels": " ".join(f"{key}={value}" for key, value in sorted(found.labels.items())),
            "registered": local_text(found.registered_at),
            "last seen": local_text(found.last_seen_at),
        }
    )
    return Exit.OK


@workers.command()
@click.argument("worker", metavar="[WORKER]", required=False)
@list_options("event", limit=100)
@server_options
def events(*, worker: str | None, limit: int, jsonl: bool, as_json: bool, server: Server) -> int:
    """Show the events of a worker, or of all workers, newest first."""
    found = server.ask_all(lambda client: client.workers.events(worker, limit=limit))
    put_list(found, _event_view, _event_row, jsonl=jsonl, as_json=as_json, empty="No events.")
    return Exit.OK


@workers.command()
@click.argument("worker", metavar="WORKER")
@click.option("--wait", is_flag=True, help="Wait until the worker has left.")
@click.option(
    "--timeout",
    type=duration,
    default="5m",
    metavar="DURATION",
    show_default=True,
    help="Wait at most this long with --wait.",
)
@json_option
@server_options
def drain(*, worker: str, wait: bool, timeout: timedelta, as_json: bool, server: Server) -> int:
    """Drain a worker: it takes no more work and leaves.

    It has its shutdown_grace to finish its runs; other workers take over the rest at once.
    """
    found = server.ask(lambda client: _drain(client, worker, timeout.total_seconds() if wait else 0.0))
    if as_json:
        put_json(_view(found))
    elif found.status == "offline":
        say(f"{worker} has left")
    else:
        say(
            f"{worker} is {found.status} and has {counted(found.active, 'run')} left. Show it: kagzi workers get {worker}{same_server()}"
        )
    if wait and found.status != "offline":
        raise TimeoutError(f"{worker} has not left within {timeout.total_seconds():g} s")
    return Exit.OK


async def _drain(client: Kagzi, worker_id: str, wait_s: float) -> WorkerInfo:
    """The worker as it was seen last: when it had left, or when the wait was over."""
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


# --- views ----------------------------------------------------------------------------------------------------------------


def _view(worker: WorkerInfo) -> dict[str, Any]:
    return {
        "worker_id": worker.id,
        "status": str(worker.status),
        "hostname": worker.hostname,
        "pid": worker.pid,
        "build_id": worker.build_id,
        "sdk_version": worker.sdk_version,
        "workflows": [{"workflow": workflow, "version": version} for workflow, version in worker.workflows],
        "labels": dict(worker.labels),
        "max_concurrent": worker.max_concurrent,
        "active": worker.active,
        "completed": worker.completed,
        "failed": worker.failed,
        "registered_at": utc_text(worker.registered_at),
        "last_seen_at": utc_text(worker.last_seen_at),
    }


def _row(worker: WorkerInfo, now: datetime) -> dict[str, str]:
    return {
        "worker": worker.id,
        "status": _styled(worker.status),
        "host": f"{worker.hostname}{f' ({worker.pid})' if worker.pid else ''}",
        "slots": f"{worker.active}/{worker.max_concurrent}",
        "serves": _served(worker),
        "build": worker.build_id,
        "last seen": age_text(worker.last_seen_at, now),
    }


def _event_view(event: WorkerEvent) -> dict[str, str]:
    return {"worker_id": event.worker_id, "kind": str(event.kind), "at": utc_text(event.at), "detail": event.detail}


def _event_row(event: WorkerEvent) -> dict[str, str]:
    return {
        "at": local_text(event.at),
        "worker": event.worker_id,
        "event": _styled(str(event.kind)),
        "detail": event.detail.partition("\n")[0],
    }


def _served(worker: WorkerInfo) -> str:
    return ", ".join(f"{workflow}@{version}" for workflow, version in worker.workflows)


def _styled(word: str) -> str:
    return click.style(word, fg=_COLOURS.get(word))
