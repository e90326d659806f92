"""Workers that are told to drain, that break off, that are silent, that are in trouble: what is done about them, and
what is kept."""

import msgspec
import pytest

from kagzi.core import limits
from kagzi.core.errors import NotFound
from kagzi.core.states import WorkerStatus
from kagzi.core.workers import Diagnostic
from kagzi.engine import Engine
from kagzi.engine.services.paging import PageAsk
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import Exchange, MovableClock, RecordingOutlet, TroubledStore, start, until, worker


async def kinds(engine: Engine, worker_id: str = "w") -> list[str]:
    page = await engine.workers.events("default", worker_id, PageAsk())
    return [event.kind.value for event in reversed(page.rows)]


async def status(engine: Engine, worker_id: str = "w") -> WorkerStatus:
    return (await engine.workers.get("default", worker_id)).status


async def pair(make_engine: MakeEngine, exchange: Exchange, **settings: int) -> tuple[Engine, Engine]:
    here, there = (make_engine(exchange.bus(), **{"poll_interval_ms": 600_000, **settings}) for _ in range(2))
    await here.start()
    await there.start()
    return here, there


async def test_a_worker_on_this_server_is_notified_to_drain(engine: Engine) -> None:
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello", worker_id="w"), (), outlet)
    record = await engine.workers.drain("default", "w", "wanted")
    assert record.status is WorkerStatus.DRAINING
    assert outlet.was_drained
    started = await engine.runs.start(start())
    assert started.status.value == "pending", "a draining worker was given a run"
    assert await kinds(engine) == ["registered", "draining"]
    with pytest.raises(NotFound):
        await engine.workers.drain("elsewhere", "w", "wanted")


async def test_a_worker_on_another_server_is_notified_to_drain(make_engine: MakeEngine) -> None:
    here, there = await pair(make_engine, Exchange())
    outlet = RecordingOutlet()
    await there.sessions.open(worker("hello", worker_id="w"), (), outlet)
    await here.workers.drain("default", "w", "wanted")
    await outlet.until(lambda: outlet.was_drained)
    answer = await there.workers.heartbeat("default", "w", active_count=0, completed_delta=0, failed_delta=0, leased=())
    assert answer.should_drain


async def test_a_worker_that_says_itself_that_it_drains_is_noted_once(engine: Engine) -> None:
    session = await engine.sessions.open(worker("hello", worker_id="w"), (), RecordingOutlet())
    for _ in range(2):
        await session.update(drain=True, completed_delta=0, failed_delta=0)
    await session.goodbye()
    assert await kinds(engine) == ["registered", "draining", "drained", "left"]
    assert await status(engine) is WorkerStatus.OFFLINE


async def test_a_worker_that_comes_back_draining_is_notified_again(engine: Engine) -> None:
    record = msgspec.structs.replace(worker("hello", worker_id="w"), pid=7, hostname="box")
    session = await engine.sessions.open(record, (), RecordingOutlet())
    await engine.workers.drain("default", "w", "wanted")
    await session.close()
    again = RecordingOutlet()
    session = await engine.sessions.open(record, (), again)
    await again.until(lambda: again.was_drained)
    assert session.offerable() == 0


async def test_a_worker_that_breaks_off_is_lost_after_a_lease(make_engine: MakeEngine) -> None:
    engine = make_engine(lease_ms=1_500, heartbeat_ms=500, poll_interval_ms=600_000)
    await engine.start()
    session = await engine.sessions.open(worker("hello", worker_id="w"), (), RecordingOutlet())
    await session.close()
    assert await status(engine) is WorkerStatus.ONLINE

    async def lost() -> bool:
        return await status(engine) is WorkerStatus.OFFLINE

    await until(lost)
    assert await kinds(engine) == ["registered", "lost"]


async def test_one_that_comes_back_in_time_is_not_lost(make_engine: MakeEngine, store: TroubledStore) -> None:
    here, there = await pair(make_engine, Exchange(), lease_ms=1_500, heartbeat_ms=500)
    session = await here.sessions.open(worker("hello", worker_id="w"), (), RecordingOutlet())
    await session.close()
    await there.sessions.open(worker("hello", worker_id="w"), (), RecordingOutlet())

    async def searched() -> bool:
        return store.calls["expire_workers"] > 0

    await until(searched)
    assert await kinds(here) == ["registered", "reconnected"]
    assert await status(here) is WorkerStatus.ONLINE


async def test_who_is_silent_is_shown_offline_and_swept(make_engine: MakeEngine, clock: MovableClock) -> None:
    engine = make_engine(Exchange().bus(), poll_interval_ms=5_000)
    await engine.workers.register(worker("hello", worker_id="w"))
    assert await status(engine) is WorkerStatus.ONLINE
    clock.ahead_us += 15_100_000  # a lease
    assert await status(engine) is WorkerStatus.OFFLINE
    page = await engine.workers.list("default", workflow_type=None, status=WorkerStatus.OFFLINE, page=PageAsk())
    assert [listed.worker_id for listed in page.rows] == ["w"]
    assert await kinds(engine) == ["registered"]
    clock.ahead_us += 1_000_000
    assert not await engine.workers.sweep(clock.now())
    assert await kinds(engine) == ["registered", "lost"]


async def test_after_a_start_everybody_gets_a_lease_to_come_back(make_engine: MakeEngine, clock: MovableClock) -> None:
    first = make_engine(Exchange().bus())
    await first.workers.register(worker("hello", worker_id="w"))
    clock.ahead_us += 600_000_000
    second = make_engine(Exchange().bus())
    second._lease_times.start()
    await second.workers.sweep(clock.now())
    assert await kinds(second) == ["registered"]
    clock.ahead_us += 16_000_000
    await second.workers.sweep(clock.now())
    assert await kinds(second) == ["registered", "lost"]


async def test_diagnostics_are_kept_and_truncated_to_their_limits(engine: Engine) -> None:
    session = await engine.sessions.open(worker("hello", worker_id="w"), (), RecordingOutlet())
    long = Diagnostic("loop_blocked", "\0" + "x" * 10_000)
    await session.update(drain=False, completed_delta=0, failed_delta=0, diagnostics=[long] * (limits.DIAGNOSTICS + 5))
    page = await engine.workers.events("default", "w", PageAsk())
    diagnostics = [event for event in page.rows if event.kind == "trouble"]
    assert len(diagnostics) == limits.DIAGNOSTICS
    assert len(diagnostics[0].detail) < limits.TROUBLE_DETAIL_BYTES + 100
    assert "\0" not in diagnostics[0].detail


async def test_events_of_nobody(engine: Engine) -> None:
    await engine.workers.register(worker("hello", worker_id="w"))
    assert [event.worker_id for event in (await engine.workers.events("default", "", PageAsk())).rows] == ["w"]
    assert (await engine.workers.events("elsewhere", "", PageAsk())).rows == ()
    for namespace, worker_id in (("default", "nobody"), ("elsewhere", "w")):
        with pytest.raises(NotFound):
            await engine.workers.events(namespace, worker_id, PageAsk())
