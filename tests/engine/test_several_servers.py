"""Two engines on one store: work and ends cross over by wake-ups, and also without them."""

import asyncio

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.records import RunEnd
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.store.protocol import TypeKey, Wake
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import TIMEOUT_S, Exchange, RecordingOutlet, complete, leased, start, until, worker


async def pair(make_engine: MakeEngine, exchange: Exchange) -> tuple[Engine, Engine]:
    """Two servers that hear of each other by wake-ups or not at all: their next look is far away."""
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    return here, there


async def settled(engine: Engine) -> None:
    async def nothing_pending() -> bool:
        return not engine._matcher._pending

    await until(nothing_pending)


async def test_a_run_started_here_is_picked_up_there_and_its_end_comes_back(make_engine: MakeEngine) -> None:
    here, there = await pair(make_engine, Exchange())
    outlet = RecordingOutlet()
    session = await there.sessions.open(worker("hello"), (), outlet)
    await settled(there)
    started = await here.runs.start(start())
    wait = asyncio.create_task(here.runs.wait("default", run_id=started.run_id, timeout_ms=60_000))
    (run,) = await outlet.until_received(1)
    await session.submit([(1, complete(run))])
    end = await asyncio.wait_for(wait, TIMEOUT_S)
    assert isinstance(end, RunEnd)
    assert end.status is RunStatus.COMPLETED


async def test_a_run_that_ended_elsewhere_is_not_taken_for_live(make_engine: MakeEngine) -> None:
    here, there = await pair(make_engine, Exchange())
    outlet = RecordingOutlet()
    session = await there.sessions.open(worker("hello"), (), outlet)
    started = await here.runs.start(start())
    (run,) = await outlet.until_received(1)
    await session.submit([(1, complete(run))])
    await outlet.answer_to(1)

    async def notified() -> bool:
        return not here._waits._live

    await until(notified)
    wait = here.runs.wait("default", run_id=started.run_id, timeout_ms=60_000)
    assert isinstance(await asyncio.wait_for(wait, TIMEOUT_S), RunEnd)


async def test_a_worker_without_a_free_slot_leaves_the_work_to_the_other_server(make_engine: MakeEngine) -> None:
    here, there = await pair(make_engine, Exchange())
    full, free = RecordingOutlet(), RecordingOutlet()
    await here.sessions.open(worker("hello", slots=1), (), full)
    await there.sessions.open(worker("hello", slots=1), (), free)
    await settled(here)
    await settled(there)
    await here.runs.start_many([start(), start()])
    await full.until_received(1)
    await free.until_received(1)


async def test_wake_ups_are_few_and_do_not_echo(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = await pair(make_engine, exchange)
    full = RecordingOutlet()
    await there.sessions.open(worker("hello", slots=1), (), full)
    for _ in range(50):
        await here.runs.start(start())
    await full.until_received(1)

    async def calm() -> bool:
        count = len(exchange.published)
        await asyncio.sleep(0.1)  # real time is the subject: an echo would go on and on
        return 0 < count == len(exchange.published)

    await until(calm)
    assert len(exchange.published) < 30


async def test_work_taken_here_is_not_announced(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, _ = await pair(make_engine, exchange)
    outlet = RecordingOutlet()
    await here.sessions.open(worker("hello"), (), outlet)
    await settled(here)
    await here.runs.start(start())
    await outlet.until_received(1)
    await asyncio.sleep(0.05)  # real time is the subject
    assert not any(wake.pending for wake in exchange.published)


async def test_without_wake_ups_everything_happens_more_slowly(make_engine: MakeEngine) -> None:
    here, there = make_engine(poll_interval_ms=30), make_engine(poll_interval_ms=30)
    await here.start()
    await there.start()
    outlet = RecordingOutlet()
    session = await there.sessions.open(worker("hello"), (), outlet)
    await settled(there)
    started = await here.runs.start(start())
    wait = asyncio.create_task(here.runs.wait("default", run_id=started.run_id, timeout_ms=60_000))
    (run,) = await outlet.until_received(1)
    await session.submit([(1, complete(run))])
    assert isinstance(await asyncio.wait_for(wait, TIMEOUT_S), RunEnd)


async def test_after_a_lost_connection_the_bus_makes_the_server_poll(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = await pair(make_engine, exchange)
    outlet = RecordingOutlet()
    await there.sessions.open(worker("hello"), (), outlet)
    await settled(there)
    deaf = exchange.buses.pop()
    await here.runs.start(start())
    await asyncio.sleep(0)
    assert outlet.claimed_runs == []
    deaf.wake()  # POLL_AGAIN
    await outlet.until_received(1)


async def test_a_worker_moves_to_another_server_with_its_runs(make_engine: MakeEngine) -> None:
    here, there = await pair(make_engine, Exchange())
    outlet = RecordingOutlet()
    session = await here.sessions.open(worker("hello"), (), outlet)
    await here.runs.start(start())
    (run,) = await outlet.until_received(1)
    session.received([leased(run)])
    moved = RecordingOutlet()
    again = await there.sessions.open(worker("hello", worker_id=session.worker_id), [leased(run)], moved)
    await session.close()
    assert again.lost == ()
    await again.submit([(1, complete(run))])
    await moved.answer_to(1)


async def test_a_bus_that_cannot_publish_is_not_fatal(
    make_engine: MakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        async def open(self, on_wake: object) -> None: ...

        async def publish(self, wake: Wake) -> None:
            raise Unavailable("no connection")

        async def close(self) -> None: ...

    engine = make_engine(Broken())
    await engine.start()
    engine._wakeups.pending(TypeKey("default", "hello"))

    async def logged() -> bool:
        return "cannot be notified" in caplog.text

    await until(logged)
    assert engine.health() is None
    started = await engine.runs.start(start())
    assert started.status is RunStatus.PENDING
