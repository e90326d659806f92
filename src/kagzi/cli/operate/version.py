"""`kagzi version`."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import click

from ...core.version import __version__
from ..console import put
from ..output import Output, json_output

PACKAGES = ("grpcio", "protobuf", "asyncpg", "msgspec")


@click.command()
@json_output
def version() -> Output:
    """Show the versions of Kagzi, Python and the libraries in use."""
    versions = {name: text for name, text in versions_of(*PACKAGES).items() if text}
    return Output(versions, lambda: put(" ".join(f"{name} {text}" for name, text in versions.items())))


def versions_of(*packages: str) -> dict[str, str | None]:
    """The versions of Kagzi, Python, SQLite and the packages; None for one that is not installed."""
    import sqlite3

    versions = {"kagzi": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return versions | {package: _installed(package) for package in packages}


def _installed(package: str) -> str | None:
    try:
        return installed(package)
    except PackageNotFoundError:
        return None
