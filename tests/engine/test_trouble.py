"""When the store goes away, an answer is lost, or a part of the engine dies: nothing is lost, and somebody is told."""

import asyncio

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.run.outcomes import RunClosed, Started
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.engine import engine as engine_module
from kagzi.engine.background.supervisor import Supervisor
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    TIMEOUT_S,
    Barrier,
    MovableClock,
    RecordingOutlet,
    TroubledStore,
    complete,
    leased,
    start,
    status_of,
    until,
    worker,
)


async def test_a_store_that_goes_away_and_comes_back_has_cost_nothing(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", slots=100), (), outlet)
    await engine.runs.start_many([start() for _ in range(50)])
    runs = list(await outlet.until_received(50))
    tried = Barrier()
    tried.open()
    store.before["write"] = tried
    store.away = True
    await session.submit([(number, complete(run)) for number, run in enumerate(runs)])
    starting = asyncio.create_task(engine.runs.start(start()))
    await tried.arrived.wait()
    await session.heartbeat([leased(run) for run in runs])  # cannot be renewed now; they must not be lost for that
    reason = engine.health()
    assert reason is not None
    assert "database" in reason
    assert not outlet.answered
    store.away = False
    await outlet.until(lambda: len(outlet.answered) == 50)
    assert all(isinstance(outcome, RunClosed) for outcome in outlet.answered.values())
    assert isinstance(await asyncio.wait_for(starting, TIMEOUT_S), Started)
    assert engine.health() is None
    assert outlet.notices_received == []


async def test_no_lease_expires_within_one_ttl_after_an_outage(
    make_engine: MakeEngine, store: TroubledStore, clock: MovableClock
) -> None:
    engine = make_engine(lease_ms=60_000, poll_interval_ms=20)
    await engine.start()
    started = await engine.runs.start(start())
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    (run,) = await outlet.until_received(1)
    store.away = True
    clock.ahead_us += 90_000_000  # the lease ends during the outage

    async def noticed() -> bool:
        return engine.health() is not None

    await until(noticed)
    fired = store.calls["fire"]
    store.away = False

    async def has_polled() -> bool:
        return engine.health() is None and store.calls["fire"] > fired

    await until(has_polled)
    assert await status_of(engine, started.run_id) == RunStatus.RUNNING
    await session.heartbeat([leased(run)])
    assert outlet.notices_received == []


async def test_a_timer_that_comes_due_while_the_store_is_away_fires_when_it_is_back(
    engine: Engine, store: TroubledStore
) -> None:
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), outlet)
    await engine.runs.start(start(delay_us=20_000))
    tried = Barrier()
    tried.open()
    store.before["fire"] = tried
    store.away = True
    await asyncio.wait_for(tried.arrived.wait(), TIMEOUT_S)
    store.away = False
    await outlet.until_received(1)


async def test_waits_for_an_unavailable_store_fail_when_the_engine_stops(
    engine: Engine, store: TroubledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "STOP_TIMEOUT_S", 0.05)
    store.away = True
    starting = asyncio.create_task(engine.runs.start(start()))
    await asyncio.sleep(0)
    await engine.stop()
    with pytest.raises(Unavailable, match="stopped"):
        await asyncio.wait_for(starting, TIMEOUT_S)


async def test_a_start_whose_answer_was_lost_is_made_once_and_handed_over(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)

    async def settled() -> bool:
        return not engine._matcher._pending

    await until(settled)
    store.lost_answers = 1
    started = await engine.runs.start(start(workflow_id="mine"))
    assert isinstance(started, Started)
    (run,) = await outlet.until_received(1)
    assert run.run.run_id == started.run_id
    assert session.offerable() == 9
    await session.submit([(1, complete(run))])
    assert isinstance(await outlet.answer_to(1), RunClosed)


async def test_a_completion_whose_answer_was_lost_is_recorded_once(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    started = await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    store.lost_answers = 1
    await session.submit([(1, complete(run))])
    closed = await outlet.answer_to(1)
    assert isinstance(closed, RunClosed)
    assert closed.status is RunStatus.COMPLETED
    assert await status_of(engine, started.run_id) == RunStatus.COMPLETED


async def test_runs_that_cannot_be_handed_back_now_are_handed_back_later(engine: Engine, store: TroubledStore) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    started = await engine.runs.start(start())
    await outlet.until_received(1)
    store.away = True
    await session.close()
    store.away = False

    async def returned() -> bool:
        return await status_of(engine, started.run_id) == RunStatus.PENDING

    await until(returned)


async def test_a_background_task_that_dies_is_started_again(
    engine: Engine, store: TroubledStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def bug() -> None:
        del store.before["claim"]
        raise ArithmeticError("a bug in the matcher")

    store.before["claim"] = bug
    started = await engine.runs.start(start())
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), outlet)

    async def died() -> bool:
        return "'matcher' died" in caplog.text

    await until(died)
    (run,) = await outlet.until_received(1)  # its slots and its work were not forgotten
    assert run.run.run_id == started.run_id
    assert engine.health() is None


async def test_a_background_task_that_keeps_dying_stops_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    supervisor = Supervisor(deaths=3, pause_s=0.001)
    lives = 0

    async def work() -> None:
        nonlocal lives
        lives += 1
        raise ArithmeticError("again")

    supervisor.watch("work", work)
    failure = await asyncio.wait_for(supervisor.wait_failed(), TIMEOUT_S)
    assert isinstance(failure, ArithmeticError)
    assert lives == 3
    assert "giving up" in caplog.text
    await supervisor.stop()


async def test_starting_and_stopping_can_be_repeated(make_engine: MakeEngine) -> None:
    engine = make_engine()
    assert engine.health() is not None
    await engine.stop()
    await engine.start()
    await engine.start()
    assert engine.health() is None
    await asyncio.gather(engine.stop(), engine.stop())
    await engine.stop()
    with pytest.raises(Unavailable, match="stopping"):
        await engine.runs.start(start())
    with pytest.raises(Unavailable, match="stopping"):
        await engine.sessions.open(worker("hello"), (), RecordingOutlet())


async def test_a_poll_that_waits_is_answered_when_the_engine_stops(engine: Engine) -> None:
    registered = await engine.workers.register(worker("hello"))
    poll = asyncio.create_task(engine.tasks.poll("default", registered.worker_id, (), max_tasks=1, wait_ms=60_000))

    async def waiting() -> bool:
        return bool(engine.tasks._polls)

    await until(waiting)
    await engine.stop()
    assert await asyncio.wait_for(poll, TIMEOUT_S) == ()
