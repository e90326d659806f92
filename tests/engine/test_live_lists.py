"""Live lists: who watches is told how a list is, however many they are and however slowly they read, and the store
is asked no more often than was said. Time does not pass by itself here."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, cast

import msgspec
import pytest

from kagzi.core.effects import Effects
from kagzi.core.errors import InvalidArgument, ResourceExhausted, Unavailable
from kagzi.core.limits import LIVE_LIST_ROWS, LIVE_LISTS, LIVE_LISTS_SHARE, SHARES
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import Rows, RunFilter, RunKey, RunOrder, RunRecord
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.engine.live.live_lists import ListChange, ListRows, LiveLists, NewRows, RowChanged, RowGone
from kagzi.store.protocol import Store
from tests.support.timeouts import LOADED_MACHINE_S
from tests.support.virtual_loop import run_virtually

from .fakes import start

ALL = RunFilter()
FAILED = RunFilter(statuses=(RunStatus.FAILED,))
RUNNING = RunFilter(statuses=(RunStatus.RUNNING,))


class Runs:
    """A store that knows lists of runs by their statuses, and counts how often it is asked."""

    def __init__(self) -> None:
        self.rows: dict[str, RunRecord] = {}
        self.polls: list[tuple[str, float]] = []  # namespace, and when
        self.pages = 0
        self.away = False
        self.slow: dict[str, asyncio.Event] = {}  # namespaces whose lists wait for this

    def put(self, n: int, status: RunStatus = RunStatus.RUNNING, *, namespace: str = "default", **fields: Any) -> str:
        run_id = f"00000000-0000-7000-8000-{n:012d}"
        old = self.rows.get(run_id)
        if old is not None:
            self.rows[run_id] = msgspec.structs.replace(old, status=status, last_seq=old.last_seq + 1, **fields)
            return run_id
        self.rows[run_id] = RunRecord(
            run=RunKey(namespace, run_id),
            workflow_id=run_id,
            workflow_type="ship",
            status=status,
            created_at=n,
            last_seq=0,
            worker_id=None,
            cancel_requested=False,
            **fields,
        )
        return run_id

    async def list_runs(
        self, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int, *, order: RunOrder
    ) -> Rows[RunRecord]:
        self.pages += 1
        if cursor is None:
            self.polls.append((namespace, asyncio.get_running_loop().time()))
        if namespace in self.slow:
            await self.slow[namespace].wait()
        if self.away:
            raise Unavailable("the store is away")
        rows = [
            row
            for row in self.rows.values()
            if row.run.namespace == namespace
            and (not where.statuses or row.status in where.statuses)
            and (order == "created" or row.finished_at is not None)
        ]
        rows.sort(key=lambda row: _place(row, order), reverse=True)
        if cursor is not None:
            rows = [row for row in rows if _place(row, order) < (cursor.at, cursor.id)]
        return Rows(tuple(rows[:limit]), has_more=len(rows) > limit)


def _place(row: RunRecord, order: RunOrder) -> tuple[int, str]:
    return (row.created_at if order == "created" else row.finished_at or 0), row.run.run_id


class Scene:
    """Live lists on such a store, in a time of their own."""

    def __init__(self) -> None:
        self.store = Runs()
        self.lists = LiveLists(cast("Store", self.store))
        self._working = asyncio.create_task(self.lists.run())

    def watch(self, where: RunFilter = ALL, namespace: str = "default", **options: Any) -> "Reader":
        return Reader(self.lists.watch(namespace, where, **options))

    def written(self, *namespaces: str) -> None:
        """This server has changed runs of these."""
        self.lists.dispatched(Effects(changed=tuple(RunKey(namespace, "some run") for namespace in namespaces)))

    def polls(self, since: float) -> int:
        return sum(1 for _, at in self.store.polls if at >= since)

    async def stop(self) -> None:
        self._working.cancel()
        await asyncio.gather(self._working, return_exceptions=True)


class Reader:
    def __init__(self, changes: AsyncGenerator[ListChange]) -> None:
        self._changes = changes

    async def next(self) -> ListChange:
        return await anext(self._changes)

    async def read(self, within_s: float) -> list[ListChange]:
        """All that comes meanwhile."""
        read: list[ListChange] = []

        async def follow() -> None:
            async for change in self._changes:
                read.append(change)  # noqa: PERF401  one by one, so that they are there when it is cancelled

        task = asyncio.create_task(follow())
        await asyncio.sleep(within_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return read

    async def close(self) -> None:
        await self._changes.aclose()


def virtually(play: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        scene = Scene()
        try:
            await play(scene)
        finally:
            await scene.stop()

    run_virtually(main())


def now() -> float:
    return asyncio.get_running_loop().time()


def ids(change: ListChange) -> list[str]:
    assert isinstance(change, ListRows)
    return [record.run.run_id for record in change.rows]


def test_a_list_begins_with_its_rows_and_then_tells_what_changes() -> None:
    async def play(scene: Scene) -> None:
        a, b = scene.store.put(1), scene.store.put(2)
        reader = scene.watch(RUNNING)
        first = await reader.next()
        assert ids(first) == [b, a]
        assert first == ListRows(tuple(scene.store.rows[run_id] for run_id in (b, a)), more=False)
        scene.store.put(1, status_text="half done")
        assert await reader.next() == RowChanged(scene.store.rows[a])
        scene.store.put(2, RunStatus.FAILED)
        assert await reader.next() == RowGone(b)
        scene.store.put(3)
        assert await reader.next() == NewRows(1)
        scene.store.put(2, RunStatus.RUNNING)
        assert await reader.next() == NewRows(2), "it is back, and not shown"
        scene.store.put(3, RunStatus.FAILED)
        assert await reader.next() == NewRows(1)

    virtually(play)


def test_an_empty_list_shows_what_comes() -> None:
    async def play(scene: Scene) -> None:
        reader = scene.watch(FAILED)
        assert ids(await reader.next()) == []
        run_id = scene.store.put(7, RunStatus.FAILED)
        assert ids(await reader.next()) == [run_id]

    virtually(play)


def test_rows_that_others_push_down_are_still_told_of() -> None:
    async def play(scene: Scene) -> None:
        for n in range(100):
            scene.store.put(n)
        reader = scene.watch()
        first = await reader.next()
        assert isinstance(first, ListRows)
        assert (len(first.rows), first.more) == (LIVE_LIST_ROWS, True)
        oldest = first.rows[-1]
        for n in range(100, 100 + LIVE_LIST_ROWS):
            scene.store.put(n)
        assert await reader.next() == NewRows(LIVE_LIST_ROWS)
        scene.store.put(oldest.created_at, status_text="behind fifty others")
        assert await reader.next() == RowChanged(scene.store.rows[oldest.run.run_id])
        scene.store.put(1, status_text="never shown")
        scene.store.put(1_000)
        again = await reader.next()
        assert isinstance(again, ListRows), "more is new than is shown: the list as it is"
        assert again.rows[0].created_at == 1_000
        del scene.store.rows[again.rows[5].run.run_id]
        assert await reader.next() == RowGone(again.rows[5].run.run_id)

    virtually(play)


def test_by_end_a_run_that_ends_again_has_moved() -> None:
    async def play(scene: Scene) -> None:
        a = scene.store.put(1, RunStatus.FAILED, finished_at=10)
        b = scene.store.put(2, RunStatus.FAILED, finished_at=20)
        reader = scene.watch(FAILED, order="ended")
        assert ids(await reader.next()) == [b, a]
        scene.store.put(1, RunStatus.FAILED, finished_at=30)
        assert [await reader.next(), await reader.next()] == [RowGone(a), NewRows(1)]

    virtually(play)


def test_many_watchers_share_one_look_a_second() -> None:
    async def play(scene: Scene) -> None:
        scene.store.put(1)
        readers = [scene.watch() for _ in range(500)]
        firsts = await asyncio.gather(*(reader.next() for reader in readers))
        assert len({id(cast("ListRows", first).rows[0]) for first in firsts}) == 1, "one record for all"
        began = now()
        await asyncio.sleep(30)
        assert 29 <= scene.polls(began) <= 31
        scene.store.put(1, status_text="changed")
        changed = RowChanged(scene.store.rows[ids(firsts[0])[0]])
        assert all([await reader.next() == changed for reader in readers])

    virtually(play)


def test_what_this_server_writes_is_shown_at_once_and_five_times_a_second_at_most() -> None:
    async def play(scene: Scene) -> None:
        scene.store.put(1)
        reader, other = scene.watch(), scene.watch(namespace="elsewhere")
        await reader.next()
        await other.next()
        await asyncio.sleep(0.5)
        written_at = now()
        scene.store.put(1, status_text="a")
        scene.written("default", "nobody watches this")
        assert isinstance(await reader.next(), RowChanged)
        assert now() - written_at < 0.001
        began = now()
        for n in range(1_000):
            scene.store.put(1, status_text=str(n))
            scene.written("default")
            await asyncio.sleep(0.01)
        of_default = [at for namespace, at in scene.store.polls if at >= began and namespace == "default"]
        assert 45 <= len(of_default) <= 51
        assert 9 <= scene.polls(began) - len(of_default) <= 11, "the other one has nothing to do with it"

    virtually(play)


def test_more_than_sixteen_lists_are_looked_at_less_often() -> None:
    async def play(scene: Scene) -> None:
        readers = [scene.watch(RunFilter(workflow_types=(f"type-{n}",))) for n in range(64)]
        await asyncio.gather(*(reader.next() for reader in readers))
        await asyncio.sleep(4)
        began = now()
        await asyncio.sleep(40)
        assert 16 * 40 - 64 <= scene.polls(began) <= 16 * 40 + 64
        began = now()
        for _ in range(400):
            scene.written("default")
            await asyncio.sleep(0.1)
        assert scene.polls(began) <= 16 * 5 * 40 + 64
        for reader in readers[1:]:
            await reader.close()
        await asyncio.sleep(4)
        began = now()
        await asyncio.sleep(10)
        assert 9 <= scene.polls(began) <= 11

    virtually(play)


def test_nobody_watches_and_nothing_is_done() -> None:
    async def play(scene: Scene) -> None:
        reader = scene.watch()
        await reader.next()
        await reader.close()
        await asyncio.sleep(2)
        began, pages = now(), scene.store.pages
        for _ in range(100):
            scene.written("default")
            await asyncio.sleep(1)
        assert (scene.polls(began), scene.store.pages) == (0, pages)
        assert scene.lists.budget.used("default") == 0

    virtually(play)


def test_a_reader_that_sleeps_is_told_how_it_is_and_nothing_in_between() -> None:
    async def play(scene: Scene) -> None:
        for n in range(LIVE_LIST_ROWS):
            scene.store.put(n)
        reader = scene.watch()
        await reader.next()
        for n in range(2_000):  # it does not read
            scene.store.put(n % LIVE_LIST_ROWS, status_text=str(n))
            scene.written("default")
            await asyncio.sleep(0.3)
        changes = await reader.read(1.5)
        assert 0 < len(changes) <= 2 * LIVE_LIST_ROWS, "at most each row as it was when it asked, and as it is"
        last = {change.record.run.run_id: change.record for change in changes if isinstance(change, RowChanged)}
        assert last == scene.store.rows

    virtually(play)


def test_a_slow_namespace_holds_up_no_other() -> None:
    async def play(scene: Scene) -> None:
        scene.store.put(1, namespace="quick")
        slow, quick = scene.watch(namespace="slow"), scene.watch(namespace="quick")
        await slow.next()
        await quick.next()
        scene.store.slow["slow"] = asyncio.Event()
        await asyncio.sleep(2)
        scene.store.put(1, status_text="goes on", namespace="quick")
        scene.written("slow", "quick")
        began = now()
        assert isinstance(await quick.next(), RowChanged)
        assert now() - began < 1

    virtually(play)


def test_a_store_that_is_away_is_waited_for_by_those_who_have_a_list() -> None:
    async def play(scene: Scene) -> None:
        run_id = scene.store.put(1)
        reader = scene.watch()
        await reader.next()
        scene.store.away = True
        with pytest.raises(Unavailable):
            await scene.watch(FAILED).next()
        assert await reader.read(5) == []
        assert scene.lists.budget.used("default") == 0, "it was cancelled while it read"
        reader = scene.watch()
        with pytest.raises(Unavailable):
            await reader.next()
        scene.store.away = False
        assert ids(await scene.watch().next()) == [run_id]

    virtually(play)


def test_a_namespace_has_its_share_of_watchers() -> None:
    async def play(scene: Scene) -> None:
        readers = [scene.watch() for _ in range(LIVE_LISTS)]
        await asyncio.gather(*(reader.next() for reader in readers))
        with pytest.raises(ResourceExhausted):
            await scene.watch().next()
        others = [scene.watch(namespace=f"n{n}") for n in range(SHARES) for _ in range(LIVE_LISTS_SHARE)]
        await asyncio.gather(*(reader.next() for reader in others))

    virtually(play)


def test_what_cannot_be_listed_cannot_be_watched() -> None:
    async def play(scene: Scene) -> None:
        for where, order in (
            (RunFilter(ended_after=1), "created"),
            (RunFilter(id_prefix="a"), "ended"),
            (RunFilter(workflow_types=("",)), None),
        ):
            with pytest.raises(InvalidArgument):
                await scene.watch(where, order=order).next()
        assert scene.lists.budget.used("default") == 0

    virtually(play)


async def test_a_run_that_is_started_here_is_shown_at_once(engine: Engine) -> None:
    async with asyncio.timeout(LOADED_MACHINE_S):
        changes = engine.live_lists.watch("default", RunFilter())
        assert await anext(changes) == ListRows((), more=False)
        outcome = await engine.runs.start(start())
        [record] = cast("ListRows", await anext(changes)).rows
        assert record.run.run_id == outcome.run_id
        await engine.control.terminate("default", run_id=outcome.run_id)
        changed = await anext(changes)
        assert isinstance(changed, RowChanged)
        assert changed.record.status is RunStatus.CANCELLED
        await changes.aclose()
