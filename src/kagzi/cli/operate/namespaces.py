"""`kagzi namespaces`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ..console import put_fields, say
from ..groups import Listing
from ..options import Converted, Limit, Server, changes, duration, key_value, options
from ..output import Output, Rows, list_command, server_command
from ..times import local_text
from ..views import cells, limit_cells, view

if TYPE_CHECKING:
    from ...sdk.client.operations.namespaces import NamespaceInfo


_LIMITS = (
    "max_open_runs",
    "max_running_runs",
    "max_starts_per_second",
    "max_stored_bytes",
    "max_sessions",
    "max_schedules",
)


@click.group(cls=Listing)
def namespaces() -> None:
    """Create, limit, disable and delete namespaces."""


def _retention(value: str | tuple[str, timedelta]) -> tuple[str, timedelta]:
    """`failed=90d`."""
    if isinstance(value, tuple):
        return value
    status, kept = key_value(value)
    return status, duration(kept)


_limit_options = options(
    click.option("--max-open-runs", type=Limit(int), help="Limit how many runs are open; none removes the limit."),
    click.option("--max-running-runs", type=Limit(int), help="Limit how many runs run at once."),
    click.option("--max-starts-per-second", type=Limit(float), help="Limit how many runs start per second."),
    click.option(
        "--max-stored-bytes", type=Limit(int), help="Limit the bytes of payloads and errors; measured every minute."
    ),
    click.option("--max-sessions", type=Limit(int), help="Limit the number of connected workers."),
    click.option("--max-schedules", type=Limit(int), help="Limit the number of schedules."),
    click.option(
        "--retention",
        multiple=True,
        type=Converted("status=duration", _retention),
        help="Keep completed, failed or cancelled runs this long. Repeatable; replaces the previous setting.",
    ),
)


@namespaces.command("list")
@list_command("namespace")
def list_namespaces(*, server: Server) -> Rows[NamespaceInfo]:
    """List namespaces by name."""
    records = server.ask_all(lambda client: client.namespaces.list())
    return Rows(records, _view, _row, "No namespaces. A namespace is created with its first run or worker.")


@namespaces.command()
@click.argument("name")
@server_command
def get(*, name: str, server: Server) -> Output:
    """Show one namespace."""
    return _output(server.ask(lambda client: client.namespaces.get(name)))


@namespaces.command()
@click.argument("name")
@_limit_options
@server_command
def create(*, name: str, server: Server, **options: Any) -> Output:
    """Create a namespace, optionally with limits."""
    settings = _settings(options)
    return _output(server.ask(lambda client: client.namespaces.create(name, **settings)))


@namespaces.command()
@click.argument("name")
@_limit_options
@server_command
def update(*, name: str, server: Server, **options: Any) -> Output:
    """Change limits and retention. Settings that you do not name stay as they are."""
    settings = _settings(options)
    if not settings:
        names = ", ".join("--" + limit.replace("_", "-") for limit in _LIMITS)
        raise click.UsageError(f"name what to change: {names} or --retention.")
    return _output(server.ask(lambda client: client.namespaces.update(name, **settings)))


@namespaces.command()
@click.argument("name")
@server_command
def enable(*, name: str, server: Server) -> Output:
    """Enable a disabled namespace: it accepts new runs again."""
    record = server.ask(lambda client: client.namespaces.enable(name))
    return Output(_view(record), lambda: say(f"{name} accepts new runs"))


@namespaces.command()
@click.argument("name")
@server_command
def disable(*, name: str, server: Server) -> Output:
    """Disable a namespace: it accepts no new runs. Its open runs continue."""
    record = server.ask(lambda client: client.namespaces.disable(name))
    return Output(_view(record), lambda: say(f"{name} accepts no new runs; its open runs continue"))


@namespaces.command()
@click.argument("name")
@click.option("--confirm", metavar="NAME", help="Repeat the name to confirm.")
@server_command
def delete(*, name: str, confirm: str | None, server: Server) -> Output:
    """Delete a namespace permanently, with all its runs. Refused while it has open runs or enabled schedules."""
    if confirm != name:
        raise click.UsageError(f"{name} would be deleted permanently, with all its runs. Add --confirm {name}.")
    server.ask(lambda client: client.namespaces.delete(name, confirm=name))
    text = f"{name} is deleted; its runs are removed in the background"
    return Output({"namespace": name, "deleting": True}, lambda: say(text))


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    settings = changes(options)
    return settings | {"retention": dict(settings["retention"])} if "retention" in settings else settings


def _output(record: NamespaceInfo) -> Output:
    return Output(_view(record), lambda: put_fields(_fields(record)))


def _view(record: NamespaceInfo) -> dict[str, Any]:
    retention = {status: int(kept.total_seconds()) for status, kept in record.retention.items()}
    return {
        **view(record, "namespace=name", "enabled", "deleting", "created_at", *_LIMITS),
        "retention_seconds": retention,
        **view(record, "stored_bytes", "stored_bytes_at"),
    }


def _row(record: NamespaceInfo) -> dict[str, str]:
    return {"namespace": record.name, "state": _state(record), **limit_cells(record, *_LIMITS)}


def _fields(record: NamespaceInfo) -> dict[str, str]:
    from ...core.duration import format_duration

    stored = "" if record.stored_bytes is None else f"{record.stored_bytes} at {local_text(record.stored_bytes_at)}"
    return {
        "namespace": record.name,
        "state": _state(record),
        **cells(record, "created=created_at"),
        **limit_cells(record, *_LIMITS),
        "stored bytes": stored,
        "retention": ", ".join(f"{status} {format_duration(kept)}" for status, kept in record.retention.items()),
    }


def _state(record: NamespaceInfo) -> str:
    return "deleting" if record.deleting else "enabled" if record.enabled else "disabled"
