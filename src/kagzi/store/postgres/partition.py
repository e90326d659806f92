"""Partitions the history tables by a hash of run_id, once, while no server runs. The schema version does not change."""

import asyncpg

from ...core.errors import InvalidArgument, PreconditionFailed, SchemaMismatch
from ...core.limits import TABLE_PARTS_MAX
from .connection.target import Target
from .migrate import PostgresMigrator, connected, schema_transaction
from .statements import STATEMENTS

TABLES = ("steps", "step_attempts", "signals")
"""The tables whose keys all begin with run_id. runs cannot be partitioned by it: its unique ids are per namespace."""

_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '5s'"


class PostgresPartitioner:
    """A database that cannot be reached raises Unavailable."""

    def __init__(self, url: str) -> None:
        self._target = Target(url)
        self._migrator = PostgresMigrator(url)

    async def partition(self, parts: int) -> bool:
        """Partition the tables. Returns False if they have that many partitions already.

        One transaction, under the lock of migrations. Raises InvalidArgument, SchemaMismatch if there are pending
        migrations, PreconditionFailed while servers are connected, or if the tables have another number of partitions.
        """
        if not 2 <= parts <= TABLE_PARTS_MAX:
            raise InvalidArgument(f"parts={parts} is not in 2..{TABLE_PARTS_MAX}.", field="parts")
        async with connected(self._target) as connection, schema_transaction(self._target, connection):
            await connection.execute(STATEMENTS["lock_schema"])
            await self._refuse_old_schema(connection)
            current = [await self._parts(connection, table) for table in TABLES]
            if current == [parts] * len(TABLES):
                return False
            if any(current):
                raise PreconditionFailed(
                    f"{self._target.place} already has {max(current)} partitions; the number cannot be changed in "
                    "place. Export the runs and import them into a new database."
                )
            await self._refuse_servers(connection)
            await connection.execute(_LOCK_TIMEOUT)
            for table in TABLES:
                for row in await connection.fetch(STATEMENTS["partition_commands"], table, parts):
                    await connection.execute(row["command"], timeout=None)
        return True

    async def _refuse_old_schema(self, connection: asyncpg.Connection) -> None:
        status = await self._migrator.status_on(connection)
        if status.pending:
            raise SchemaMismatch(
                f"{self._target.place} has schema version {status.current}; this code needs {status.latest}. "
                "Run `kagzi db migrate` first."
            )

    async def _refuse_servers(self, connection: asyncpg.Connection) -> None:
        servers: int = await connection.fetchval(STATEMENTS["other_servers"])
        if servers:
            raise PreconditionFailed(
                f"{self._target.place} is in use ({servers} connections of Kagzi). Stop all servers: this rewrites "
                "tables."
            )

    async def _parts(self, connection: asyncpg.Connection, table: str) -> int:
        parts: int = await connection.fetchval(STATEMENTS["parts_of_table"], table)
        return parts
