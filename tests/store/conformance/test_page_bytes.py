"""Pages end at a number of bytes, too: nothing is lost or told twice, however large the rows are."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec
import pytest

from kagzi.core import limits
from kagzi.core.error_details import ErrorDetail
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import Payload, RunEnd, RunFilter, RunKey, RunRecord
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.states import RunStatus
from kagzi.store.sessions import scan
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.connection.session import on_database
from tests.support.timeouts import LOADED_MACHINE_S

from .verbs import StoreHarness, begin, complete, complete_run, fail, fail_run, leased

PAGE_BYTES = 20_000
LARGE = 6_000  # three make a page
ROWS = 10

Item = TypeVar("Item")


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_BYTES", PAGE_BYTES)


def large(number: int = 0) -> ErrorDetail:
    return ErrorDetail(message=f"boom {number}", type="ValueError", traceback="x" * LARGE)


def assert_bounded(rows: Sequence[Any]) -> None:
    assert len(rows) == 1 or len(msgspec.json.encode(rows)) <= 1.5 * PAGE_BYTES


async def failed_runs(harness: StoreHarness, types: Sequence[str] = ("ship",)) -> list[RunKey]:
    runs: list[RunKey] = []
    for number in range(ROWS):
        workflow_type = types[number % len(types)]
        run = await harness.start(workflow_type=workflow_type)
        claimed = await harness.claim_one(workflow_type=workflow_type)
        assert claimed.run == run
        if number % 3 == 2:
            await harness.do(complete_run(leased(claimed)))
        else:
            await harness.do(fail_run(leased(claimed), large(number)))
        harness.clock.advance(us=1)
        runs.append(run)
    return runs


@pytest.mark.parametrize("direction", ["next", "prev"])
@pytest.mark.parametrize(
    "where",
    [
        RunFilter(),
        RunFilter(workflow_types=("ship", "pack")),
        RunFilter(statuses=(RunStatus.FAILED, RunStatus.COMPLETED)),
        RunFilter(statuses=(RunStatus.FAILED, RunStatus.COMPLETED), workflow_types=("ship", "pack")),
    ],
    ids=["all", "types", "statuses", "both"],
)
async def test_runs_with_large_errors(harness: StoreHarness, where: RunFilter, direction: Any) -> None:
    runs = await failed_runs(harness, ("ship", "pack"))
    seen: list[RunRecord] = []
    pages = 0
    cursor = None if direction == "next" else Cursor(0, "00000000-0000-0000-0000-000000000000", "prev")
    while True:
        page = await harness.store.list_runs("default", where, cursor, 1_000)
        assert_bounded(page.rows)
        pages += 1
        seen = [*seen, *page.rows] if direction == "next" else [*page.rows, *seen]
        if not page.has_more:
            break
        last = page.rows[-1 if direction == "next" else 0]
        cursor = Cursor(last.created_at, last.run.run_id, direction)
    assert [record.run for record in seen] == runs[::-1]
    assert pages > 1


async def test_steps_with_large_payloads(harness: StoreHarness) -> None:
    holding = await harness.running()
    for number in range(ROWS):
        size = 3 * PAGE_BYTES if number == 4 else LARGE  # one is larger than a page
        output = Payload(b"x" * size)
        await harness.write(begin(holding, f"s{number}"), complete(holding, f"s{number}", output))
    for payloads in (True, False):
        seen, pages = await walk_steps(harness, holding.run, payloads=payloads)
        assert [step.step_id for step in seen] == [f"s{number}" for number in range(ROWS)]
        assert (pages > 3) == payloads
        assert all((step.output is not None) == payloads for step in seen)


async def test_earlier_attempts_count_and_a_single_step_shows_its_latest(harness: StoreHarness) -> None:
    holding = await harness.running()
    often = RetryPolicy(maximum_attempts=20)
    attempts = {"a": 2, "b": 2, "many": 9, "c": 1, "plain": 0}
    for step_id, count in attempts.items():
        for attempt in range(1, count + 1):
            await harness.do(begin(holding, step_id, attempt, retry=often))
            await harness.do(fail(holding, step_id, large(attempt), attempt))
            harness.clock.advance(s=60)
        await harness.do(begin(holding, step_id, count + 1, retry=often))
        await harness.do(complete(holding, step_id, attempt=count + 1))
    seen, pages = await walk_steps(harness, holding.run, payloads=False)
    assert [step.step_id for step in seen] == list(attempts)
    assert pages > 2
    for step in seen:
        shown = [attempt.attempt for attempt in step.attempts]
        everything = list(range(1, attempts[step.step_id] + 1))
        if step.step_id == "many":
            assert shown == everything[-len(shown) :]
            assert 1 <= len(shown) < 9
        else:
            assert shown == everything
    alone = await harness.store.get_step(holding.run, "many")
    assert alone is not None
    assert alone.attempts == seen[2].attempts


async def walk_steps(harness: StoreHarness, run: RunKey, *, payloads: bool) -> tuple[list[Any], int]:
    seen: list[Any] = []
    pages = 0
    after = 0
    while True:
        page = await harness.store.list_steps(run, name=None, after_begun_seq=after, limit=1_000, payloads=payloads)
        assert page is not None
        assert_bounded([step.output for step in page.rows])
        seen += page.rows
        pages += 1
        if not page.has_more:
            return seen, pages
        after = page.rows[-1].begun_seq


async def test_endings_are_returned_for_as_many_as_fit(harness: StoreHarness) -> None:
    runs: list[RunKey] = []
    for number in range(ROWS):
        holding = await harness.running()
        if number != 1:
            await harness.do(complete_run(holding, "x" * LARGE))
        runs.append(holding.run)
    nobody = RunKey("default", "01890000-0000-7000-8000-000000000000")
    keys = [nobody, *runs, RunKey("elsewhere", runs[0].run_id)]
    answers: list[Any] = []
    calls = 0
    while len(answers) < len(keys):
        endings = await harness.store.endings_of(keys[len(answers) :])
        assert endings
        assert_bounded([end for end in endings if isinstance(end, RunEnd)])
        answers += endings
        calls += 1
    assert calls > 2
    assert answers[0] is None
    assert answers[-1] is None
    assert answers[2] is RunStatus.RUNNING
    assert [end.run for end in answers if isinstance(end, RunEnd)] == [runs[0], *runs[2:]]


async def test_exports_are_read_in_pages(harness: StoreHarness) -> None:
    holding = await harness.running()
    often = RetryPolicy(maximum_attempts=20)
    for number in range(ROWS):
        await harness.do(begin(holding, f"s{number}", retry=often))
        await harness.do(fail(holding, f"s{number}", large(number)))
        harness.clock.advance(s=60)
        await harness.do(begin(holding, f"s{number}", 2, retry=often))
        await harness.do(complete(holding, f"s{number}", Payload(b"x" * LARGE), attempt=2))
        await harness.signal(holding.run, "news", "x" * LARGE)
    run, store = holding.run, harness.store
    steps = await export(lambda last: store.export_steps(run, last.begun_seq if last else 0, 200))
    assert [step.step_id for step in steps] == [f"s{number}" for number in range(ROWS)]
    attempts = await export(lambda last: store.export_attempts(run, (last.step_id, last.seq) if last else ("", 0), 200))
    assert [attempt.step_id for attempt in attempts] == [f"s{number}" for number in range(ROWS)]
    signals = await export(lambda last: store.export_signals(run, last.number if last else 0, 200))
    assert len(signals) == ROWS


async def export(read: Callable[[Any], Awaitable[Sequence[Item]]]) -> list[Item]:
    everything: list[Item] = []
    pages = 0
    page = await read(None)
    while page:
        assert_bounded(page)
        everything += page
        pages += 1
        page = await read(page[-1])
    assert pages > 1
    return everything


# --- scans go apart ---------------------------------------------------------------------------------------------------


class BlockedScans:
    """Counts that hold whatever they run on until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, setup: str) -> None:
        self.running = 0
        self.most = 0
        self.arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._released = asyncio.Event()
        if setup == "postgres":
            from kagzi.store.postgres.store import PostgresStore

            monkeypatch.setattr(PostgresStore, "count_runs", scan(self._count))
        else:
            monkeypatch.setattr(SqliteStore, "count_runs", scan(on_database(self._count_in_thread)))

    async def _count(self, *_: object) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        self.arrived.set()
        await self._released.wait()
        self.running -= 1
        return 0

    def _count_in_thread(self, *arguments: object) -> int:
        return asyncio.run_coroutine_threadsafe(self._count(*arguments), self._loop).result(60)

    def release(self) -> None:
        self._released.set()


async def test_calls_pass_while_scans_take_long(
    harness: StoreHarness, setup: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 counts once kept everybody from reading: there was one thread to read, or four connections."""
    if setup == "sqlite-memory":
        return  # one connection is all there is; see test_scans_of_one_namespace_take_turns
    run = await harness.start()
    scans = BlockedScans(monkeypatch, setup)
    greedy = [asyncio.create_task(harness.store.count_runs("default", RunFilter(), 10)) for _ in range(64)]
    await asyncio.wait_for(scans.arrived.wait(), LOADED_MACHINE_S)
    async with asyncio.timeout(LOADED_MACHINE_S):
        assert (await harness.run(run)).run == run
        later = await harness.start(workflow_id="later")
        assert await harness.store.endings_of([later]) == [RunStatus.PENDING]
        assert await harness.store.list_runs("other", RunFilter(), None, 10) is not None, "another namespace scans"
        assert scans.most == limits.SCANS_PER_NAMESPACE
    scans.release()
    async with asyncio.timeout(60):
        assert await asyncio.gather(*greedy) == [0] * 64
    assert scans.most == limits.SCANS_PER_NAMESPACE


async def test_scans_of_one_namespace_take_turns_and_those_who_left_take_none(
    harness: StoreHarness, setup: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = BlockedScans(monkeypatch, setup)
    first = asyncio.create_task(harness.store.count_runs("default", RunFilter(), 10))
    await asyncio.wait_for(scans.arrived.wait(), LOADED_MACHINE_S)
    waiting = [asyncio.create_task(harness.store.count_runs("default", RunFilter(), 10)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in waiting[::2]:
        task.cancel()
    scans.release()
    async with asyncio.timeout(60):
        await asyncio.gather(first, *waiting, return_exceptions=True)
    assert scans.most == 1
    assert [task.cancelled() for task in waiting] == [True, False] * 10
    assert (
        await asyncio.wait_for(harness.store.list_runs("default", RunFilter(), None, 10), LOADED_MACHINE_S) is not None
    )
