"""Migrates a database to the schema of this code, under a lock, with one transaction per migration.

The lock is part of the transaction, too: through a pooler nothing outlives a transaction.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

from ...core.errors import InternalError
from ..protocol import SchemaStatus
from ..sql_files import AppliedMigration, Migration, load_migrations, schema_status
from .connection.barrier import Connection
from .connection.connection import Row
from .connection.failures import LOSSES, Failure, failure_of
from .connection.target import Target
from .statements import STATEMENTS

_PACKAGE = "kagzi.store.postgres"
_LOCK_TIMEOUT_S = 60.0


class PostgresMigrator:
    """Implements `store.protocol.Migrator`. A database that cannot be reached raises Unavailable."""

    def __init__(self, url: str) -> None:
        self._target = Target(url)
        self._known = load_migrations(_PACKAGE)

    async def status(self) -> SchemaStatus:
        async with connected(self._target) as connection, schema_transaction(self._target, connection):
            return await self.status_on(connection)

    async def status_on(self, connection: asyncpg.Connection) -> SchemaStatus:
        """Like `status`, in the caller's transaction."""
        return self._status(await self._applied(connection))

    async def migrate(self) -> SchemaStatus:
        """Apply the missing migrations. Any number of servers may do this at the same time."""
        async with connected(self._target) as connection:
            while True:
                async with schema_transaction(self._target, connection):
                    await connection.execute(STATEMENTS["lock_schema"], timeout=_LOCK_TIMEOUT_S)
                    if self._target.options.schema:
                        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._target.options.schema}")
                    await connection.execute(STATEMENTS["create_schema_table"])
                    status = self._status(await connection.fetch(STATEMENTS["applied_migrations"]))
                    if status.current == status.latest:
                        return status
                    await self._apply(connection, self._known[status.current])

    async def _apply(self, connection: asyncpg.Connection, migration: Migration) -> None:
        # A migration that only the other store needs is all comments, and the driver cannot send an empty statement.
        await connection.execute(f"{migration.sql}\nSELECT 1", timeout=None)
        note = STATEMENTS["note_migration"]
        await connection.execute(note, migration.version, migration.name, migration.checksum)

    async def _applied(self, connection: asyncpg.Connection) -> list[Row]:
        if not await connection.fetchval(STATEMENTS["schema_table"]):
            return []
        return await connection.fetch(STATEMENTS["applied_migrations"])

    def _status(self, rows: list[Row]) -> SchemaStatus:
        applied = [AppliedMigration(row["version"], row["name"], row["checksum"]) for row in rows]
        return schema_status(self._target.place, self._known, applied)


@asynccontextmanager
async def schema_transaction(target: Target, connection: asyncpg.Connection) -> AsyncGenerator[None]:
    """A transaction in which unqualified names are in Kagzi's schema. (`read_options` has checked its name.)"""
    async with connection.transaction():
        if target.options.schema:
            await connection.execute(f"SET LOCAL search_path = {target.options.schema}")
        yield


@asynccontextmanager
async def connected(target: Target) -> AsyncGenerator[Connection]:
    """A connection for schema changes, without our settings."""
    connection = await target.connect({})
    try:
        yield connection
        await connection.close()
    except (*LOSSES, asyncpg.PostgresError) as error:
        if failure_of(error) is not Failure.FAULT:
            raise target.lost(error, connection) from error
        raise InternalError(f"{target.place} refused a migration: {type(error).__name__}: {error}") from error
    finally:
        connection.terminate()
