"""`kagzi keys`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..console import put, say
from ..groups import Listing
from ..options import DURATION, Server, options
from ..output import Output, Rows, list_command, server_command
from ..views import cells, view

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from ...core.keys.keys import KeyRecord
    from ...engine.services.keys.keys import Keys as EngineKeys
    from ...engine.services.keys.keys import NewKey as EngineKey
    from ...sdk.client.operations.keys import KeyInfo, NewKey

Result = TypeVar("Result")
_SCOPES = ("read", "client", "worker", "admin")
_FIELDS = ("created_at", "expires_at", "revoked_at", "rotated_at", "last_used_at")

_where = options(
    click.option("--everywhere", is_flag=True, help="All namespaces instead of one."),
    click.option(
        "--db",
        metavar="URL",
        help="Open this database instead of asking a server: for the first key. A SQLite file must not be in use.",
    ),
)


@click.group(cls=Listing)
def keys() -> None:
    """Create, list, rotate and revoke API keys."""


@keys.command("list")
@_where
@list_command("key", limit=100)
def list_keys(*, everywhere: bool, db: str | None, limit: int, server: Server) -> Rows[KeyInfo]:
    """List keys, newest first, including revoked and expired ones."""
    if db is None:
        records = server.ask_all(lambda client: client.keys.list(everywhere=everywhere, limit=limit))
    else:
        records = _offline(db, lambda keys: _listed(keys, _namespace(server, everywhere=everywhere), limit))
    return Rows(records, _view, _row, "No keys. kagzi keys create makes one.")


@keys.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(_SCOPES),
    help="What the key allows. Repeatable; client includes read, admin includes all.",
)
@click.option("--expires-in", type=DURATION, help="The key expires after this time.  [default: never]")
@_where
@server_command
def create(
    *,
    name: str,
    scopes: tuple[str, ...],
    expires_in: timedelta | None,
    everywhere: bool,
    db: str | None,
    server: Server,
) -> Output:
    """Create a key and print it. It is shown only once.

    The key goes to standard output, so that you can store it: kagzi keys create ci --scope client > key.txt
    """
    if db is None:
        made = server.ask(
            lambda client: client.keys.create(name, scopes=scopes, expires_in=expires_in, everywhere=everywhere)
        )
    else:
        made = _offline(
            db, lambda keys: _created(keys, _namespace(server, everywhere=everywhere), name, scopes, expires_in)
        )
    return _made(made)


@keys.command()
@click.argument("key_id", metavar="KEY_ID")
@click.option("--grace", type=DURATION, help="The old secret stays valid for this time.  [default: it ends at once]")
@_where
@server_command
def rotate(*, key_id: str, grace: timedelta | None, everywhere: bool, db: str | None, server: Server) -> Output:
    """Give a key a new secret and print it. It is shown only once."""
    if db is None:
        made = server.ask(lambda client: client.keys.rotate(key_id, grace=grace, everywhere=everywhere))
    else:
        made = _offline(db, lambda keys: _rotated(keys, _namespace(server, everywhere=everywhere), key_id, grace))
    return _made(made)


@keys.command()
@click.argument("key_id", metavar="KEY_ID")
@_where
@server_command
def revoke(*, key_id: str, everywhere: bool, db: str | None, server: Server) -> Output:
    """Revoke a key permanently. Servers refuse it within 10 seconds, also on open connections."""
    if db is None:
        info = server.ask(lambda client: client.keys.revoke(key_id, everywhere=everywhere))
    else:
        info = _offline(db, lambda keys: _revoked(keys, _namespace(server, everywhere=everywhere), key_id))
    return Output(_view(info), lambda: say(f"{info.id} ({info.name}) is revoked"))


def _made(made: NewKey) -> Output:
    def show() -> None:
        put(made.key)  # the only line on standard output
        say(f"This key is shown only once. Store it, and pass it as KAGZI_API_KEY. Its id is {made.info.id}.")

    return Output({**_view(made.info), "key": made.key}, show)


def _view(info: KeyInfo) -> dict[str, Any]:
    return view(info, "key_id=id", "namespace", "name", "scopes", *_FIELDS)


def _row(info: KeyInfo) -> dict[str, str]:
    state = "revoked" if info.revoked_at is not None else "valid"
    return {
        "key": info.id,
        "name": info.name,
        "namespace": info.namespace,
        "scopes": " ".join(info.scopes),
        "state": state,
        **cells(info, "created=created_at", "expires=expires_at", "last used=last_used_at"),
    }


# --- directly in the database -----------------------------------------------------------------------------------------


def _offline(url: str, act: Callable[[EngineKeys], Awaitable[Result]]) -> Result:
    from .offline_keys import open_offline

    async def open_and_act() -> Result:
        async with open_offline(url) as offline:
            return await act(offline.keys)

    return asyncio.run(open_and_act())


def _namespace(server: Server, *, everywhere: bool) -> str:
    from ...core.access import EVERY_NAMESPACE
    from ...core.records import DEFAULT_NAMESPACE

    return EVERY_NAMESPACE if everywhere else server.namespace or DEFAULT_NAMESPACE


def _info(record: KeyRecord) -> KeyInfo:
    from ...sdk.client.operations.keys import read_key_info
    from ...wire.admin import write_key

    return read_key_info(write_key(record))


def _new(made: EngineKey) -> NewKey:
    from ...sdk.client.operations.keys import NewKey

    return NewKey(_info(made.key), made.text)


async def _listed(keys: EngineKeys, namespace: str, limit: int) -> list[KeyInfo]:
    from ...core.limits import PAGE_MAX_ROWS
    from ...engine import PageAsk

    rows: list[KeyInfo] = []
    token = ""
    while len(rows) < limit:
        page = await keys.list(namespace, PageAsk(size=min(limit - len(rows), PAGE_MAX_ROWS), token=token))
        rows += [_info(record) for record in page.rows]
        token = page.next_token
        if not token:
            break
    return rows


async def _created(
    keys: EngineKeys, namespace: str, name: str, scopes: tuple[str, ...], expires_in: timedelta | None
) -> NewKey:
    from ...core.times import us_from_timedelta
    from ...system import SystemClock

    expires_at = None if expires_in is None else SystemClock().now() + us_from_timedelta(expires_in)
    return _new(await keys.create(namespace, name, scopes, expires_at=expires_at))


async def _rotated(keys: EngineKeys, namespace: str, key_id: str, grace: timedelta | None) -> NewKey:
    from ...core.times import us_from_timedelta

    return _new(await keys.rotate(namespace, key_id, grace_us=0 if grace is None else us_from_timedelta(grace)))


async def _revoked(keys: EngineKeys, namespace: str, key_id: str) -> KeyInfo:
    return _info(await keys.revoke(namespace, key_id))
