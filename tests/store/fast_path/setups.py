"""Twins on SQLite and on PostgreSQL."""

import json
import shutil
from pathlib import Path

import asyncpg

from kagzi.store.postgres import PostgresStore
from kagzi.store.protocol import Store
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.connection.connection import Database
from tests.support.providers import LoadedRng

from .twins import Tables, Twins

JITTER = (0.5,)
"""Always the same: a batch that is done again rolls again."""


class SqliteTwins(Twins):
    """Opened anew for each scenario: a store knows by heart what it has written. `template`: an empty file; None: in
    memory."""

    def __init__(self, template: Path | None = None, *, careful_jitter: tuple[float, ...] = JITTER) -> None:
        self._template = template
        self._careful_jitter = careful_jitter
        super().__init__(*self._stores())

    def _stores(self) -> tuple[SqliteStore, SqliteStore]:
        careful = SqliteStore(self._path("careful"), rng=LoadedRng(self._careful_jitter), fast_path=False)
        return SqliteStore(self._path("fast"), rng=LoadedRng(JITTER)), careful

    def _path(self, name: str) -> str:
        if self._template is None:
            return ":memory:"
        path = self._template.with_name(f"{name}.db")
        for leftover in path.parent.glob(f"{name}.db*"):
            leftover.unlink()
        shutil.copy(self._template, path)
        return str(path)

    async def empty(self) -> None:
        await self.close()
        self.fast, self.careful = self._stores()
        await self.fast.open()
        await self.careful.open()

    async def close(self) -> None:
        await self.fast.close()
        await self.careful.close()

    async def tables(self, store: Store) -> Tables:
        assert isinstance(store, SqliteStore)
        return await store._read(_sqlite_tables)


def _sqlite_tables(database: Database) -> Tables:
    tables: Tables = {}
    schema = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (table,) in database.execute(schema):
        names = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        rows = database.execute(f"SELECT * FROM {table}")
        tables[table] = sorted((dict(zip(names, row, strict=True)) for row in rows), key=repr)
    return tables


class PostgresTwins(Twins):
    """Two databases of one server. They are emptied by deleting, which is quicker than truncating when there is
    little."""

    def __init__(self, urls: tuple[str, str], connections: tuple[asyncpg.Connection, asyncpg.Connection]) -> None:
        fast, careful = urls
        self._connections = connections
        self._names: list[str] = []
        super().__init__(
            PostgresStore(fast, rng=LoadedRng(JITTER)),
            PostgresStore(careful, rng=LoadedRng(JITTER), fast_path=False),
        )

    async def open(self) -> None:
        await self.fast.open()
        await self.careful.open()
        rows = await self._connections[0].fetch(
            "select tablename from pg_tables where schemaname = current_schema() and tablename <> 'schema_migrations'"
        )
        self._names = [row["tablename"] for row in rows]

    async def empty(self) -> None:
        for connection in self._connections:
            await connection.execute(";".join(f"delete from {name}" for name in self._names))

    async def tables(self, store: Store) -> Tables:
        connection = self._connections[store is self.careful]
        of_table = "select '{0}' as name, row_to_json(t)::text as row from {0} as t"
        rows = await connection.fetch(" union all ".join(of_table.format(name) for name in self._names))
        tables: Tables = {name: [] for name in self._names}
        for name, row in sorted(map(tuple, rows)):
            tables[name].append(json.loads(row))
        return tables

    async def close(self) -> None:
        await self.fast.close()
        await self.careful.close()
