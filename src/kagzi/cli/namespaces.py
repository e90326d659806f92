"""`kagzi namespaces`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .console import put_fields, put_json, put_list, say
from .exits import Exit
from .options import NONE, Command, Limit, address_options, duration, json_option, key_value

if TYPE_CHECKING:
    from datetime import datetime

    from ..sdk.namespaces import NamespaceInfo, Namespaces

Answer = TypeVar("Answer")

_LIMITS = (
    "max_open_runs",
    "max_running_runs",
    "max_starts_per_second",
    "max_stored_bytes",
    "max_sessions",
    "max_schedules",
)


@click.group(invoke_without_command=True)
@click.pass_context
def namespaces(context: click.Context) -> int:
    """Look after namespaces: who shares this server, what each may do, and their end."""
    if context.invoked_subcommand is not None:
        return Exit.OK
    code: int = context.invoke(list_namespaces)
    return code


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
            help="How long completed, failed or cancelled runs are kept. May be repeated; replaces what was said before.",
        ),
        click.option("--max-schedules", type=Limit(int), metavar="N", help="Schedules."),
        click.option("--max-sessions", type=Limit(int), metavar="N", help="Workers at once."),
        click.option(
            "--max-stored-bytes", type=Limit(int), metavar="N", help="Payloads and errors; measured every minute."
        ),
        click.option("--max-starts-per-second", type=Limit(float), metavar="N", help="Runs started per second."),
        click.option("--max-running-runs", type=Limit(int), metavar="N", help="Runs that run at once."),
        click.option(
            "--max-open-runs", type=Limit(int), metavar="N", help="Runs that have not ended.  [none: any number]"
        ),
    ):
        command = option(command)
    return command


@namespaces.command("list")
@click.option("--jsonl", is_flag=True, help="Print JSON, one namespace a line.")
@json_option
@address_options
def list_namespaces(*, jsonl: bool, as_json: bool, address: str | None, namespace: str | None) -> int:
    """List namespaces by name."""

    async def gather(asked: Namespaces) -> list[NamespaceInfo]:
        return [each async for each in asked.list()]

    found = asyncio.run(_ask(gather, address, namespace))
    put_list(
        found,
        _view,
        _row,
        jsonl=jsonl,
        as_json=as_json,
        empty="No namespaces: one comes into being with its first run or worker.",
    )
    return Exit.OK


@namespaces.command()
@click.argument("name")
@json_option
@address_options
def show(*, name: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Show one namespace."""
    return _put(asyncio.run(_ask(lambda asked: asked.get(name), address, namespace)), as_json)


@namespaces.command()
@click.argument("name")
@_limit_options
@json_option
@address_options
def create(*, name: str, as_json: bool, address: str | None, namespace: str | None, **given: Any) -> int:
    """Create a namespace, with limits if you like."""
    changes = _changes(given)
    return _put(asyncio.run(_ask(lambda asked: asked.create(name, **changes), address, namespace)), as_json)


@namespaces.command()
@click.argument("name")
@_limit_options
@json_option
@address_options
def update(*, name: str, as_json: bool, address: str | None, namespace: str | None, **given: Any) -> int:
    """Change limits and retention. What is not named stays; none takes a limit away."""
    changes = _changes(given)
    if not changes:
        options = ", ".join("--" + limit.replace("_", "-") for limit in _LIMITS)
        raise click.UsageError(f"Name what to change: {options} or --retention.")
    return _put(asyncio.run(_ask(lambda asked: asked.update(name, **changes), address, namespace)), as_json)


@namespaces.command()
@click.argument("name")
@json_option
@address_options
def enable(*, name: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Let a namespace take new runs again."""
    found = asyncio.run(_ask(lambda asked: asked.enable(name), address, namespace))
    put_json(_view(found)) if as_json else say(f"{name} takes new runs")
    return Exit.OK


@namespaces.command()
@click.argument("name")
@json_option
@address_options
def disable(*, name: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Let a namespace take no new runs. Those it has go on."""
    found = asyncio.run(_ask(lambda asked: asked.disable(name), address, namespace))
    put_json(_view(found)) if as_json else say(f"{name} takes no new runs; those it has go on")
    return Exit.OK


@namespaces.command()
@click.argument("name")
@click.option("--confirm", metavar="NAME", help="Repeat the name: all its runs are deleted with it.")
@json_option
@address_options
def delete(*, name: str, confirm: str | None, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Delete a namespace with all its runs, for good. Refused while runs are open in it or schedules enabled."""
    if confirm != name:
        raise click.UsageError(f"{name} is deleted for good, with all its runs. Say so: --confirm {name}")
    asyncio.run(_ask(lambda asked: asked.delete(name, confirm=name), address, namespace))
    put_json({"namespace": name, "deleting": True}) if as_json else say(
        f"{name} is gone; what it had is removed in the background"
    )
    return Exit.OK


async def _ask(ask: Callable[[Namespaces], Awaitable[Answer]], address: str | None, namespace: str | None) -> Answer:
    from ..sdk.namespaces import Namespaces
    from .connection import connected

    async with connected(address, namespace) as server:
        return await ask(Namespaces(server.connection))


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
        "created_at": _moment(found.created_at),
        **{limit: getattr(found, limit) for limit in _LIMITS},
        "retention_seconds": {status: int(kept.total_seconds()) for status, kept in found.retention.items()},
        "stored_bytes": found.stored_bytes,
        "stored_bytes_at": None if found.stored_bytes_at is None else _moment(found.stored_bytes_at),
    }


def _row(found: NamespaceInfo) -> dict[str, str]:
    return {
        "namespace": found.name,
        "": _state(found),
        **{limit.removeprefix("max_").replace("_", " "): _number(getattr(found, limit)) for limit in _LIMITS},
    }


def _fields(found: NamespaceInfo) -> dict[str, str]:
    from ..core.duration import format_duration

    stored = "" if found.stored_bytes is None else f"{found.stored_bytes} at {found.stored_bytes_at:%H:%M:%SZ}"
    return {
        "namespace": found.name,
        "state": _state(found) or "enabled",
        "created": _moment(found.created_at),
        **{limit.replace("_", " "): _number(getattr(found, limit)) for limit in _LIMITS},
        "stored bytes": stored,
        "retention": ", ".join(f"{status} {format_duration(kept)}" for status, kept in found.retention.items()),
    }


def _state(found: NamespaceInfo) -> str:
    if found.deleting:
        return "deleting"
    return "" if found.enabled else "disabled"


def _moment(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _number(limit: float | None) -> str:
    return "-" if limit is None else str(limit)
