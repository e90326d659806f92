"""`kagzi namespaces`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ..console import put_fields, put_json, put_list, say
from ..exits import Exit
from ..groups import Listing
from ..options import NONE, Command, Limit, Server, duration, json_option, key_value, list_options, server_options
from ..times import local_text, utc_text

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
    """A click type: `failed=90d`."""
    if isinstance(value, tuple):
        return value
    status, kept = key_value(value)
    return status, duration(kept)


def _limit_options(command: Command) -> Command:
    for option in (
        click.option(
            "--retention",
            "retention",
            multiple=True,
            type=_retention,
            metavar="STATUS=DURATION",
            help="Keep completed, failed or cancelled runs this long. Repeatable; replaces the previous setting.",
        ),
        click.option("--max-schedules", type=Limit(int), metavar="N", help="Limit the number of schedules."),
        click.option("--max-sessions", type=Limit(int), metavar="N", help="Limit the number of connected workers."),
        click.option(
            "--max-stored-bytes",
            type=Limit(int),
            metavar="N",
            help="Limit the bytes of payloads and errors; measured every minute.",
        ),
        click.option(
            "--max-starts-per-second", type=Limit(float), metavar="N", help="Limit how many runs start per second."
        ),
        click.option("--max-running-runs", type=Limit(int), metavar="N", help="Limit how many runs run at once."),
        click.option(
            "--max-open-runs",
            type=Limit(int),
            metavar="N",
            help="Limit how many runs are open; none removes the limit.",
        ),
    ):
        command = option(command)
    return command


@namespaces.command("list")
@list_options("namespace")
@server_options
def list_namespaces(*, jsonl: bool, as_json: bool, server: Server) -> int:
    """List namespaces by name."""
    found = server.ask_all(lambda client: client.namespaces.list())
    put_list(
        found,
        _view,
        _row,
        jsonl=jsonl,
        as_json=as_json,
        empty="No namespaces. A namespace is created with its first run or worker.",
    )
    return Exit.OK


@namespaces.command()
@click.argument("name")
@json_option
@server_options
def get(*, name: str, as_json: bool, server: Server) -> int:
    """Show one namespace."""
    return _put(server.ask(lambda client: client.namespaces.get(name)), as_json)


@namespaces.command()
@click.argument("name")
@_limit_options
@json_option
@server_options
def create(*, name: str, as_json: bool, server: Server, **given: Any) -> int:
    """Create a namespace, perhaps with limits."""
    changes = _changes(given)
    return _put(server.ask(lambda client: client.namespaces.create(name, **changes)), as_json)


@namespaces.command()
@click.argument("name")
@_limit_options
@json_option
@server_options
def update(*, name: str, as_json: bool, server: Server, **given: Any) -> int:
    """Change limits and retention. What you do not name stays as it is."""
    changes = _changes(given)
    if not changes:
        options = ", ".join("--" + limit.replace("_", "-") for limit in _LIMITS)
        raise click.UsageError(f"name what to change: {options} or --retention.")
    return _put(server.ask(lambda client: client.namespaces.update(name, **changes)), as_json)


@namespaces.command()
@click.argument("name")
@json_option
@server_options
def enable(*, name: str, as_json: bool, server: Server) -> int:
    """Enable a disabled namespace: it takes new runs again."""
    found = server.ask(lambda client: client.namespaces.enable(name))
    put_json(_view(found)) if as_json else say(f"{name} takes new runs")
    return Exit.OK


@namespaces.command()
@click.argument("name")
@json_option
@server_options
def disable(*, name: str, as_json: bool, server: Server) -> int:
    """Disable a namespace: it takes no new runs. Those it has go on."""
    found = server.ask(lambda client: client.namespaces.disable(name))
    put_json(_view(found)) if as_json else say(f"{name} takes no new runs; those it has go on")
    return Exit.OK


@namespaces.command()
@click.argument("name")
@click.option("--confirm", metavar="NAME", help="Repeat the name to confirm.")
@json_option
@server_options
def delete(*, name: str, confirm: str | None, as_json: bool, server: Server) -> int:
    """Delete a namespace for good, with all its runs. Refused while it has open runs or enabled schedules."""
    if confirm != name:
        raise click.UsageError(f"{name} would be deleted for good, with all its runs. Add --confirm {name}.")
    server.ask(lambda client: client.namespaces.delete(name, confirm=name))
    put_json({"namespace": name, "deleting": True}) if as_json else say(
        f"{name} is deleted; its runs are removed in the background"
    )
    return Exit.OK


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    changes = {limit: None if given[limit] == NONE else given[limit] for limit in _LIMITS if given[limit] is not None}
    retention: Sequence[tuple[str, timedelta]] = given["retention"]
    return changes | ({"retention": dict(retention)} if retention else {})


def _put(found: NamespaceInfo, as_json: bool) -> int:
    put_json(_view(found)) if as_json else put_fields(_fields(found))
    return Exit.OK


def _view(found: NamespaceInfo) -> dict[str, Any]:
    return {
        "namespace": found.name,
        "enabled": found.enabled,
        "deleting": found.deleting,
        "created_at": utc_text(found.created_at),
        **{limit: getattr(found, limit) for limit in _LIMITS},
        "retention_seconds": {status: int(kept.total_seconds()) for status, kept in found.retention.items()},
        "stored_bytes": found.stored_bytes,
        "stored_bytes_at": None if found.stored_bytes_at is None else utc_text(found.stored_bytes_at),
    }


def _row(found: NamespaceInfo) -> dict[str, str]:
    return {
        "namespace": found.name,
        "state": _state(found),
        **{limit.replace("_", " "): _number(getattr(found, limit)) for limit in _LIMITS},
    }


def _fields(found: NamespaceInfo) -> dict[str, str]:
    from ...core.duration import format_duration

    stored = "" if found.stored_bytes is None else f"{found.stored_bytes} at {local_text(found.stored_bytes_at)}"
    return {
        "namespace": found.name,
        "state": _state(found),
        "created": local_text(found.created_at),
        **{limit.replace("_", " "): _number(getattr(found, limit)) for limit in _LIMITS},
        "stored bytes": stored,
        "retention": ", ".join(f"{status} {format_duration(kept)}" for status, kept in found.retention.items()),
    }


def _state(found: NamespaceInfo) -> str:
    if found.deleting:
        return "deleting"
    return "enabled" if found.enabled else "disabled"


def _number(limit: float | None) -> str:
    return "-" if limit is None else str(limit)
