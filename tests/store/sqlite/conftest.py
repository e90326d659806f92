"""Stores of this folder: a migrated file, opened and closed by the test's fixture."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kagzi.store.sqlite import SqliteMigrator, SqliteStore
from tests.store.conformance.verbs import Cellar
from tests.support.clock import FakeClock
from tests.support.seams import CountingIds, LoadedDice


@pytest.fixture
async def path(tmp_path: Path) -> str:
    path = str(tmp_path / "kagzi.db")
    await SqliteMigrator(path).migrate()
    return path


@pytest.fixture
async def store(path: str) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, dice=LoadedDice())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def cellar(store: SqliteStore) -> Cellar:
    return Cellar(store, FakeClock(), CountingIds())
