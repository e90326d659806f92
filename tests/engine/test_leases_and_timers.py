"""Time: leases end only when their holders had their chance, timers fire on time and never early."""

import asyncio

from kagzi.core.error_details import ErrorKind
from kagzi.core.records import RunEnd
from kagzi.core.run.commands import BeginSleep, Park
from kagzi.core.run.outcomes import Parked
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_MS
from kagzi.engine import Engine
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    TIMEOUT_S,
    MovableClock,
    RecordingOutlet,
    TroubledStore,
    leased,
    start,
    status_of,
    until,
    worker,
)
from tests.support.lateness import measured_lateness


async def test_a_lease_that_ran_out_passes_to_another_worker_and_its_holder_is_notified(
    make_engine: MakeEngine, clock: MovableClock
) -> None:
    engine = make_engine(lease_ms=2_000, poll_interval_ms=50, heartbeat_ms=50)
    await engine.start()
    started = await engine.runs.start(start())
    silent, other = RecordingOutlet(), RecordingOutlet()
    await engine.sessions.open(worker("hello", slots=1), (), silent)
    (run,) = await silent.until_received(1)
    await engine.sessions.open(worker("hello", slots=1), (), other)
    (again,) = await other.until_received(1)
    assert again.run.run_id == started.run_id
    assert again.lease.counter == 2
    assert [(notice.leased, notice.kind) for notice in silent.notices_received] == [(leased(run), "lease_lost")]
    assert (await engine.runs.get("default", run_id=started.run_id)).lost_leases == 1


async def test_after_its_start_a_server_expires_no_lease_for_one_ttl(
    make_engine: MakeEngine, store: TroubledStore, clock: MovableClock
) -> None:
    before = make_engine(lease_ms=1_000)
    await before.start()
    started = await before.runs.start(start())
    outlet = RecordingOutlet()
    session = await before.sessions.open(worker("hello"), (), outlet)
    (run,) = await outlet.until_received(1)
    session.received([leased(run)])
    await before.stop()
    clock.ahead_us += 60_000 * US_PER_MS  # the lease ended long ago

    after = make_engine(lease_ms=60_000, poll_interval_ms=20)
    await after.start()

    async def fired() -> bool:
        return store.calls["fire"] > 0

    await until(fired)
    assert await status_of(after, started.run_id) == RunStatus.RUNNING
    again = RecordingOutlet()
    holder = await after.sessions.open(worker("hello", worker_id=session.worker_id), [leased(run)], again)
    assert holder.lost == ()  # it renewed in time

    clock.ahead_us += 120_000 * US_PER_MS
    after._timers.poll_soon()

    async def taken() -> bool:
        return bool(again.notices_received) or await status_of(after, started.run_id) != RunStatus.RUNNING

    await until(taken)


async def test_a_timer_is_prompt_and_never_early(engine: Engine, store: TroubledStore, clock: MovableClock) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    late_us: list[int] = []
    async with measured_lateness() as lateness:
        for number in range(8):
            await engine.runs.start(start())
            run = (await outlet.until_received(2 * number + 1))[-1]
            duration_us = 500_000 + 1_000 * number  # a busy machine has to park it before
            sleep = BeginSleep(run=run.run, lease=run.lease, step_id="nap", name="nap", duration_us=duration_us)
            await session.submit([(2 * number, sleep), (2 * number + 1, _park(run))])
            parked = await outlet.answer_to(2 * number + 1)
            assert isinstance(parked, Parked)
            assert parked.wake_at is not None
            again = (await outlet.until_received(2 * number + 2))[-1]
            assert again.run == run.run
            late_us.append(again.claimed_at - parked.wake_at)
            assert again.history.steps[0].seq > 0
    assert min(late_us) >= 0
    assert store.calls["fire"] <= 2 * len(late_us)  # not by asking over and over
    assert sorted(late_us)[len(late_us) // 2] < 20_000 + lateness.worst_s * 1_000_000


def _park(run: object) -> Park:
    return Park(run=run.run, lease=run.lease, waits=("nap",), known_seq=0)  # type: ignore[attr-defined]


async def test_a_delayed_start_begins_when_it_is_due(engine: Engine, clock: MovableClock) -> None:
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), outlet)
    now = clock.now()
    await engine.runs.start(start(delay_us=40_000))
    (run,) = await outlet.until_received(1)
    assert run.claimed_at >= now + 40_000


async def test_timers_of_a_server_that_died_fire(make_engine: MakeEngine) -> None:
    dead = make_engine()
    await dead.start()
    await dead.runs.start(start(delay_us=60_000))
    await dead.stop()
    heir = make_engine(poll_interval_ms=20)
    await heir.start()
    outlet = RecordingOutlet()
    await heir.sessions.open(worker("hello"), (), outlet)
    await outlet.until_received(1)


async def test_a_deadline_fails_the_run_and_notifies_holder_and_waiter(engine: Engine, clock: MovableClock) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    started = await engine.runs.start(start(deadline_at=clock.now() + 50_000))
    (run,) = await outlet.until_received(1)
    wait = engine.runs.wait("default", run_id=started.run_id, timeout_ms=60_000)
    end = await asyncio.wait_for(wait, TIMEOUT_S)
    assert isinstance(end, RunEnd)
    assert end.status is RunStatus.FAILED
    assert end.error is not None
    assert end.error.kind is ErrorKind.TIMEOUT
    assert [(notice.leased, notice.kind) for notice in outlet.notices_received] == [(leased(run), "lease_lost")]
    assert session.offerable() == 10


async def test_a_crowd_of_sleepers_all_wake(engine: Engine) -> None:
    await engine.runs.start_many([start(delay_us=50_000) for _ in range(700)])
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello", slots=1_000), (), outlet)
    assert len({run.run for run in await outlet.until_received(700)}) == 700


async def test_an_idle_server_only_polls(make_engine: MakeEngine, store: TroubledStore) -> None:
    # Two workers are connected and beat; nothing else happens. Polls are all that reaches the store.
    engine = make_engine(poll_interval_ms=50, heartbeat_ms=10, jitter=False)
    await engine.start()
    sessions = [await engine.sessions.open(worker("hello", "other"), (), RecordingOutlet()) for _ in range(2)]

    async def idle() -> bool:
        return not engine._matcher._pending and store.calls["poll"] > 0

    await until(idle)
    before, statements = store.calls.copy(), store.statements
    began = asyncio.get_running_loop().time()

    async def beaten() -> bool:
        for session in sessions:
            await session.heartbeat(())
            await session.update(drain=False, completed_delta=0, failed_delta=0)
        return store.calls["poll"] >= before["poll"] + 5

    await until(beaten)
    intervals = (asyncio.get_running_loop().time() - began) / 0.050
    made = store.calls - before
    assert set(made) == {"poll"}
    assert made["poll"] <= intervals + 1.05  # a timer may be early by a tick
    # A poll is one statement, and notes who has beaten with another: every 2.4 intervals at most, and one on the edge.
    assert 1 <= store.statements - statements <= made["poll"] + intervals / 2.4 + 1


async def test_counts_of_workers_are_written_with_a_poll(make_engine: MakeEngine) -> None:
    engine = make_engine(poll_interval_ms=20)
    await engine.start()
    session = await engine.sessions.open(worker("hello"), (), RecordingOutlet())
    await session.update(drain=False, completed_delta=3, failed_delta=1)
    await session.update(drain=False, completed_delta=2, failed_delta=0)

    async def counted() -> bool:
        record = await engine.workers.get("default", session.worker_id)
        return (record.total_completed, record.total_failed) == (5, 1)

    await until(counted)
