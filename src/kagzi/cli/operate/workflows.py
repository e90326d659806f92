"""`kagzi workflows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..console import put_fields, put_json, put_list, say
from ..exits import Exit
from ..groups import Listing
from ..options import NONE, Kebab, Limit, Server, json_option, kebab, list_options, same_server, server_options
from ..times import local_text, utc_text

if TYPE_CHECKING:
    from ...sdk.client.operations.workflow_types import QueueInfo, WorkflowTypeInfo


@click.group(cls=Listing)
def workflows() -> None:
    """Show workflow types and their queues; limit, pause and resume them."""


@workflows.command("list")
@list_options("type")
@server_options
def list_types(*, jsonl: bool, as_json: bool, server: Server) -> int:
    """List workflow types with their open runs and limits."""
    found = server.ask_all(lambda client: client.workflow_types.list())
    put_list(
        found,
        _view,
        _row,
        jsonl=jsonl,
        as_json=as_json,
        empty="No workflow types. Workers register them; start one: kagzi worker MODULE",
    )
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@json_option
@server_options
def get(*, workflow: str, as_json: bool, server: Server) -> int:
    """Show one workflow type."""
    found = server.ask(lambda client: client.workflow_types.get(workflow))
    put_json(_view(found)) if as_json else put_fields(_fields(found))
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@click.option(
    "--max-running",
    type=Limit(int),
    metavar="N",
    help="Limit how many of its runs run at once; none removes the limit.",
)
@click.option("--per-key", type=Limit(int), metavar="N", help="The same limit for each concurrency key.")
@click.option(
    "--rate", type=Limit(float), metavar="N", help="Limit how many runs begin per second; 0.1 is one every ten seconds."
)
@click.option("--per-key-rate", type=Limit(float), metavar="N", help="The same rate for each concurrency key.")
@click.option(
    "--when-full",
    type=Kebab(["queue", "reject", "cancel-oldest"]),
    help="What to do with a start when the limit is reached.",
)
@json_option
@server_options
def limit(*, workflow: str, as_json: bool, server: Server, **given: Any) -> int:
    """Limit how many runs of a type run at once and how fast they begin. Limits that you do not name stay as they are."""
    names = {
        "max_running": "max_running",
        "per_key": "max_running_per_key",
        "rate": "starts_per_second",
        "per_key_rate": "starts_per_second_per_key",
        "when_full": "when_full",
    }
    changes: dict[str, Any] = {
        field: None if given[name] == NONE else given[name] for name, field in names.items() if given[name] is not None
    }
    if not changes:
        raise click.UsageError("name a limit: --max-running, --per-key, --rate, --per-key-rate or --when-full.")
    found = server.ask(lambda client: client.workflow_types.update(workflow, **changes))
    put_json(_view(found)) if as_json else put_fields(_fields(found))
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@json_option
@server_options
def pause(*, workflow: str, as_json: bool, server: Server) -> int:
    """Pause a workflow type: its runs wait, new ones included. Runs that are running now go on."""
    found = server.ask(lambda client: client.workflow_types.pause(workflow))
    put_json(_view(found)) if as_json else say(
        f"{workflow} is paused; its runs wait. Resume it: kagzi workflows resume {workflow}{same_server()}"
    )
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@json_option
@server_options
def resume(*, workflow: str, as_json: bool, server: Server) -> int:
    """Resume a paused workflow type."""
    found = server.ask(lambda client: client.workflow_types.resume(workflow))
    put_json(_view(found)) if as_json else say(f"{workflow} is resumed")
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="[WORKFLOW]", required=False)
@list_options("queue")
@server_options
def depth(*, workflow: str | None, jsonl: bool, as_json: bool, server: Server) -> int:
    """Show how many runs are waiting for a worker, since when, and why."""
    found = server.ask(lambda client: client.workflow_types.queue_depth(workflow))
    put_list(found, _queue_view, _queue_row, jsonl=jsonl, as_json=as_json, empty="No runs are waiting.")
    return Exit.OK


def _view(found: WorkflowTypeInfo) -> dict[str, Any]:
    return {
        "workflow": found.workflow,
        "paused": found.paused,
        "max_running": found.max_running,
        "max_running_per_key": found.max_running_per_key,
        "starts_per_second": found.starts_per_second,
        "starts_per_second_per_key": found.starts_per_second_per_key,
        "when_full": found.when_full,
        "versions": list(found.versions),
        "default_version": found.default_version,
        "open_runs": found.open_runs,
    }


def _row(found: WorkflowTypeInfo) -> dict[str, str]:
    return {
        "workflow": found.workflow,
        "state": "paused" if found.paused else "active",
        "open runs": str(found.open_runs),
        "max running": _number(found.max_running),
        "max per key": _number(found.max_running_per_key),
        "max rate": _number(found.starts_per_second),
        "max rate per key": _number(found.starts_per_second_per_key),
        "when full": kebab(found.when_full),
        "versions": ", ".join(found.versions),
    }


def _fields(found: WorkflowTypeInfo) -> dict[str, str]:
    return {
        "workflow": found.workflow,
        "state": "paused" if found.paused else "active",
        "max running": _number(found.max_running),
        "max running per key": _number(found.max_running_per_key),
        "max rate": _rate(found.starts_per_second),
        "max rate per key": _rate(found.starts_per_second_per_key),
        "when full": kebab(found.when_full),
        "versions": ", ".join(found.versions),
        "default version": found.default_version or "",
        "open runs": str(found.open_runs),
    }


def _queue_view(found: QueueInfo) -> dict[str, Any]:
    since = found.oldest_waiting_since
    return {
        "workflow": found.workflow,
        "version": found.version,
        "waiting": found.waiting,
        "oldest_waiting_since": None if since is None else utc_text(since),
        "workers": found.workers,
        "free_slots": found.free_slots,
        "held_back": found.held_back,
    }


def _queue_row(found: QueueInfo) -> dict[str, str]:
    since = found.oldest_waiting_since
    return {
        "workflow": found.workflow,
        "version": found.version or "any",
        "waiting": str(found.waiting),
        "oldest since": local_text(since),
        "workers": str(found.workers),
        "free slots": str(found.free_slots),
        "held back": found.held_back or "",
    }


def _rate(limit: float | None) -> str:
    return _number(limit) if limit is None else f"{_number(limit)} per second"


def _number(limit: float | None) -> str:
    return "-" if limit is None else f"{limit:g}"
