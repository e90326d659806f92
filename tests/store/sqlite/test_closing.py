"""Opening and closing: what was asked for before the close is done, what comes after is told."""

import asyncio
from pathlib import Path

import pytest

from kagzi.core.errors import Unavailable
from kagzi.store.sqlite import SqliteMigrator, SqliteStore
from tests.store.conformance.verbs import StoreHarness
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds, LoadedRng


def exists(path: str) -> bool:
    return Path(path).exists()


async def test_writes_in_flight_are_finished(path: str, store: SqliteStore, harness: StoreHarness) -> None:
    writes = [asyncio.create_task(harness.start()) for _ in range(200)]
    await asyncio.sleep(0)  # they are queued now
    await store.close()
    runs = await asyncio.gather(*writes)
    assert not exists(f"{path}-wal"), "the log is folded into the file"
    again = SqliteStore(path, rng=LoadedRng())
    await again.open()
    assert None not in await again.endings_of(runs)
    await again.close()


async def test_closing_twice_and_at_once_is_harmless(store: SqliteStore) -> None:
    await asyncio.gather(store.close(), store.close())
    await store.close()


async def test_a_closed_store_says_so(store: SqliteStore, harness: StoreHarness) -> None:
    await store.close()
    with pytest.raises(Unavailable, match="not open"):
        await harness.start()
    with pytest.raises(Unavailable, match="not open"):
        await store.poll([], 0)


async def test_a_store_that_was_never_opened_says_so(path: str) -> None:
    store = SqliteStore(path, rng=LoadedRng())
    with pytest.raises(Unavailable, match="not open"):
        await store.poll([], 0)
    await store.close()


async def test_a_caller_that_goes_away_takes_nothing_with_it(harness: StoreHarness) -> None:
    starting = asyncio.create_task(harness.start(workflow_id="patient"))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await harness.start()  # after it in the queue
    assert await harness.store.get_run("default", workflow_id="patient") is not None


def test_a_loop_that_stops_with_calls_under_way_leaves_the_store_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "kagzi.db")

    async def ask_and_leave() -> SqliteStore:
        await SqliteMigrator(path).migrate()
        store = SqliteStore(path, rng=LoadedRng())
        await store.open()
        harness = StoreHarness(store, FakeClock(), CountingIds())
        tasks = [asyncio.create_task(harness.start()) for _ in range(50)]
        await asyncio.sleep(0)
        del tasks
        return store

    store = asyncio.run(ask_and_leave())

    async def reopen() -> None:
        harness = StoreHarness(store, FakeClock(), CountingIds(1))
        assert await harness.start()
        await store.close()

    asyncio.run(reopen())
