"""The write-ahead log is folded into the file beside the thread that writes, and stays short; and most commits write
over what is there of it."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.connection.checkpoints import AIM_BYTES, FRAME_BYTES, PIECE_BYTES, SMALL_LOG_BYTES
from tests.store.conformance.verbs import StoreHarness, payload

BATCHES, PER_BATCH = 40, 100
INPUT = payload('"' + "x" * 20_000 + '"')
BATCH_BYTES = PER_BATCH * 20_000
WRITTEN = BATCHES * BATCH_BYTES  # at least


def size_of(path: str) -> int:
    return Path(path).stat().st_size


def end_of(path: str) -> bytes:
    return Path(path).read_bytes()[-FRAME_BYTES:]


async def test_the_log_stays_short_while_much_is_written(store: SqliteStore, harness: StoreHarness, path: str) -> None:
    """Without folding all of this would still be in the log: SQLite itself begins at 32,000 pages."""
    longest = 0
    for _ in range(BATCHES):
        await harness.start_many(PER_BATCH, input=INPUT)
        longest = max(longest, size_of(f"{path}-wal"))
        # A loaded machine may let the writer run and the checkpoint that it has begun wait.
        if (task := store._checkpoints._task) is not None:  # type: ignore[union-attr]
            await task
    assert WRITTEN < 32_000 * 4_096
    assert longest < WRITTEN * 0.7
    assert size_of(path) > WRITTEN * 0.3


async def lengthened_by(harness: StoreHarness, path: str, starts: int) -> tuple[int, int]:
    """How many single starts recovered the log too short, and how long it is then."""
    log, lengthened = f"{path}-wal", 0
    for _ in range(starts):
        before = size_of(log)
        await harness.start()
        lengthened += size_of(log) > before
    return lengthened, size_of(log)


async def test_few_commits_lengthen_the_log(harness: StoreHarness, path: str) -> None:
    """A commit that lengthens it waits for the file system as well. Each of these starts writes ten pages or more."""
    await lengthened_by(harness, path, SMALL_LOG_BYTES // FRAME_BYTES // 4)
    lengthened, size = await lengthened_by(harness, path, 100)
    assert size > 500 * FRAME_BYTES
    assert 0 < lengthened <= 100 * 40 * FRAME_BYTES // PIECE_BYTES


async def test_a_store_that_is_hardly_used_has_a_short_log(harness: StoreHarness, path: str) -> None:
    await harness.start()
    assert 0 < size_of(f"{path}-wal") < SMALL_LOG_BYTES


async def test_a_log_with_space_is_read_by_others(harness: StoreHarness, path: str, tmp_path: Path) -> None:
    """What a crash leaves: the files as they are. Everything that was acknowledged is in them, and nothing else."""
    runs = {(await harness.start()).run_id for _ in range(60)}
    assert end_of(f"{path}-wal") == bytes(FRAME_BYTES), "there is no space"
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    with contextlib.closing(sqlite3.connect(copy)) as database:
        recovered = {run_id for (run_id,) in database.execute("SELECT run_id FROM runs")}
        assert recovered == runs
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_log_that_rows_do_not_explain_is_checkpointed(harness: StoreHarness, path: str) -> None:
    """Rows that lie in many pages: far fewer of them than were learned to make a log of the length that is aimed at."""
    store = harness.store
    assert isinstance(store, SqliteStore)
    assert store._checkpoints is not None
    store._checkpoints._rows = 50_000
    longest = 0
    for _ in range(2 * AIM_BYTES // BATCH_BYTES):
        await harness.start_many(PER_BATCH, input=INPUT)
        longest = max(longest, size_of(f"{path}-wal"))
        if store._checkpoints._task is not None:
            await store._checkpoints._task
    assert longest < AIM_BYTES + 2 * BATCH_BYTES
