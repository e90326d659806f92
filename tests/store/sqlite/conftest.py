"""Stores of this folder: a migrated file, opened and closed by the test's fixture."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kagzi.store.sqlite import SqliteStore
from tests.store.conformance.verbs import StoreHarness
from tests.support.clock import FakeClock
from tests.support.migrated import copy_migrated_sqlite
from tests.support.providers import CountingIds, LoadedRng


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "kagzi.db"
    copy_migrated_sqlite(path)
    return str(path)


@pytest.fixture
async def store(path: str) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, rng=LoadedRng())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def harness(store: SqliteStore) -> StoreHarness:
    return StoreHarness(store, FakeClock(), CountingIds())


@pytest.fixture
async def harnesses() -> AsyncIterator[list[StoreHarness]]:
    """Three stores that must stay equal, however much of its runs the writer of each remembers."""
    harnesses: list[StoreHarness] = []
    for _ in range(3):
        store = SqliteStore(":memory:", rng=LoadedRng())
        await store.open()
        harnesses.append(StoreHarness(store, FakeClock(), CountingIds()))
    yield harnesses
    for harness in harnesses:
        await harness.store.close()
