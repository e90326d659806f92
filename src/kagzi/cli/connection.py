"""Connects the SDK's client with the options of the command line."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import click

from ..core.errors import DOWN, DOWN_CONNECTION, InvalidArgument, Unavailable
from ..core.records import DEFAULT_NAMESPACE
from ..sdk.client.client import Kagzi
from ..sdk.client.unserved import UNSERVED
from ..sdk.transport.address import Address
from ..sdk.transport.connecting import open_connection
from .console import say, warn
from .exits import Exit, Stop


@asynccontextmanager
async def connected(address: str | None, namespace: str | None) -> AsyncGenerator[Kagzi]:
    """A client that is connected to a server. Raises Stop(CANNOT_CONNECT) with a remedy."""
    try:
        connection = open_connection(address, api_key=None, tls=None)
    except InvalidArgument as error:
        from ..server.database import mask

        raise click.BadParameter(mask(error.message), param_hint="'--address' (KAGZI_ADDRESS)") from error
    _refuse_missing_file(connection.address.embedded)
    connection.notices.report = _notify
    try:
        await connection.open()
    except Unavailable as error:
        raise Stop(Exit.CANNOT_CONNECT, error.message, _remedy(error, connection.address)) from error
    client = Kagzi(connection, namespace or DEFAULT_NAMESPACE)
    try:
        with UNSERVED.shown_by(warn):
            yield client
    finally:
        await client.close()


def _notify(text: str) -> None:
    say(f"waiting: {text}", colour="yellow")


def _remedy(error: Unavailable, address: Address) -> str:
    """`kagzi dev` helps only if nothing listens, and on this machine."""
    if error.metadata.get(DOWN) != DOWN_CONNECTION:
        return ""
    other = "name another server with --address HOST:PORT or KAGZI_ADDRESS"
    return other if address.leaves_machine else f"start a server with kagzi dev, or {other}"


def _refuse_missing_file(embedded: str) -> None:
    """A mistyped path must not become a new database."""
    if not embedded:
        return
    from ..server.database import PostgresDatabase, parse_database

    database = parse_database(embedded)
    path = None if isinstance(database, PostgresDatabase) else database.path
    if path is None:
        text = "an in-memory store is visible only to the process that created it."
        raise click.BadParameter(text, param_hint="'--address'")
    if not path.exists():
        raise Stop(
            Exit.CANNOT_CONNECT,
            f"{path} does not exist",
            "check --address: it is sqlite:///relative.db or sqlite:////absolute.db",
        )
