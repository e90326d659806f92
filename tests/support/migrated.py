"""Databases that are migrated already: a copy takes a millisecond, the migrations of one schema after the other forty.

The migrations themselves run once in each test process, to make what is copied, in every server process of the
acceptance tests, and in the tests that are about them.
"""

import asyncio
import functools
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.postgres import Databases

_copying = threading.Lock()


def copy_migrated_sqlite(path: Path) -> None:
    """A new file, as `kagzi db migrate` leaves it."""
    data = _migrated_file()
    path.touch(mode=0o600)
    path.write_bytes(data)


@functools.cache
def _migrated_file() -> bytes:
    from kagzi.store.sqlite import SqliteMigrator

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "kagzi.db"
        _run_aside(SqliteMigrator(str(path)).migrate)
        assert [each.name for each in Path(directory).iterdir()] == [path.name], "nothing is left in a WAL"
        return path.read_bytes()


@contextmanager
def copied_into_memory() -> Iterator[None]:
    """Meanwhile stores in memory begin as copies."""
    from kagzi.store.sqlite.connection import connections

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(connections, "apply_migrations", lambda database, _: _copy_into(database._connection))
        yield


def _copy_into(memory: sqlite3.Connection) -> None:
    with _copying:
        _migrated_memory().backup(memory)


@functools.cache
def _migrated_memory() -> sqlite3.Connection:
    from kagzi.store.sqlite.connection.connection import Database
    from kagzi.store.sqlite.migrate import apply_migrations

    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    apply_migrations(Database(connection), ":memory:")
    return connection


class MigratedPostgres:
    """Copies of one migrated database."""

    def __init__(self, databases: Databases, template: str) -> None:
        self._databases = databases
        self._template = template

    @contextmanager
    def database(self) -> Iterator[str]:
        with self._databases.database(template=self._template) as url:
            yield url


@contextmanager
def migrated_postgres_databases(databases: Databases) -> Iterator[MigratedPostgres]:
    from kagzi.store.postgres import PostgresMigrator

    with databases.database() as url:
        _run_aside(PostgresMigrator(url).migrate)
        yield MigratedPostgres(databases, url)


def _run_aside(work: Callable[[], object]) -> None:
    """Run a coroutine function to its end, also where a loop is already running in this thread."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(lambda: asyncio.run(work())).result()  # type: ignore[arg-type]
