"""Files that are taken away under an open store: it says so, refuses everything, and saves what it had acknowledged."""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.records import RunFilter
from kagzi.store.sqlite import SqliteStore
from tests.store.conformance.verbs import StoreHarness
from tests.support.providers import LoadedRng

RUNS = 20


def delete_log(path: str) -> None:
    Path(f"{path}-wal").unlink()


def delete_log_and_index(path: str) -> None:
    Path(f"{path}-wal").unlink()
    Path(f"{path}-shm").unlink()


def replace_log(path: str) -> None:
    shutil.copy(f"{path}-wal", f"{path}-copy")
    Path(f"{path}-copy").replace(f"{path}-wal")


def delete_file(path: str) -> None:
    Path(path).unlink()


def replace_file(path: str) -> None:
    shutil.copy(path, f"{path}-copy")
    Path(f"{path}-copy").replace(path)


def delete_all(path: str) -> None:
    for name in (path, f"{path}-wal", f"{path}-shm"):
        Path(name).unlink()


HARMS = [delete_log, delete_log_and_index, replace_log, delete_file, replace_file, delete_all]


def saved_file(path: str) -> str:
    """Where the log says that everything is."""
    saved = f"{path}.saved-{os.getpid()}"
    return saved if Path(saved).exists() else path


def put_back(saved: str, path: str) -> None:
    """The remedy of the log."""
    assert Path(saved).stat().st_mode & 0o077 == 0
    for name in (f"{path}-wal", f"{path}-shm"):
        Path(name).unlink(missing_ok=True)
    Path(saved).replace(path)


async def runs_in(path: str) -> int:
    store = SqliteStore(path, rng=LoadedRng())
    await store.open()
    try:
        return await store.count_runs("default", RunFilter(), 10_000)
    finally:
        await store.close()


@pytest.mark.parametrize("harm", HARMS)
async def test_nothing_is_acknowledged_any_more_and_nothing_acknowledged_is_lost(
    store: SqliteStore, harness: StoreHarness, path: str, harm: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    await harness.start_many(RUNS)
    harm(path)
    with pytest.raises(Unavailable):
        await harness.start_many(1)
    with pytest.raises(Unavailable):
        await harness.start_many(1)
    for read in (store.count_runs("default", RunFilter(), 10), store.get_run("default", workflow_id="x")):
        with pytest.raises(Unavailable, match="the server's log"):
            await read
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.CRITICAL]
    assert len(logged) == 2  # what happened, what was saved; once
    assert path in logged[0]
    assert saved_file(path) in logged[1]
    await store.close()
    kept = saved_file(path)
    if kept != path:
        put_back(kept, path)
    assert await runs_in(path) in (RUNS, RUNS + 1)  # the one that was refused had been committed


@pytest.mark.parametrize("harm", HARMS)
async def test_an_idle_store_notices_on_its_next_poll(
    store: SqliteStore, path: str, harm: Callable[[str], None]
) -> None:
    await store.poll((), 0)
    harm(path)
    with pytest.raises(Unavailable):
        await store.poll((), 0)


async def test_what_sqlite_does_itself_is_no_alarm(store: SqliteStore, harness: StoreHarness, path: str) -> None:
    """Checkpoints, and others that open and close the file, leave the names as they are."""
    for _ in range(5):
        await harness.start_many(RUNS)
        other = SqliteStore(path, rng=LoadedRng())
        await other.open()
        await other.close()
        await store.poll((), 0)
    assert await store.count_runs("default", RunFilter(), 10_000) == 5 * RUNS
