"""Small writes are done in the loop's own thread while commits are quick: the rule, and what may go wrong there."""

import asyncio
import itertools
import sqlite3
import threading
from collections.abc import Callable

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.records import Payload, RunLease
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Recorded
from kagzi.core.states import RunStatus
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.connection.inline import OPERATIONS, PAYLOAD_BYTES, QUICK_IN_A_ROW, QUICK_S, InlineCalls
from tests.store.conformance.verbs import StoreHarness, begin, complete, fetch, park, the
from tests.support.timeouts import LOADED_MACHINE_S


class Disk:
    """What the commits of a store take by the clock that times them, and in which threads they are done."""

    def __init__(self, store: SqliteStore) -> None:
        assert store._writer is not None
        self.database = store._writer.database
        self.store = store
        self.commit_s = 0.0
        self.threads: list[int] = []
        self._at = 0.0
        self._commit = self.database.commit
        self.database.commit = self.commit  # type: ignore[method-assign]
        store._inline = InlineCalls(timer=lambda: self._at)

    def commit(self) -> None:
        self.threads.append(threading.get_ident())
        self._at += self.commit_s
        self._commit()

    def done_inline(self) -> list[bool]:
        """Of each commit since this was last asked."""
        threads, self.threads = self.threads, []
        return [thread == threading.get_ident() for thread in threads]


class Steps:
    """Steps of one run, written one by one, each in a turn of the loop of its own."""

    def __init__(self, harness: StoreHarness, holding: RunLease) -> None:
        self.harness, self.holding, self.count = harness, holding, 0

    async def write(self, steps: int) -> None:
        for _ in range(steps):
            self.count += 1
            step = f"step-{self.count}"
            recorded = the(
                Recorded, (await self.harness.write(begin(self.holding, step), complete(self.holding, step)))[1]
            )
            assert recorded.seq == 2 * self.count
            await asyncio.sleep(0)


@pytest.fixture
async def holding(harness: StoreHarness) -> RunLease:
    return await harness.running()


@pytest.fixture
def disk(store: SqliteStore, holding: RunLease) -> Disk:
    return Disk(store)


@pytest.fixture
def steps(harness: StoreHarness, holding: RunLease, disk: Disk) -> Steps:
    return Steps(harness, holding)


async def test_a_store_whose_commits_are_quick_needs_no_other_thread(
    store: SqliteStore, disk: Disk, steps: Steps
) -> None:
    disk.commit_s = QUICK_S * 0.99
    await steps.write(QUICK_IN_A_ROW)
    assert not any(disk.done_inline()), "nobody knew that the disk is quick"
    calls = store._writing.calls
    await steps.write(20)
    assert disk.done_inline() == [True] * 20
    assert store._writing.calls == calls


async def test_a_store_whose_commits_are_slow_is_not_written_inline(disk: Disk, steps: Steps) -> None:
    disk.commit_s = QUICK_S * 1.01
    await steps.write(5 * QUICK_IN_A_ROW)
    assert not any(disk.done_inline())


async def test_the_loop_waits_for_one_slow_commit_and_not_for_the_next(disk: Disk, steps: Steps) -> None:
    await steps.write(QUICK_IN_A_ROW)
    disk.done_inline()
    disk.commit_s = 10.0
    await steps.write(3 * QUICK_IN_A_ROW)
    assert disk.done_inline() == [True] + [False] * (3 * QUICK_IN_A_ROW - 1)
    disk.commit_s = 0.0
    await steps.write(QUICK_IN_A_ROW + 2)
    assert disk.done_inline() == [False] * QUICK_IN_A_ROW + [True] * 2, "quick again"


async def test_ends_of_few_runs_are_read_inline_while_reads_are_quick(
    store: SqliteStore, harness: StoreHarness, holding: RunLease
) -> None:
    ticks = itertools.count()
    read_s = 0.0
    store._inline_reads = InlineCalls(timer=lambda: next(ticks) * read_s)  # asked before and after each read

    async def read(times: int) -> int:
        """How many of so many reads were done in the thread."""
        calls = store._reading.calls
        for _ in range(times):
            assert await store.endings_of([holding.run]) == [RunStatus.RUNNING]
            await asyncio.sleep(0)
        return store._reading.calls - calls

    assert await read(QUICK_IN_A_ROW + 10) == QUICK_IN_A_ROW
    read_s = 1.0
    assert await read(10) == 9, "the loop waited for one"
    read_s = 0.0
    assert await read(QUICK_IN_A_ROW + 10) == QUICK_IN_A_ROW
    calls = store._reading.calls
    await store.endings_of([holding.run] * (OPERATIONS + 1))
    assert store._reading.calls == calls + 1, "many at once"


BYTES = Payload(b"x" * PAYLOAD_BYTES)


@pytest.mark.parametrize(
    ("commands", "inline"),
    [
        (lambda leased: [begin(leased, f"s{n}") for n in range(OPERATIONS)], True),
        (lambda leased: [begin(leased, f"s{n}") for n in range(OPERATIONS + 1)], False),
        (lambda leased: [begin(leased, "s"), complete(leased, "s", BYTES)], True),
        (lambda leased: [begin(leased, "s", input=BYTES), complete(leased, "s")], False),
        (lambda leased: [fetch(leased)], False),
        (lambda leased: [park(leased)], False),
    ],
    ids=["few", "many", "few_bytes", "many_bytes", "results", "parking"],
)
async def test_only_few_plain_operations_with_few_bytes_are_written_inline(
    commands: Callable[[RunLease], list[Command]], inline: bool, disk: Disk, steps: Steps
) -> None:
    await steps.write(QUICK_IN_A_ROW)
    disk.done_inline()
    await steps.harness.write(*commands(steps.holding))
    assert disk.done_inline() == [inline]


async def test_what_came_first_is_written_first(harness: StoreHarness, holding: RunLease, disk: Disk) -> None:
    await Steps(harness, holding).write(QUICK_IN_A_ROW)
    disk.done_inline()
    many = asyncio.create_task(harness.write(*(begin(holding, f"many-{n}") for n in range(OPERATIONS + 1))))
    await asyncio.sleep(0)  # it is queued now, and perhaps being written
    few = await harness.write(begin(holding, "few"))
    first = await many
    assert few[0].seq == first[-1].seq + 1  # type: ignore[union-attr]
    assert disk.done_inline() == [False, False]


async def test_one_write_in_a_turn_of_the_loop_is_done_inline(
    harness: StoreHarness, holding: RunLease, disk: Disk
) -> None:
    await Steps(harness, holding).write(QUICK_IN_A_ROW)
    disk.done_inline()
    for n in range(3):
        await harness.write(begin(holding, f"s{n}"))
    # The second is handed to the thread, so that the loop gets its turn; then there may be another one.
    assert disk.done_inline()[:2] == [True, False]


async def test_a_full_disk_is_reported_and_passes(
    store: SqliteStore, harness: StoreHarness, holding: RunLease, disk: Disk, steps: Steps
) -> None:
    [[pages]] = await store._writing.call(disk.database.execute, "PRAGMA page_count")
    await steps.write(QUICK_IN_A_ROW)
    await store._writing.call(disk.database.execute, f"PRAGMA max_page_count = {pages}")
    calls = store._writing.calls
    big = [begin(holding, f"big-{n}", input=Payload(b"x" * (PAYLOAD_BYTES // 4))) for n in range(4)]
    with pytest.raises(Unavailable, match="full"):
        await harness.write(*big)
    assert store._writing.calls == calls, "it was not found out inline"
    await store._writing.call(disk.database.execute, "PRAGMA max_page_count = 1000000")
    await steps.write(3)


async def test_a_rollback_inline_is_not_remembered(
    harness: StoreHarness, holding: RunLease, disk: Disk, steps: Steps
) -> None:
    await steps.write(QUICK_IN_A_ROW)
    commit, disk.database.commit = disk.database.commit, fail_to_commit  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="I/O"):
        await harness.write(begin(holding, "never"), complete(holding, "never"))
    disk.database.commit = commit  # type: ignore[method-assign]
    await steps.write(1)
    assert "never" not in await harness.steps(holding.run)


def fail_to_commit() -> None:
    raise sqlite3.OperationalError("disk I/O error")


async def test_the_loop_does_not_wait_for_another_process(
    path: str, harness: StoreHarness, holding: RunLease, disk: Disk, steps: Steps
) -> None:
    await steps.write(QUICK_IN_A_ROW)
    disk.done_inline()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(harness.write(begin(holding, "patient")))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not writing.done()
    assert disk.store._writing.calls != disk.store._writing._done, "the thread waits for the lock"
    other.execute("ROLLBACK")
    other.close()
    async with asyncio.timeout(LOADED_MACHINE_S):
        await writing
    assert disk.done_inline() == [False]


async def test_a_caller_that_goes_away_takes_nothing_with_it(
    harness: StoreHarness, holding: RunLease, disk: Disk, steps: Steps
) -> None:
    await steps.write(QUICK_IN_A_ROW)
    inline = asyncio.create_task(harness.write(begin(holding, "inline")))
    queued = asyncio.create_task(harness.write(begin(holding, "queued")))
    await asyncio.sleep(0)
    assert inline.done()
    queued.cancel()
    with pytest.raises(asyncio.CancelledError):
        await queued
    await harness.write(begin(holding, "after"))
    written = await harness.steps(holding.run)
    assert written["inline"].begun_seq < written["queued"].begun_seq < written["after"].begun_seq


async def test_a_store_that_closes_takes_nothing_more(
    store: SqliteStore, holding: RunLease, disk: Disk, steps: Steps
) -> None:
    await steps.write(QUICK_IN_A_ROW)
    closing = asyncio.create_task(store.close())
    with pytest.raises(Unavailable, match="not open"):
        await steps.write(1_000_000)
    await closing
    again = SqliteStore(store._path, rng=store._rng)
    await again.open()
    record = await again.get_run("default", run_id=holding.run.run_id)
    await again.close()
    assert record is not None
    assert record.last_seq == 2 * (steps.count - 1), "what was acknowledged is there"
