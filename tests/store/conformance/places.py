"""The three set-ups a store can be opened in. Whatever a test says of one, it says of all."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import asyncpg

from kagzi.store.protocol import Store
from tests.support.providers import LoadedRng

POOLED = bool(os.environ.get("KAGZI_TEST_PGBOUNCER"))
"""Only PostgreSQL, and every store on it goes through PgBouncer (`make pgbouncer`)."""
PARTS = int(os.environ.get("KAGZI_TEST_PARTITIONS") or 0)
"""Into how many parts its tables are divided (`make partitioned`)."""
SETUPS = ("postgres",) if POOLED else ("sqlite-memory", "sqlite-file", "postgres")
DURABLE = ("postgres",) if POOLED else ("sqlite-file", "postgres")


class Place:
    """Where a test's data lie. `open` may be called again after `close`, and, if `shared`, by several at once."""

    def __init__(self, make: Callable[[LoadedRng], Store], *, name: str, address: str, shared: bool) -> None:
        self._make = make
        self.name = name
        self.address = address
        self.shared = shared
        self._opened = AsyncExitStack()

    async def open(self, rng: LoadedRng | None = None) -> Store:
        """A new store on the same data. Closed at the end of the test at the latest."""
        store = self._make(rng or LoadedRng())
        await store.open()
        self._opened.push_async_callback(store.close)
        return store

    async def close(self) -> None:
        await self._opened.aclose()


def memory_place() -> Place:
    return Place(lambda rng: _sqlite(":memory:", rng), name="sqlite-memory", address=":memory:", shared=False)


async def file_place(directory: Path) -> Place:
    from kagzi.store.sqlite import SqliteMigrator

    path = str(directory / "kagzi.db")
    await SqliteMigrator(path).migrate()
    return Place(lambda rng: _sqlite(path, rng), name="sqlite-file", address=path, shared=False)


def postgres_place(url: str, pooler: str | None = None) -> Place:
    """`pooler`: the same database through it."""
    return Place(lambda rng: _postgres(pooler or url, rng), name="postgres", address=url, shared=True)


async def migrate_postgres(url: str) -> None:
    from kagzi.store.postgres import PostgresMigrator
    from kagzi.store.postgres.partition import PostgresPartitioner

    await PostgresMigrator(url).migrate()
    if PARTS:
        await PostgresPartitioner(url).partition(PARTS)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A stranger's connection to the same database, beside the store."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def empty_postgres(url: str) -> None:
    """Every table as the migrations left it, but for their own record."""
    async with connected(url) as connection:
        tables = await connection.fetch(
            "select tablename from pg_tables where schemaname = current_schema() and tablename <> 'schema_migrations'"
        )
        await connection.execute(f"truncate {', '.join(row['tablename'] for row in tables)}")


# Each driver is loaded by the tests that need it, so that one store's tests run where the other cannot.


def _sqlite(path: str, rng: LoadedRng) -> Store:
    from kagzi.store.sqlite import SqliteStore

    return SqliteStore(path, rng=rng)


def _postgres(url: str, rng: LoadedRng) -> Store:
    from kagzi.store.postgres import PostgresStore

    return PostgresStore(url, rng=rng)
