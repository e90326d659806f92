"""`kagzi version`."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import click

from ...core.version import __version__
from ..console import put, put_json
from ..exits import Exit
from ..options import json_option

PACKAGES = ("grpcio", "protobuf", "asyncpg", "msgspec")


@click.command()
@json_option
def version(*, as_json: bool) -> int:
    """Show the versions of Kagzi, Python and the libraries in use."""
    import sqlite3

    versions = {"kagzi": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    versions |= {name: found for name in PACKAGES if (found := _installed(name))}
    if as_json:
        put_json(versions)
    else:
        put(" ".join(f"{name} {found}" for name, found in versions.items()))
    return Exit.OK


def _installed(package: str) -> str:
    try:
        return installed(package)
    except PackageNotFoundError:
        return ""
