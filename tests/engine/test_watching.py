"""Who watches the same run shares what is read of it, and misses nothing."""

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.events import EventKind, RunEvent, RunEventPage, RunMark
from kagzi.core.records import RunKey
from kagzi.core.states import RunStatus
from kagzi.engine.live.watching import Watching, WatchUpdate
from kagzi.store.protocol import Store
from tests.support.polling import until

RUN = RunKey("default", "00000000-0000-7000-8000-000000000000")
VIEWERS = 20


class HistoryStore:
    """The history of one run. A read sees what is there when it begins, and is answered when `open` is set."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []
        self.reads = 0
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None

    def add(self) -> None:
        seq = len(self.events) + 1
        self.events.append(RunEvent(seq=seq, at=seq, kind=EventKind.STEP_STARTED, step_id=f"step {seq}", name="step"))

    async def events_of(self, run: RunKey, after_seq: int, limit: int) -> RunEventPage:
        self.reads += 1
        seen, error = tuple(each for each in self.events if each.seq > after_seq), self.error
        await self.open.wait()
        if error is not None:
            raise error
        mark = RunMark(
            run=run, seq=len(self.events), status=RunStatus.RUNNING, created_at=0, finished_at=None, status_text=""
        )
        return RunEventPage(mark, seen, more=False)


class Viewer:
    def __init__(self, watch: AsyncGenerator[WatchUpdate]) -> None:
        self.seqs: list[int] = []
        self.error: Exception | None = None
        self.task = asyncio.ensure_future(self._read(watch))

    async def _read(self, watch: AsyncGenerator[WatchUpdate]) -> None:
        try:
            async for update in watch:
                self.seqs += [each.seq for each in update.events]
        except Unavailable as error:
            self.error = error


async def _ended(viewers: list[Viewer]) -> None:
    for viewer in viewers:
        viewer.task.cancel()
    await asyncio.gather(*(viewer.task for viewer in viewers), return_exceptions=True)


def _watching(store: HistoryStore) -> Watching:
    return Watching(cast("Store", store))


async def _viewers(watching: Watching) -> list[Viewer]:
    viewers = [Viewer(watching.watch(RUN.namespace, RUN.run_id, 0)) for _ in range(VIEWERS)]
    await until(lambda: all(viewer.seqs == [0] for viewer in viewers))
    return viewers


async def test_a_run_is_read_once_for_all_who_watch_it() -> None:
    store = HistoryStore()
    watching = _watching(store)
    viewers = await _viewers(watching)
    store.reads = 0
    for count in range(1, 6):
        store.add()
        watching.touched([RUN.run_id])
        await until(lambda count=count: all(viewer.seqs == list(range(count + 1)) for viewer in viewers))
    assert store.reads < 5 * VIEWERS / 4, "it is read for each of them"
    await _ended(viewers)


async def test_a_read_that_began_before_something_was_recorded_is_not_joined() -> None:
    store = HistoryStore()
    watching = _watching(store)
    store.open.clear()
    early = Viewer(watching.watch(RUN.namespace, RUN.run_id, 0))
    await until(lambda: store.reads == 1)
    store.add()
    watching.touched([RUN.run_id])
    late = Viewer(watching.watch(RUN.namespace, RUN.run_id, 0))
    await until(lambda: store.reads == 2)
    store.open.set()
    await until(lambda: early.seqs == late.seqs == [0, 1])
    await _ended([early, late])


async def test_what_fails_fails_for_all_who_wait_for_it_and_leaves_nothing_behind() -> None:
    store = HistoryStore()
    watching = _watching(store)
    viewers = await _viewers(watching)
    store.error = Unavailable("away")
    watching.touched([RUN.run_id])
    await until(lambda: all(viewer.error is not None for viewer in viewers))
    assert not watching._reads
    assert watching.budget.used(RUN.namespace) == 0


async def test_who_leaves_does_not_take_what_others_wait_for() -> None:
    store = HistoryStore()
    watching = _watching(store)
    store.open.clear()
    first = Viewer(watching.watch(RUN.namespace, RUN.run_id, 0))
    await until(lambda: store.reads == 1)
    second = Viewer(watching.watch(RUN.namespace, RUN.run_id, 0))
    await until(lambda: watching.budget.used(RUN.namespace) == 2)
    await _ended([first])
    store.open.set()
    await until(lambda: second.seqs == [0])
    with pytest.raises(asyncio.CancelledError):
        await first.task
    await _ended([second])
    assert not watching._reads
