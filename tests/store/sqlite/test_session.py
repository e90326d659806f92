"""Verbs that both stores share, in the thread of SQLite: they end at once, and the writer remembers nothing stale."""

import asyncio
import sqlite3

import pytest

from kagzi.core.errors import InternalError
from kagzi.core.records import NamespaceRecord
from kagzi.core.workflow_types.queues import TypeLimits
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.connection.connection import Database
from kagzi.store.sqlite.connection.session import Session, run_to_end
from kagzi.store.sqlite.write.fast_path import Writer


async def test_a_verb_that_waits_is_refused() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(InternalError, match="waited"):
        run_to_end(waits())


async def test_a_statement_without_rows_returns_none() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE namespaces (namespace TEXT PRIMARY KEY, created_at INTEGER)")
    session = Session(Database(connection))
    assert await session.write("create_namespace", namespace="ours", now=1) == []
    assert connection.execute("SELECT * FROM namespaces").fetchall() == [("ours", 1)]
    connection.close()


async def test_what_the_writer_remembers_is_forgotten_when_it_changes(store: SqliteStore) -> None:
    def namespace(writer: Writer) -> NamespaceRecord:
        return writer.namespaces.ensure("ours", 1)

    def max_running(writer: Writer) -> int | None:
        limits = writer.types.limits("ours", "flow")
        return None if limits is None else limits.max_running

    for limit in (5, None):
        await store.put_namespace(NamespaceRecord(namespace="ours", open_runs_limit=limit), 1)
        assert (await store._change(namespace)).open_runs_limit == limit
    await store.update_namespace(NamespaceRecord(namespace="ours", schedules_limit=3), ["schedules_limit"])
    assert (await store._change(namespace)).schedules_limit == 3
    for most in (7, 8):
        await store.put_type_limits("ours", "flow", TypeLimits(max_running=most), 1)
        assert await store._change(max_running) == most
