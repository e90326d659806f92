"""What a worker's stream means for the runs it holds."""

import asyncio

import pytest

from kagzi.core import limits
from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.errors import InvalidArgument
from kagzi.core.records import ClaimedRun, Lease, Payload, RunKey, RunLease
from kagzi.core.run.commands import BeginSleep, BeginStep, CompleteStep, Park, ReleaseRun, SetStatus
from kagzi.core.run.outcomes import Begun, LeaseLost, Parked, Recorded, Refused, RunClosed, RunNotFound
from kagzi.core.states import RunStatus, WorkerStatus
from kagzi.engine import Engine, Session
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
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


async def working(engine: Engine, runs: int = 1, **fields: int) -> tuple[Session, RecordingOutlet, list[ClaimedRun]]:
    """A session that holds so many runs."""
    for _ in range(runs):
        await engine.runs.start(start())
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", **fields), (), outlet)
    return session, outlet, list(await outlet.until_received(runs))


def begin(run: ClaimedRun, step: str = "step") -> BeginStep:
    return BeginStep(run=run.run, lease=run.lease, step_id=step, name=step)


def finish(run: ClaimedRun, step: str = "step") -> CompleteStep:
    return CompleteStep(run=run.run, lease=run.lease, step_id=step, attempt=1, output=Payload(b"1"))


async def test_operations_are_answered_by_id_and_once_per_commit(engine: Engine) -> None:
    session, outlet, (run,) = await working(engine)
    await session.submit([(1, begin(run)), (2, finish(run)), (3, complete(run))])
    closed = await outlet.answer_to(3)
    assert isinstance(outlet.answered[1], Begun)
    assert isinstance(outlet.answered[2], Recorded)
    assert isinstance(closed, RunClosed)
    assert outlet.answer_calls == 1
    assert session.offerable() == 10


async def test_a_hundred_concurrent_completions_cost_at_most_three_transactions(
    engine: Engine, store: TroubledStore
) -> None:
    session, outlet, runs = await working(engine, runs=100, slots=100)
    await session.submit([(number, begin(run)) for number, run in enumerate(runs)])
    await outlet.until(lambda: len(outlet.answered) == 100)
    before = store.transactions
    for number, run in enumerate(runs):
        await session.submit([(100 + number, finish(run))])
    await outlet.until(lambda: len(outlet.answered) == 200)
    assert all(isinstance(outlet.answered[number], Recorded) for number in range(100, 200))
    assert store.transactions - before <= 3


async def test_a_refused_operation_frees_one_slot_per_run_and_not_per_operation(engine: Engine) -> None:
    session, outlet, (run, other) = await working(engine, runs=2)
    await engine.tasks.submit(ReleaseRun(run=run.run, lease=run.lease))  # taken away behind its back
    await outlet.until_received(3)
    await session.submit([(number, finish(run, f"step-{number}")) for number in range(5)])
    assert isinstance(await outlet.answer_to(4), LeaseLost)
    assert session.offerable() == 8
    assert set(session.leased) == {run.run.run_id, other.run.run_id}  # the first again, under a new lease


async def test_parking_frees_the_slot(engine: Engine) -> None:
    session, outlet, (run,) = await working(engine, slots=1)
    sleep = BeginSleep(run=run.run, lease=run.lease, step_id="nap", name="nap", duration_us=3_600_000_000)
    await session.submit([(1, sleep), (2, Park(run=run.run, lease=run.lease, waits=("nap",), known_seq=0))])
    assert isinstance(await outlet.answer_to(2), Parked)

    async def free() -> bool:
        return session.offerable() == 1

    await until(free)


async def test_a_bad_operation_is_refused_alone(engine: Engine) -> None:
    session, outlet, (run,) = await working(engine)
    foreign = RunKey("another", run.run.run_id)
    await session.submit(
        [
            (1, begin(run)),
            (2, begin(run, "bad\0name")),
            (3, BeginStep(run=foreign, lease=run.lease, step_id="x", name="x")),
            (4, BeginStep(run=RunKey("default", "no uuid"), lease=run.lease, step_id="x", name="x")),
            (5, finish(run)),
        ]
    )
    assert isinstance(await outlet.answer_to(5), Recorded)
    refusal = outlet.answered[2]
    assert isinstance(refusal, Refused)
    assert refusal.error.code is ErrorCode.INVALID_ARGUMENT
    assert "step_id" in refusal.error.message
    assert outlet.answered[4] == RunNotFound()


async def test_closing_returns_what_had_not_arrived_and_leaves_the_rest_a_grace(
    make_engine: MakeEngine, clock: MovableClock
) -> None:
    engine = make_engine(reconnect_grace_ms=60_000)
    await engine.start()
    session, _, (arrived, under_way) = await working(engine, runs=2)
    session.received([leased(arrived)])
    await session.close()
    await session.close()
    assert await status_of(engine, arrived.run.run_id) == RunStatus.RUNNING
    assert await status_of(engine, under_way.run.run_id) == RunStatus.PENDING
    # What it does may be what broke the stream.
    assert (await engine.runs.get("default", run_id=under_way.run.run_id)).lost_leases == 1


async def test_a_run_that_breaks_every_stream_before_it_is_known_to_have_arrived_is_put_aside(
    make_engine: MakeEngine, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(claim_cap=3, reconnect_grace_ms=20, lease_ms=600)
    await engine.start()
    clock.ahead_us += 600_000  # the server has been up for longer than a lease
    started = await engine.runs.start(start())
    for _ in range(3):
        outlet = RecordingOutlet()
        session = await engine.sessions.open(worker("hello"), (), outlet)
        await outlet.until_received(1)
        await session.close()

    async def put_aside() -> bool:
        return await status_of(engine, started.run_id) == RunStatus.PAUSED

    await until(put_aside)
    problem = (await engine.runs.get("default", run_id=started.run_id)).problem
    assert problem is not None
    assert problem.kind is ErrorKind.LOST
    [message] = [each.getMessage() for each in caplog.records if "is quarantined" in each.getMessage()]
    assert f"run {started.run_id}" in message
    assert f"kagzi resume {started.run_id}" in message


async def test_leaving_coming_again_and_stopping_are_not_counted(make_engine: MakeEngine) -> None:
    engine = make_engine(claim_cap=2)
    await engine.start()
    started = await engine.runs.start(start())
    for _ in range(3):
        outlet = RecordingOutlet()
        session = await engine.sessions.open(worker("hello", worker_id="the-same"), (), outlet)
        await outlet.until_received(1)
        again = RecordingOutlet()  # its stream to this server broke, which has not noticed yet
        session = await engine.sessions.open(worker("hello", worker_id="the-same"), (), again)
        await again.until_received(1)
        await session.goodbye()
    last = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), last)
    await last.until_received(1)
    await engine.stop()
    record = await engine.runs.get("default", run_id=started.run_id)
    assert (record.status, record.lost_leases) == (RunStatus.PENDING, 0)


async def test_after_the_grace_another_worker_gets_the_run(make_engine: MakeEngine, clock: MovableClock) -> None:
    engine = make_engine(reconnect_grace_ms=20, lease_ms=600)
    await engine.start()
    session, _, (run,) = await working(engine)
    session.received([leased(run)])
    clock.ahead_us += 600_000  # the server has been up for longer than a lease
    other = RecordingOutlet()
    await session.close()
    await engine.sessions.open(worker("hello"), (), other)
    (again,) = await other.until_received(1)
    assert again.run == run.run
    assert again.lease.counter == 2


async def test_what_a_lost_worker_had_sent_does_not_keep_its_run(
    make_engine: MakeEngine, store: TroubledStore, clock: MovableClock
) -> None:
    """It is written after the lease was shortened, and renews it."""
    engine = make_engine(reconnect_grace_ms=20, lease_ms=600_000)
    await engine.start()
    session, _, (run,) = await working(engine)
    session.received([leased(run)])
    clock.ahead_us += 400_000_000  # so much of the lease is over that a write renews it
    writing = store.before["write"] = Barrier()
    await session.submit([(1, begin(run))])
    await writing.arrived.wait()
    await session.close()
    clock.ahead_us += 300_000_000
    writing.open()
    other = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), other)
    (again,) = await other.until_received(1)
    assert (again.run, again.lease.counter) == (run.run, 2)


async def test_a_worker_that_comes_back_keeps_its_runs(engine: Engine, store: TroubledStore) -> None:
    session, _, (run,) = await working(engine)
    session.received([leased(run)])
    await session.close()
    lost = RunLease(run.run, Lease(7, 7))
    outlet = RecordingOutlet()
    again = await engine.sessions.open(worker("hello", worker_id=session.worker_id, slots=2), [leased(run)], outlet)
    assert again.lost == ()
    assert again.offerable() == 1
    await again.submit([(1, complete(run))])
    assert isinstance(await outlet.answer_to(1), RunClosed)
    assert again.offerable() == 2
    third = await engine.sessions.open(worker("hello", worker_id=session.worker_id), [lost], RecordingOutlet())
    assert third.lost == (lost,)
    assert third.offerable() == 10


async def test_a_second_session_of_a_worker_takes_the_place_of_the_first(engine: Engine) -> None:
    first, old, (known, unknown) = await working(engine, runs=2)
    new = RecordingOutlet()
    second = await engine.sessions.open(worker("hello", worker_id=first.worker_id), [leased(known)], new)
    (again,) = await new.until_received(1)  # what the worker never saw is given anew
    assert again.run == unknown.run
    assert again.lease.counter == 2
    assert set(second.leased) == {known.run.run_id, unknown.run.run_id}
    await engine.runs.start(start())
    await new.until_received(2)
    assert len(old.claimed_runs) == 2
    await first.close()  # its stream ends at last: nothing happens to what the second holds
    assert second.offerable() == 7
    assert await status_of(engine, known.run.run_id) == RunStatus.RUNNING


async def test_goodbye_writes_what_was_sent_and_releases_the_rest(engine: Engine) -> None:
    session, _, (done, rest) = await working(engine, runs=2)
    await session.submit([(1, complete(done))])
    await session.goodbye()
    assert await status_of(engine, done.run.run_id) == RunStatus.COMPLETED
    assert await status_of(engine, rest.run.run_id) == RunStatus.PENDING
    assert (await engine.workers.get("default", session.worker_id)).status is WorkerStatus.OFFLINE


async def test_a_draining_worker_gets_no_more_and_keeps_what_it_has(engine: Engine) -> None:
    session, outlet, (run,) = await working(engine)
    await session.update(drain=True, completed_delta=0, failed_delta=0)
    started = await engine.runs.start(start())
    assert started.status is RunStatus.PENDING
    assert (await engine.workers.get("default", session.worker_id)).status is WorkerStatus.DRAINING
    await session.submit([(1, complete(run))])
    assert isinstance(await outlet.answer_to(1), RunClosed)
    assert len(outlet.claimed_runs) == 1


async def test_deregistering_a_worker_reaches_its_session(engine: Engine) -> None:
    session, outlet, (run,) = await working(engine)
    await engine.workers.deregister("default", session.worker_id, drain=True)
    assert outlet.was_drained
    assert session.offerable() == 0
    await engine.workers.deregister("default", session.worker_id, drain=False)
    assert [(notice.leased, notice.kind) for notice in outlet.notices_received] == [(leased(run), "lease_lost")]
    assert await status_of(engine, run.run.run_id) == RunStatus.PENDING


async def test_a_heartbeat_renews_and_returns_what_was_lost(
    engine: Engine, store: TroubledStore, clock: MovableClock
) -> None:
    session, outlet, (run, other) = await working(engine, runs=2)
    await engine.tasks.submit(ReleaseRun(run=other.run, lease=other.lease))
    renewals = store.calls["renew"]
    await session.heartbeat([leased(run), leased(other)])
    assert store.calls["renew"] == renewals + 1
    assert [(notice.leased, notice.kind) for notice in outlet.notices_received] == [(leased(other), "lease_lost")]


async def test_a_run_taken_over_by_another_session_frees_the_slot_of_the_first(engine: Engine) -> None:
    first, _, (run,) = await working(engine, slots=1)
    await first.update(drain=True, completed_delta=0, failed_delta=0)
    await engine.tasks.submit(ReleaseRun(run=run.run, lease=run.lease))
    outlet = RecordingOutlet()
    second = await engine.sessions.open(worker("hello"), (), outlet)
    (again,) = await outlet.until_received(1)
    assert again.run == run.run
    assert (list(first.leased), list(second.leased)) == ([], [run.run.run_id])


async def test_a_cancellation_is_notified_at_once_and_once(engine: Engine) -> None:
    session, outlet, (run,) = await working(engine)
    session.received([leased(run)])
    status = await engine.control.cancel("default", run_id=run.run.run_id, reason="enough")
    assert status is RunStatus.RUNNING
    await session.heartbeat([leased(run)])
    await session.heartbeat([leased(run)])
    assert [(notice.kind, notice.reason) for notice in outlet.notices_received] == [("cancel_requested", "enough")]


async def test_a_worker_that_does_not_beat_is_offered_no_work(make_engine: MakeEngine) -> None:
    engine = make_engine(heartbeat_ms=10)
    await engine.start()
    session, outlet, (run,) = await working(engine)

    async def late() -> bool:
        return session.is_late()

    await until(late)
    waiting = await engine.runs.start(start())
    assert waiting.status is RunStatus.PENDING
    await session.heartbeat([leased(run)])
    assert (await outlet.until_received(2))[1].run.run_id == waiting.run_id


async def test_a_session_holds_no_runs_of_other_namespaces(engine: Engine) -> None:
    foreign = RunLease(RunKey("another", "01890000-0000-7000-8000-000000000000"), Lease(1, 1))
    with pytest.raises(InvalidArgument, match="namespace"):
        await engine.sessions.open(worker("hello"), [foreign], RecordingOutlet())


async def test_a_claim_under_way_when_the_engine_stops_is_handed_back(
    engine: Engine, make_engine: MakeEngine, store: TroubledStore
) -> None:
    started = await engine.runs.start(start())
    store.after["claim"] = barrier = Barrier()
    await engine.sessions.open(worker("hello"), (), RecordingOutlet())
    await barrier.arrived.wait()
    stopping = asyncio.create_task(engine.stop())
    await asyncio.sleep(0)
    barrier.open()
    await stopping
    assert await status_of(make_engine(), started.run_id) == RunStatus.PENDING


async def test_stopping_notifies_sessions_and_releases_what_had_not_arrived(
    engine: Engine, make_engine: MakeEngine
) -> None:
    session, outlet, (arrived, under_way) = await working(engine, runs=2)
    session.received([leased(arrived)])
    submitted = asyncio.create_task(session.submit([(1, begin(arrived))]))
    await submitted
    await asyncio.gather(engine.stop(), engine.stop())
    await session.close()
    assert outlet.was_stopped
    assert isinstance(outlet.answered[1], Begun)  # what was said before is written and answered
    other = make_engine()
    assert await status_of(other, arrived.run.run_id) == RunStatus.RUNNING
    assert await status_of(other, under_way.run.run_id) == RunStatus.PENDING


async def test_a_worker_that_says_much_at_once_keeps_its_neighbour_waiting_for_little(engine: Engine) -> None:
    """Of one namespace, where operations are written in the order in which they come."""
    loud, loud_outlet, (noisy,) = await working(engine)
    await loud.update(drain=True, completed_delta=0, failed_delta=0)
    modest, modest_outlet, (calm,) = await working(engine)
    count = 10 * limits.SESSION_OPERATIONS
    many = [(number, SetStatus(run=noisy.run, lease=noisy.lease, text="!")) for number in range(count)]
    saying = asyncio.create_task(loud.submit(many))
    await loud_outlet.until(lambda: len(loud_outlet.answered) > 0)
    await modest.submit([(1, begin(calm)), (2, finish(calm))])
    await modest_outlet.answer_to(2)
    assert len(loud_outlet.answered) <= 2 * limits.SESSION_OPERATIONS
    await saying
    await loud_outlet.until(lambda: len(loud_outlet.answered) == count)
