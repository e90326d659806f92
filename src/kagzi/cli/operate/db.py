"""`kagzi db`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ..console import hint, put, say
from ..exits import Exit, Stop
from ..groups import Commands
from ..output import Output, json_output
from ..views import view

if TYPE_CHECKING:
    from ...server.database import Database
    from ...store.protocol import Migrator


_db_option = click.option(
    "--db",
    "url",
    envvar="KAGZI_DB",
    required=True,
    metavar="URL",
    help="Database: postgresql://USER@HOST/DATABASE or sqlite:///FILE.  [env: KAGZI_DB]",
)


@click.group(cls=Commands)
def db() -> None:
    """Migrate and inspect the database."""


@db.command()
@_db_option
@json_output
def migrate(url: str) -> Output:
    """Migrate the database to the schema of this version. You can safely repeat it."""
    migrator = _migrator(url)
    before, after = asyncio.run(migrator.status()), asyncio.run(migrator.migrate())
    text = f"schema {after.current}: nothing to do"
    if before.pending:
        text = f"schema {before.current} -> {after.current}: applied {', '.join(before.pending)}"
    view = {"before": before.current, "current": after.current, "applied": list(before.pending)}
    return Output(view, lambda: say(text))


@db.command()
@_db_option
@json_output
def status(url: str) -> Output:
    """Show the schema version of the database. The exit code is 1 if it needs migrating."""
    schema = asyncio.run(_migrator(url).status())

    def show() -> None:
        if schema.pending:
            put(f"schema {schema.current}, this version needs {schema.latest}: {', '.join(schema.pending)} to apply")
            hint("kagzi db migrate applies them")
        else:
            put(f"schema {schema.current}, up to date")

    return Output(view(schema, "current", "latest", "pending"), show, Exit.FAILED if schema.pending else Exit.OK)


@db.command()
@click.option("--parts", type=int, required=True, metavar="N", help="Number of partitions; it cannot be changed later.")
@_db_option
@json_output
def partition(parts: int, url: str) -> Output:
    """Partition the history tables (PostgreSQL only).

    They are divided by a hash of the run id. Stop all servers first: this rewrites the tables.
    Useful when the table `steps` is larger than memory, or vacuum cannot keep up. Nothing else changes.
    """
    changed = asyncio.run(_partition(url, parts))
    text = (
        f"histories have {parts} partitions" if changed else f"histories already have {parts} partitions: nothing to do"
    )
    return Output({"parts": parts, "changed": changed}, lambda: say(text))


async def _partition(url: str, parts: int) -> bool:
    from ...server.database import PostgresDatabase
    from ...store.postgres.partition import PostgresPartitioner

    database = _database(url)
    if not isinstance(database, PostgresDatabase):
        raise click.BadParameter("only PostgreSQL has partitions.", param_hint="'--db'")
    return await PostgresPartitioner(database.url).partition(parts)


def _database(url: str) -> Database:
    from ...core.errors import InvalidArgument
    from ...server.database import parse_database

    try:
        return parse_database(url)
    except InvalidArgument as error:
        raise click.BadParameter(error.message, param_hint="'--db'") from error


def _migrator(url: str) -> Migrator:
    from ...server.database import PostgresDatabase

    database = _database(url)
    if isinstance(database, PostgresDatabase):
        from ...store.postgres import PostgresMigrator

        return PostgresMigrator(database.url)
    if database.path is None:
        raise click.BadParameter("an in-memory database has nothing to migrate.", param_hint="'--db'")
    if not database.path.parent.is_dir():
        raise Stop(
            Exit.CANNOT_CONNECT, f"the directory {database.path.parent} does not exist", "create it, then try again"
        )
    from ...store.sqlite import SqliteMigrator

    return SqliteMigrator(str(database.path))
