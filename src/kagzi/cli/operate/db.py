"""`kagzi db`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ..console import hint, put, put_json, say
from ..exits import Exit, Stop
from ..groups import Commands
from ..options import Command, json_option

if TYPE_CHECKING:
    from ...server.database import Database
    from ...store.protocol import Migrator, SchemaStatus


def _db_option(command: Command) -> Command:
    return click.option(
        "--db",
        "url",
        envvar="KAGZI_DB",
        required=True,
        metavar="URL",
        help="Database: postgresql://USER@HOST/DATABASE or sqlite:///FILE.  [env: KAGZI_DB]",
    )(command)


@click.group(cls=Commands)
def db() -> None:
    """Migrate and inspect the database."""


@db.command()
@_db_option
@json_option
def migrate(url: str, as_json: bool) -> int:
    """Migrate the database to the schema of this version. You can safely repeat it."""
    before, after = asyncio.run(_migrate(url))
    if as_json:
        put_json({"before": before.current, "current": after.current, "applied": list(before.pending)})
    elif before.pending:
        say(f"schema {before.current} -> {after.current}: applied {', '.join(before.pending)}")
    else:
        say(f"schema {after.current}: nothing to do")
    return Exit.OK


@db.command()
@_db_option
@json_option
def status(url: str, as_json: bool) -> int:
    """Show the schema version of the database. The exit code is 1 if it needs migrating."""
    found = asyncio.run(_status(url))
    if as_json:
        put_json({"current": found.current, "latest": found.latest, "pending": list(found.pending)})
    elif found.pending:
        put(f"schema {found.current}, this version needs {found.latest}: {', '.join(found.pending)} to apply")
        hint("kagzi db migrate applies them")
    else:
        put(f"schema {found.current}, up to date")
    return Exit.FAILED if found.pending else Exit.OK


@db.command()
@click.option("--parts", type=int, required=True, metavar="N", help="Number of partitions; it cannot be changed later.")
@_db_option
@json_option
def partition(parts: int, url: str, as_json: bool) -> int:
    """Partition the tables of histories, on PostgreSQL.

    They are divided by a hash of the run id. Stop all servers first: this rewrites the tables.
    Useful when the table `steps` is larger than memory, or vacuum cannot keep up. Nothing else changes.
    """
    changed = asyncio.run(_partition(url, parts))
    if as_json:
        put_json({"parts": parts, "changed": changed})
    else:
        say(f"histories have {parts} partitions" + ("" if changed else " already: nothing to do"))
    return Exit.OK


async def _partition(url: str, parts: int) -> bool:
    from ...server.database import PostgresDatabase
    from ...store.postgres.partition import PostgresPartitioner

    database = _database(url)
    if not isinstance(database, PostgresDatabase):
        raise click.BadParameter("only PostgreSQL has partitions.", param_hint="'--db'")
    return await PostgresPartitioner(database.url).partition(parts)


async def _migrate(url: str) -> tuple[SchemaStatus, SchemaStatus]:
    migrator = _migrator(url)
    return await migrator.status(), await migrator.migrate()


async def _status(url: str) -> SchemaStatus:
    return await _migrator(url).status()


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
        raise click.BadParameter("a database in memory has nothing to migrate.", param_hint="'--db'")
    if not database.path.parent.is_dir():
        raise Stop(
            Exit.CANNOT_CONNECT, f"the directory {database.path.parent} does not exist", "create it, then try again"
        )
    from ...store.sqlite import SqliteMigrator

    return SqliteMigrator(str(database.path))
