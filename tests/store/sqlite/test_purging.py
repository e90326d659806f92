"""Deleting goes by whole keys. One part of a key too few, and each batch would read all runs, or all labels of one
value."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from kagzi.store.sqlite.connection.connection import Database
from kagzi.store.sqlite.migrate import apply_migrations
from kagzi.store.sqlite.statements import SQL


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        apply_migrations(Database(connection), ":memory:")
        yield connection


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("runs_to_delete", "(run_id=?)"),
        ("delete_runs", "(run_id=?)"),
        ("delete_steps", "(run_id=?)"),
        ("delete_attempts", "(run_id=?)"),
        ("delete_signals", "(run_id=?)"),
        ("delete_links_to", "(namespace=? AND child_run_id=? AND parent_run_id=?)"),
        ("delete_labels", "(namespace=? AND key=? AND value=? AND created_at=? AND run_id=?)"),
    ],
)
def test_by_the_whole_key(connection: sqlite3.Connection, statement: str, key: str) -> None:
    parameters = {"run_ids": "[]", "labels": "[]", "namespace": "default", "until": 0}
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {SQL[statement]}", parameters)]
    assert plan[0].startswith("SEARCH"), plan
    assert plan[0].endswith(key), plan
