"""A signal reaches the run wherever it is: asleep, in a worker's hands here, or held through another server."""

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.errors import InvalidArgument, NotFound, PreconditionFailed
from kagzi.core.records import ClaimedRun, Payload
from kagzi.core.run.commands import BeginStep, FetchResults, Park, SendSignal, WaitSignal
from kagzi.core.run.outcomes import Begun, Existing, Fetched, Parked, Refused, SignalBound, Started, TimerSet
from kagzi.core.states import RunStatus
from kagzi.engine import Engine, Session
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import Exchange, RecordingOutlet, complete, leased, start, status_of, worker


def sent(name: str = "approved", data: bytes = b"true", request_id: str = "") -> SendSignal:
    return SendSignal(name=name, payload=Payload(data), request_id=request_id)


def wait_for(run: ClaimedRun, name: str = "approved", **fields: int | None) -> WaitSignal:
    return WaitSignal(run=run.run, lease=run.lease, step_id=name, signal_name=name, **fields)


async def taken(engine: Engine, outlet: RecordingOutlet) -> tuple[Session, ClaimedRun]:
    session = await engine.sessions.open(worker("hello"), (), outlet)
    await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    session.received([leased(run)])
    return session, run


async def test_a_sleeping_run_is_woken_and_handed_out_with_the_signal(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    await session.submit(
        [(1, wait_for(run)), (2, Park(run=run.run, lease=run.lease, waits=("approved",), known_seq=9))]
    )
    timer = await outlet.answer_to(1)
    assert isinstance(timer, TimerSet)
    assert timer.wake_at is None
    assert isinstance(await outlet.answer_to(2), Parked)
    signalled = await engine.control.signal("default", run_id=run.run.run_id, signal=sent())
    assert signalled.delivered
    _, again = await outlet.until_received(2)
    assert again.lease.counter == 2
    assert again.history.steps[0].output == Payload(b"true")


async def test_the_holder_of_a_running_run_is_notified_and_fetches(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    await session.submit([(1, wait_for(run))])
    await outlet.answer_to(1)
    await engine.control.signal("default", run_id=run.run.run_id, signal=sent())
    await outlet.until(lambda: [notice.kind for notice in outlet.notices_received] == ["result"])
    assert outlet.notices_received[0].leased == leased(run)
    await session.submit([(2, FetchResults(run=run.run, lease=run.lease, waits=("approved",), known_seq=1))])
    answer = await outlet.answer_to(2)
    assert isinstance(answer, Fetched)
    assert [step.step_id for step in answer.results] == ["approved"]
    assert await status_of(engine, run.run.run_id) == RunStatus.RUNNING


async def test_an_early_signal_waits_for_its_step(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    for data in (b"1", b"2"):
        assert not (
            await engine.control.signal("default", workflow_id=run.workflow_id, signal=sent(data=data))
        ).delivered
    assert outlet.notices_received == []
    await session.submit([(1, wait_for(run))])
    bound = await outlet.answer_to(1)
    assert isinstance(bound, SignalBound)
    assert bound.payload == Payload(b"1")


async def test_a_wait_that_times_out_wakes_the_run(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    await session.submit(
        [
            (1, wait_for(run, timeout_us=20_000)),
            (2, Park(run=run.run, lease=run.lease, waits=("approved",), known_seq=9)),
        ]
    )
    _, again = await outlet.until_received(2)
    (step,) = again.history.steps
    assert step.error is not None
    assert step.error.kind == "timeout"


async def test_a_signal_to_nobody_and_one_too_late_are_refused(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    with pytest.raises(NotFound):
        await engine.control.signal("elsewhere", run_id=run.run.run_id, signal=sent())
    with pytest.raises(InvalidArgument, match="signal_name"):
        await engine.control.signal("default", run_id=run.run.run_id, signal=sent(name=""))
    await session.submit([(1, complete(run))])
    await outlet.answer_to(1)
    with pytest.raises(PreconditionFailed):
        await engine.control.signal("default", run_id=run.run.run_id, signal=sent())


async def test_signal_with_start_starts_once_and_signals_every_time(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    request = start(workflow_id="order-1")
    first = await engine.runs.signal_with_start(request, sent(data=b"1", request_id="a"))
    assert isinstance(first, Started)
    (run,) = await outlet.until_received(1)
    await session.submit([(1, wait_for(run))])
    bound = await outlet.answer_to(1)
    assert isinstance(bound, SignalBound)
    assert bound.payload == Payload(b"1")
    second = wait_for(run, "again")
    await session.submit([(2, second)])
    await outlet.answer_to(2)
    existing = await engine.runs.signal_with_start(request, sent("again", b"2", request_id="b"))
    assert isinstance(existing, Existing)
    assert existing.run_id == first.run_id
    await outlet.until(lambda: any(notice.kind == "result" for notice in outlet.notices_received))
    with pytest.raises(InvalidArgument, match="workflow_id"):
        await engine.runs.signal_with_start(start(), sent())


async def test_a_holder_on_another_server_is_notified_over_the_bus(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    outlet = RecordingOutlet()
    session, run = await taken(there, outlet)
    await session.submit([(1, wait_for(run))])
    await outlet.answer_to(1)
    await here.control.signal("default", run_id=run.run.run_id, signal=sent())
    await outlet.until(lambda: [notice.kind for notice in outlet.notices_received] == ["result"])


async def test_a_run_that_sleeps_is_woken_for_a_worker_of_another_server(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    outlet = RecordingOutlet()
    session, run = await taken(there, outlet)
    await session.submit(
        [(1, wait_for(run)), (2, Park(run=run.run, lease=run.lease, waits=("approved",), known_seq=9))]
    )
    await outlet.answer_to(2)
    await here.control.signal("default", run_id=run.run.run_id, signal=sent())
    await outlet.until_received(2)


async def test_after_a_lost_bus_those_who_hold_runs_ask(make_engine: MakeEngine) -> None:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    outlet = RecordingOutlet()
    session, run = await taken(there, outlet)
    await session.submit([(1, wait_for(run))])
    await outlet.answer_to(1)
    deaf = exchange.buses.pop()
    await here.control.signal("default", run_id=run.run.run_id, signal=sent())
    await here._wakeups.flush()
    assert outlet.notices_received == []
    deaf.wake()  # POLL_AGAIN
    await outlet.until(lambda: [notice.kind for notice in outlet.notices_received] == ["result"])


async def test_a_cancelled_run_begins_only_what_cleans_up(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    await engine.control.cancel("default", run_id=run.run.run_id, reason="enough")
    step = {"run": run.run, "lease": run.lease}
    await session.submit(
        [
            (1, BeginStep(**step, step_id="more", name="more")),
            (2, BeginStep(**step, step_id="tidy", name="tidy", cleanup=True)),
        ]
    )
    refusal = await outlet.answer_to(1)
    assert isinstance(refusal, Refused)
    assert refusal.error.code is ErrorCode.CANCELLED
    assert isinstance(await outlet.answer_to(2), Begun)
    await outlet.until(lambda: [notice.kind for notice in outlet.notices_received] == ["cancel_requested"])
