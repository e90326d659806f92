"""`kagzi workflows`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .console import put_fields, put_json, put_list, say
from .exits import Exit
from .options import NONE, Limit, address_options, json_option

if TYPE_CHECKING:
    from ..sdk.workflow_types import QueueInfo, WorkflowTypeInfo, WorkflowTypes

Answer = TypeVar("Answer")


@click.group()
def workflows() -> None:
    """Look after workflow types as queues: limits, rates, pause and resume, how many runs wait."""


@workflows.command("list")
@click.option("--jsonl", is_flag=True, help="Print JSON, one type a line.")
@json_option
@address_options
def list_types(*, jsonl: bool, as_json: bool, address: str | None, namespace: str | None) -> int:
    """List workflow types with their limits and open runs."""

    async def gather(types: WorkflowTypes) -> list[WorkflowTypeInfo]:
        return [each async for each in types.list()]

    found = asyncio.run(_ask(gather, address, namespace))
    put_list(
        found,
        _view,
        _row,
        jsonl=jsonl,
        as_json=as_json,
        empty="No workflow types: workers bring them. Start one: kagzi worker MODULE",
    )
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@json_option
@address_options
def show(*, workflow: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Show one workflow type."""
    found = asyncio.run(_ask(lambda types: types.get(workflow), address, namespace))
    put_json(_view(found)) if as_json else put_fields(_fields(found))
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@click.option("--max-running", type=Limit(int), metavar="N", help="Runs of it that run at once; none: any number.")
@click.option("--per-key", type=Limit(int), metavar="N", help="The same for runs with one concurrency key.")
@click.option("--rate", type=Limit(float), metavar="N", help="Runs that begin per second; 0.1 is one in ten seconds.")
@click.option("--per-key-rate", type=Limit(float), metavar="N", help="The same for runs with one concurrency key.")
@click.option(
    "--when-full",
    type=click.Choice(["queue", "reject", "cancel-oldest"]),
    help="What becomes of a start when the limit is reached.",
)
@json_option
@address_options
def limit(*, workflow: str, as_json: bool, address: str | None, namespace: str | None, **given: Any) -> int:
    """Limit how many runs of a type run, and how quickly they begin. What is not named stays."""
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
        raise click.UsageError("Name a limit: --max-running, --per-key, --rate, --per-key-rate or --when-full.")
    found = asyncio.run(_ask(lambda types: types.update(workflow, **changes), address, namespace))
    put_json(_view(found)) if as_json else put_fields(_fields(found))
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@json_option
@address_options
def pause(*, workflow: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Let no run of a type begin or go on. Starts are accepted and wait; what runs now runs on."""
    found = asyncio.run(_ask(lambda types: types.pause(workflow), address, namespace))
    put_json(_view(found)) if as_json else say(f"{workflow} is paused; runs that are started wait")
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@json_option
@address_options
def resume(*, workflow: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Let runs of a paused type begin."""
    found = asyncio.run(_ask(lambda types: types.resume(workflow), address, namespace))
    put_json(_view(found)) if as_json else say(f"{workflow} goes on")
    return Exit.OK


@workflows.command()
@click.argument("workflow", metavar="[WORKFLOW]", required=False)
@click.option("--jsonl", is_flag=True, help="Print JSON, one queue a line.")
@json_option
@address_options
def depth(*, workflow: str | None, jsonl: bool, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Show how many runs wait for a worker, since when, and what holds them back."""
    found = asyncio.run(_ask(lambda types: types.queue_depth(workflow), address, namespace))
    put_list(found, _queue_view, _queue_row, jsonl=jsonl, as_json=as_json, empty="Nothing waits")
    return Exit.OK


async def _ask(ask: Callable[[WorkflowTypes], Awaitable[Answer]], address: str | None, namespace: str | None) -> Answer:
    from ..sdk.workflow_types import WorkflowTypes
    from .connection import connected

    async with connected(address, namespace) as server:
        return await ask(WorkflowTypes(server.connection, server.namespace))


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
        "": "paused" if found.paused else "",
        "open runs": str(found.open_runs),
        "running": _number(found.max_running),
        "per key": _number(found.max_running_per_key),
        "rate": _number(found.starts_per_second),
        "rate per key": _number(found.starts_per_second_per_key),
        "when full": found.when_full,
        "versions": ", ".join(found.versions),
    }


def _fields(found: WorkflowTypeInfo) -> dict[str, str]:
    return {
        "workflow": found.workflow,
        "paused": "yes" if found.paused else "no",
        "max running": _number(found.max_running),
        "max running per key": _number(found.max_running_per_key),
        "starts per second": _number(found.starts_per_second),
        "starts per second per key": _number(found.starts_per_second_per_key),
        "when full": found.when_full,
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
        "oldest_waiting_since": None if since is None else since.isoformat().replace("+00:00", "Z"),
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
        "oldest since": "" if since is None else since.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "workers": str(found.workers),
        "free slots": str(found.free_slots),
        "held back": found.held_back or "",
    }


def _number(limit: float | None) -> str:
    return "-" if limit is None else f"{limit:g}"
