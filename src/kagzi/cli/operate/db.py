"""`kagzi db`."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING

import click

from ..console import hint, put, say
from ..exits import Exit, Stop
from ..groups import Commands
from ..output import Decorated, Output, json_output
from ..views import view

if TYPE_CHECKING:
    from ...store.protocol import Migrator


def _url(url: str, schema: str | None) -> str:
    """Raises click.BadParameter."""
    from ...core.errors import InvalidArgument
    from ...server.database import database_with_options, parse_database

    try:
        parse_database(url)
        return database_with_options(url, {"db_schema": schema}) if schema else url
    except InvalidArgument as error:
        option = "'--db-schema'" if error.field == "db_schema" else "'--db'"
        raise click.BadParameter(error.message, param_hint=option) from error


def _db_options(command: Decorated) -> Decorated:
    """The command receives both options as one `url`."""

    @wraps(command)
    def with_url(*, url: str, db_schema: str | None, **others: object) -> int:
        return command(url=_url(url, db_schema), **others)

    add_schema = click.option(
        "--db-schema",
        envvar="KAGZI_DB_SCHEMA",
        metavar="NAME",
        help="Schema of the tables in PostgreSQL.  [default: the role's search_path]  [env: KAGZI_DB_SCHEMA]",
    )
    add_url = click.option(
        "--db",
        "url",
        envvar="KAGZI_DB",
        required=True,
        metavar="URL",
        help="Database: postgresql://USER@HOST/DATABASE or sqlite:///FILE.  [env: KAGZI_DB]",
    )
    return add_url(add_schema(with_url))


@click.group(cls=Commands)
def db() -> None:
    """Migrate and inspect the database."""


@db.command()
@_db_options
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
@_db_options
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
@_db_options
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
    from ...server.database import PostgresDatabase, parse_database
    from ...store.postgres.partition import PostgresPartitioner

    database = parse_database(url)
    if not isinstance(database, PostgresDatabase):
        raise click.BadParameter("only PostgreSQL has partitions.", param_hint="'--db'")
    return await PostgresPartitioner(database.url).partition(parts)


def _migrator(url: str) -> Migrator:
    from ...server.database import PostgresDatabase, parse_database

    database = parse_database(url)
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
