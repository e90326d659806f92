"""The three set-ups a store can be opened in. Whatever a test says of one, it says of all."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg

from kagzi.store.protocol import Store
from tests.support.migrated import copy_migrated_sqlite
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
    path = str(directory / "kagzi.db")
    copy_migrated_sqlite(Path(path))
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


# Only what has rows, and by TRUNCATE only what has many: for that a file is made anew for each table and each of its
# indexes. The lock waits for what a connection that was cut off may still be about to commit.
_EMPTY = """
DO $$
DECLARE
    each regclass;
    tables regclass[] := ARRAY(SELECT format('%I', tablename)::regclass FROM pg_tables
        WHERE schemaname = current_schema() AND tablename <> 'schema_migrations');
    is_used boolean;
BEGIN
    EXECUTE 'LOCK TABLE ' || array_to_string(tables, ', ') || ' IN SHARE ROW EXCLUSIVE MODE';
    FOREACH each IN ARRAY tables LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', each) INTO is_used;
        IF pg_table_size(each) > 500000 THEN
            EXECUTE format('TRUNCATE %s', each);
        ELSIF is_used THEN
            EXECUTE format('DELETE FROM %s', each);
        END IF;
    END LOOP;
END $$
"""


class _Emptying:
    """By a connection that has met these tables before, with a loop of its own: those of the tests end with them."""

    def __init__(self, url: str, thread: ThreadPoolExecutor, runner: asyncio.Runner) -> None:
        self._url = url
        self._thread = thread
        self._runner = runner
        self._connection: asyncpg.Connection | None = None

    def begin(self) -> "Future[None]":
        return self._thread.submit(lambda: self._runner.run(self._empty()))

    def end(self) -> None:
        if self._connection is not None:
            self._thread.submit(lambda: self._runner.run(self._connection.close())).result()  # type: ignore[union-attr]

    async def _empty(self) -> None:
        if self._connection is not None:
            try:
                await self._connection.execute(_EMPTY)
            except (asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError, asyncpg.InterfaceError):
                self._connection.terminate()  # a test has ended all connections
            else:
                return
        self._connection = await asyncpg.connect(self._url)
        await self._connection.execute(_EMPTY)


_emptying: dict[str, _Emptying] = {}


@contextmanager
def emptied_quickly(url: str) -> Iterator[None]:
    """Meanwhile `empty_postgres` knows this database."""
    with asyncio.Runner() as runner, ThreadPoolExecutor(max_workers=1) as thread:
        emptying = _emptying[url] = _Emptying(url, thread, runner)
        try:
            yield
        finally:
            del _emptying[url]
            emptying.end()


async def empty_postgres(url: str) -> None:
    """Every table as the migrations left it, but for their own record."""
    await asyncio.wrap_future(_emptying[url].begin())


# Each driver is loaded by the tests that need it, so that one store's tests run where the other cannot.


def _sqlite(path: str, rng: LoadedRng) -> Store:
    from kagzi.store.sqlite import SqliteStore

    return SqliteStore(path, rng=rng)


def _postgres(url: str, rng: LoadedRng) -> Store:
    from kagzi.store.postgres import PostgresStore

    return PostgresStore(url, rng=rng)
