"""The server's configuration from options, the environment and the project file. Errors name the option."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...core.errors import InvalidArgument
from ..options import options

if TYPE_CHECKING:
    from ...server.config import ServerConfig

listen_options = options(
    click.option(
        "--listen", metavar="HOST:PORT", help="Address for gRPC; port 0 picks a free one.  [default: 127.0.0.1:50051]"
    ),
    click.option(
        "--http",
        metavar="HOST:PORT",
        help="Address for HTTP; port 0 picks a free one, off turns it off.  [default: 127.0.0.1:8420]",
    ),
    click.option(
        "--websocket/--no-websocket",
        default=None,
        help="Serve calls also as WebSocket messages on the HTTP port.  [default: websocket, with HTTP]",
    ),
    click.option("--tls-cert", metavar="FILE", help="Serve with TLS: the certificate, with its chain, in PEM form."),
    click.option("--tls-key", metavar="FILE", help="The private key of that certificate."),
    click.option("--tls-client-ca", metavar="FILE", help="Require clients to have a certificate of this authority."),
    click.option(
        "--outbox", metavar="URL", help="Start the runs that client.start_in wrote in this PostgreSQL database."
    ),
    click.option(
        "--outbox-namespaces", metavar="NAMES", help="Namespaces for these, separated by commas.  [default: any]"
    ),
)


def server_config(flags: Mapping[str, object]) -> ServerConfig:
    """Raises click.BadParameter."""
    from ...server.config import load_config

    try:
        return load_config(flags, environment=os.environ, directory=Path.cwd())
    except InvalidArgument as error:
        hint = f"'--{error.field.replace('_', '-')}'" if error.field else None
        raise click.BadParameter(error.message, param_hint=hint) from error
