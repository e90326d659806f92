"""From options to the server's configuration: flags over environment over file, and a bad value names its option."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...core.errors import InvalidArgument

if TYPE_CHECKING:
    from ...server.config import ServerConfig


def server_config(flags: Mapping[str, object]) -> ServerConfig:
    """Raises click.BadParameter."""
    from ...server.config import load_config

    try:
        return load_config(flags, environment=os.environ, directory=Path.cwd())
    except InvalidArgument as error:
        hint = f"'--{error.field.replace('_', '-')}'" if error.field else None
        raise click.BadParameter(error.message, param_hint=hint) from error
