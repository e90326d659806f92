"""However long the store is away, locked or broken: no background task gives up, and the engine goes on."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable

import pytest

from kagzi.core.effects import CHILDREN_DUE
from kagzi.core.error_details import ErrorCode
from kagzi.core.errors import Contended, StatementFailed, StoreBroken, Unavailable
from kagzi.core.records import ClaimedRun, RunFilter
from kagzi.core.run.outcomes import Refused, RunClosed, Started
from kagzi.core.run.step_logs import LogLine, StepLogLines
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.engine.background import housekeeping
from kagzi.engine.background.supervisor import Supervisor
from kagzi.engine.live import live_lists, watching
from kagzi.engine.live.live_lists import RowChanged
from kagzi.store.protocol import TypeKey, Wake
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    TIMEOUT_S,
    Exchange,
    LocalBus,
    RecordingOutlet,
    TroubledStore,
    complete,
    leased,
    start,
    status_of,
    until,
    worker,
)

FAILURES = 25  # of each task: with five that count the engine would stop
SOMEWHERE = "db-7.internal:5432/billing"
STORE_ERRORS: list[type[Exception]] = [Unavailable, Contended, StoreBroken, StatementFailed, TimeoutError]
TYPE = TypeKey("default", "hello")


class FailingBus(LocalBus):
    def __init__(self, store: TroubledStore) -> None:
        super().__init__(Exchange())
        self._store = store

    async def publish(self, wake: Wake) -> None:
        self._store.calls["publish"] += 1
        if self._store.raises is not None:
            raise self._store.raises()


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are short, so that there can be many of them."""
    for name, module in list(sys.modules.items()):
        if name.startswith("kagzi.engine.") and hasattr(module, "backoff_s"):
            monkeypatch.setattr(module, "backoff_s", lambda *_args, **_options: 0.001)
    monkeypatch.setattr(watching, "POLL_S", 0.001)
    monkeypatch.setattr(live_lists, "POLL_S", 0.01)
    monkeypatch.setattr(live_lists, "TOUCHED_S", 0.01)
    monkeypatch.setattr(housekeeping, "_BACKOFF_FIRST_S", 0.001)
    monkeypatch.setattr(housekeeping, "_BACKOFF_MOST_S", 0.001)


@pytest.fixture
async def engine(make_engine: MakeEngine, store: TroubledStore) -> AsyncIterator[Engine]:
    engine = make_engine(FailingBus(store), poll_interval_ms=600_000)
    await engine.start()
    yield engine
    store.raises = None


def log_of(run: ClaimedRun) -> StepLogLines:
    return StepLogLines(run.run, "step", (LogLine(1, 1, "INFO", "a line"),))


class Busy:
    """Something to do for each background task, and the verb by which it is seen to try."""

    def __init__(self, engine: Engine, run: ClaimedRun, other: ClaimedRun) -> None:
        self._engine = engine
        self._run = run
        self.answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.verbs: dict[str, tuple[str, Callable[[], object]]] = {
            "journal": ("write", self._complete),
            "matcher": ("claim", lambda: engine._matcher.mark(TYPE, announce=True)),
            "timers": ("poll", engine._timers.poll_soon),
            "leases": ("release", lambda: engine._releases.add([leased(other)])),
            "waits": ("endings_of", engine._waits.poll_all),
            "cascade": ("cascade", lambda: engine._dispatcher.dispatch(CHILDREN_DUE)),
            "wakeups": ("publish", lambda: engine._wakeups.ended(run.run)),
            "schedules": ("due_schedules", lambda: engine._schedule_clock.add_due(1)),
            "watching": ("markers_of", lambda: None),  # somebody watches
            "live lists": ("list_runs", lambda: None),  # likewise
            "housekeeping": ("roll_up", lambda: engine.housekeeping.soon("figures")),
            "bulk": ("claim_bulk", engine.bulk.wanted),
            "served types": ("list_workers", self._start_child_of_nobody),
            "new builds": ("wake_for_new_builds", engine.workers.new_builds.changed),
            "step logs": ("add_step_logs", lambda: engine.workers.step_logs.add([log_of(run)])),
        }

    def _start_child_of_nobody(self) -> None:
        parent = self._engine._registry.get(self._run.run.run_id)
        assert parent is not None
        self._engine.served._allowance.clear()
        self._engine.served.child_started(TypeKey("default", "nobody"), "", parent)

    def _complete(self) -> None:
        def sink(answers: list[tuple[int, object]]) -> None:
            self.answered.set_result(answers[0][1])

        self._engine._journal.submit_many([(0, complete(self._run))], sink)


@pytest.mark.parametrize("trouble", STORE_ERRORS)
async def test_every_background_task_waits_it_out(
    engine: Engine, store: TroubledStore, trouble: type[Exception]
) -> None:
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello", slots=3), (), outlet)
    started = await engine.runs.start(start())
    await engine.runs.start(start())
    run, other = await outlet.until_received(2)
    waiting = asyncio.create_task(engine.runs.wait("default", run_id=started.run_id, timeout_ms=60_000))
    watch = engine.watching.watch("default", started.run_id, 0)
    await anext(watch)
    live_list = engine.live_lists.watch("default", RunFilter())
    await anext(live_list)
    busy = Busy(engine, run, other)
    tasks = engine.supervisor.alive
    assert set(busy.verbs) == tasks, "each background task needs something to do here"

    store.raises = lambda: trouble(SOMEWHERE)
    store.calls.clear()
    for _, begin in busy.verbs.values():
        begin()
    for name, (verb, begin) in busy.verbs.items():
        again = name in ("wakeups", "served types")  # a message that cannot be sent is forgotten

        async def tried(verb: str = verb, again: bool = again, begin: Callable[[], object] = begin) -> bool:
            if again:
                begin()
            return store.calls[verb] >= FAILURES

        await until(tried)
    assert engine.supervisor.alive == tasks
    assert engine.supervisor.failure is None
    assert SOMEWHERE not in (engine.health() or "")  # which tenants read

    store.raises = None
    closed = await asyncio.wait_for(busy.answered, TIMEOUT_S)
    if isinstance(closed, Refused):  # so many tries are as many as there are: its worker is told to hand it back
        assert trouble in (StoreBroken, StatementFailed)
        assert closed.error.code is ErrorCode.INTERNAL
        assert SOMEWHERE not in closed.error.message
        closed = await engine._journal.submit(complete(run))
    assert isinstance(closed, RunClosed)

    async def well() -> bool:
        return engine.health() is None

    await until(well)
    assert (await asyncio.wait_for(waiting, TIMEOUT_S)).status is RunStatus.COMPLETED
    await watch.aclose()
    assert isinstance(await asyncio.wait_for(anext(live_list), TIMEOUT_S), RowChanged), "who has a list keeps it"
    await live_list.aclose()
    assert isinstance(await engine.runs.start(start()), Started)
    assert await status_of(engine, started.run_id) == RunStatus.COMPLETED


@pytest.mark.parametrize("trouble", STORE_ERRORS)
async def test_no_number_of_deaths_by_the_store_stops_the_engine(trouble: type[Exception]) -> None:
    supervisor = Supervisor(deaths=3, pause_s=0.0)
    lives = 0
    enough = asyncio.Event()

    async def work() -> None:
        nonlocal lives
        lives += 1
        if lives == 300:
            enough.set()
        raise trouble(SOMEWHERE)

    supervisor.watch("work", work)
    await asyncio.wait_for(enough.wait(), TIMEOUT_S)
    assert supervisor.failure is None
    assert supervisor.alive == {"work"}
    await supervisor.stop()
