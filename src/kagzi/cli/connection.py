"""Connects the SDK's client according to the options of the command line."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from ..core.errors import DOWN, DOWN_CONNECTION, InvalidArgument, Unavailable
from ..core.records import DEFAULT_NAMESPACE
from ..sdk.transport.address import Address, parse_address
from ..sdk.transport.connection import open_connection
from ..sdk.transport.credentials import TLS_VARIABLES, Tls, tls_of
from .codecs import codec_of
from .console import say, warn
from .exits import Exit, Stop
from .tls_options import NO_TLS_OPTIONS, TlsOptions

if TYPE_CHECKING:
    from ..sdk.client.client import Kagzi


@asynccontextmanager
async def connected(
    address: str | None, namespace: str | None, tls: TlsOptions = NO_TLS_OPTIONS, codec: str | None = None
) -> "AsyncGenerator[Kagzi]":
    """A client that is connected to a server. Raises Stop(CANNOT_CONNECT) with a remedy."""
    from ..sdk.client.client import Kagzi  # a worker only needs `tls_for`
    from ..sdk.client.unserved import UNSERVED

    try:
        connection = open_connection(
            address, api_key=None, tls=tls_for(address, tls), websocket=False, codec=codec_of(codec)
        )
    except InvalidArgument as error:
        raise bad_address(error) from error
    _refuse_missing_file(connection.address.embedded)
    connection.notices.report = _notify
    try:
        await connection.open()
    except Unavailable as error:
        from .option_names import python_in_options

        raise Stop(Exit.CANNOT_CONNECT, python_in_options(error.message), _remedy(error, connection.address)) from error
    client = Kagzi(connection, namespace or DEFAULT_NAMESPACE)
    try:
        with UNSERVED.shown_by(warn):
            yield client
    finally:
        await client.close()


def tls_for(address: str | None, options: TlsOptions) -> Tls | None:
    """The TLS settings for `address`. Raises InvalidArgument."""
    if options.typed:
        return Tls(ca=options.ca, certificate=options.cert, key=options.key)
    pairs = zip(TLS_VARIABLES, (options.ca, options.cert, options.key), strict=True)
    environment = {variable: value for variable, value in pairs if value}
    return tls_of(parse_address(address, os.environ), None, environment)


def bad_address(error: InvalidArgument) -> click.BadParameter:
    from ..server.database import mask

    hint = {"tls": "'--tls-ca', '--tls-cert', '--tls-key'"}.get(error.field or "", "'--address' (KAGZI_ADDRESS)")
    return click.BadParameter(mask(error.message), param_hint=hint)


def _notify(text: str) -> None:
    say(f"waiting: {text}", colour="yellow")


def _remedy(error: Unavailable, address: Address) -> str:
    """Suggests `kagzi dev` only if nothing listens on this machine."""
    if error.metadata.get(DOWN) != DOWN_CONNECTION or "TLS" in error.message:
        return ""
    other = "name another server with --address HOST:PORT or KAGZI_ADDRESS"
    return other if address.leaves_machine else f"start a server with kagzi dev, or {other}"


def _refuse_missing_file(embedded: str) -> None:
    """A mistyped path must not create a new database."""
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
