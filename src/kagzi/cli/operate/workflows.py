"""`kagzi workflows`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ...core.text.commands import quoted
from ..console import put_fields, say
from ..groups import Listing
from ..options import Kebab, Limit, Server, changes, kebab, same_server
from ..output import Output, Rows, list_command, server_command
from ..views import cells, limit_cells, view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...sdk.client.operations.workflow_types import QueueInfo, WorkflowSchema, WorkflowTypeInfo

_LIMITS = ("max_running", "max_running_per_key", "starts_per_second", "starts_per_second_per_key")


@click.group(cls=Listing)
def workflows() -> None:
    """Show, limit, pause and resume workflow types and their queues."""


@workflows.command("list")
@list_command("type")
def list_types(*, server: Server) -> Rows[WorkflowTypeInfo]:
    """List workflow types with their open runs and limits."""
    records = server.ask_all(lambda client: client.workflow_types.list())
    return Rows(records, _view, _row, "No workflow types. Workers register them; start one: kagzi worker MODULE")


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@server_command
def get(*, workflow: str, server: Server) -> Output:
    """Show one workflow type."""
    record = server.ask(lambda client: client.workflow_types.get(workflow))
    return Output(_view(record), lambda: put_fields(_fields(record)))


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@click.option("--version", help="The version to show. Default: the one that new runs get.")
@server_command
def schema(*, workflow: str, version: str | None, server: Server) -> Output:
    """Show what a workflow takes, returns and waits for, as JSON Schema."""
    record = server.ask(lambda client: client.workflow_types.schema(workflow, version=version))
    fields = {
        **cells(record, "workflow", "version", "registered_at"),
        "description": record.description or "-",
        "input": _schema_text(record.input_schema),
        "output": _schema_text(record.output_schema),
        **{f"signal {name}": _schema_text(each) for name, each in record.signal_schemas.items()},
    }
    return Output(_schema_view(record), lambda: put_fields(fields))


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@click.option("--max-running", type=Limit(int), help="Limit how many runs run at once; none removes the limit.")
@click.option("--per-key", "max_running_per_key", type=Limit(int), help="The same limit for each concurrency key.")
@click.option(
    "--rate",
    "starts_per_second",
    type=Limit(float),
    help="Limit how many runs begin per second; 0.1 is one every ten seconds.",
)
@click.option(
    "--per-key-rate",
    "starts_per_second_per_key",
    type=Limit(float),
    help="The same rate for each concurrency key.",
)
@click.option(
    "--when-full",
    type=Kebab(["queue", "reject", "cancel-oldest"]),
    help="What to do with a start when a limit is reached.",
)
@server_command
def limit(*, workflow: str, server: Server, **options: Any) -> Output:
    """Limit how many runs of a type run at once and how fast they begin.

    Limits that you do not name stay as they are.
    """
    limits = changes(options)
    if not limits:
        raise click.UsageError("name a limit: --max-running, --per-key, --rate, --per-key-rate or --when-full.")
    record = server.ask(lambda client: client.workflow_types.update(workflow, **limits))
    return Output(_view(record), lambda: put_fields(_fields(record)))


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@server_command
def pause(*, workflow: str, server: Server) -> Output:
    """Pause a workflow type: its runs wait, including new ones. Running runs continue."""
    record = server.ask(lambda client: client.workflow_types.pause(workflow))
    resume_it = f"Resume it: kagzi workflows resume {quoted(workflow)}{same_server()}"
    return Output(_view(record), lambda: say(f"{workflow} is paused; its runs wait. {resume_it}"))


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@server_command
def resume(*, workflow: str, server: Server) -> Output:
    """Resume a paused workflow type."""
    record = server.ask(lambda client: client.workflow_types.resume(workflow))
    return Output(_view(record), lambda: say(f"{workflow} is resumed"))


@workflows.command()
@click.argument("workflow", metavar="[WORKFLOW]", required=False)
@list_command("queue")
def depth(*, workflow: str | None, server: Server) -> Rows[QueueInfo]:
    """Show how many runs are waiting for a worker, since when, and why."""
    records = server.ask(lambda client: client.workflow_types.queue_depth(workflow))
    return Rows(records, _queue_view, _queue_row, "No runs are waiting.")


def _view(record: WorkflowTypeInfo) -> dict[str, Any]:
    return view(record, "workflow", "paused", *_LIMITS, "when_full", "versions", "default_version", "open_runs")


def _schema_view(record: WorkflowSchema) -> dict[str, Any]:
    schemas = ("input_schema", "output_schema", "signal_schemas")
    return view(record, "workflow", "version", "description", *schemas, "registered_at")


def _schema_text(schema: Mapping[str, Any] | None) -> str:
    return "-" if schema is None else json.dumps(schema)


def _row(record: WorkflowTypeInfo) -> dict[str, str]:
    headings = ("max running", "max per key", "max rate", "max rate per key")
    limits = limit_cells(record, *(f"{heading}={name}" for heading, name in zip(headings, _LIMITS, strict=True)))
    return {**_state(record), **cells(record, "open_runs"), **limits, **_settings(record)}


def _fields(record: WorkflowTypeInfo) -> dict[str, str]:
    limits = limit_cells(record, "max_running", "max_running_per_key")
    rates = limit_cells(record, "max_rate=starts_per_second", "max_rate_per_key=starts_per_second_per_key")
    per_second = {name: rate if rate == "-" else f"{rate} per second" for name, rate in rates.items()}
    return {
        **_state(record),
        **limits,
        **per_second,
        **_settings(record),
        **cells(record, "default_version", "open_runs"),
    }


def _state(record: WorkflowTypeInfo) -> dict[str, str]:
    return {"workflow": record.workflow, "state": "paused" if record.paused else "active"}


def _settings(record: WorkflowTypeInfo) -> dict[str, str]:
    return {"when full": kebab(record.when_full), **cells(record, "versions")}


def _queue_view(queue: QueueInfo) -> dict[str, Any]:
    return view(
        queue, "workflow", "version", "waiting", "oldest_waiting_since", "workers", "free_slots", "limit_reason"
    )


def _queue_row(queue: QueueInfo) -> dict[str, str]:
    counts = cells(queue, "waiting", "oldest_since=oldest_waiting_since", "workers", "free_slots", "limit_reason")
    return {"workflow": queue.workflow, "version": queue.version or "any", **counts}
