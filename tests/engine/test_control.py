"""What people do to a run from outside takes effect wherever the run is, and those concerned hear of it."""

import asyncio

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.errors import DeadlinePassed, InvalidArgument, NotFound, PreconditionFailed
from kagzi.core.records import ClaimedRun, Payload, RunEnd, RunFilter, WorkerRecord
from kagzi.core.run import outcomes
from kagzi.core.run.commands import (
    BeginSleep,
    BeginStep,
    CompleteStep,
    ContinueAsNew,
    FailRun,
    Park,
    PauseDiverged,
    ReleaseRun,
    SetStatus,
)
from kagzi.core.run.outcomes import Recorded, RunClosed, Started
from kagzi.core.run.wakes import Woken
from kagzi.core.states import RunStatus
from kagzi.engine import Engine, Session
from kagzi.store.protocol import LeaseTerms
from kagzi.system import SystemIds
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import (
    TIMEOUT_S,
    Barrier,
    Exchange,
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
from tests.support.timeouts import LOADED_MACHINE_S

NO_RUN = "0191e000-0000-7000-8000-000000000000"


async def taken(
    engine: Engine, outlet: RecordingOutlet, types: str = "hello", workflow_id: str = ""
) -> tuple[Session, ClaimedRun]:
    session = await engine.sessions.open(worker(types), (), outlet)
    await engine.runs.start(start(workflow_id=workflow_id))
    (run,) = await outlet.until_received(1)
    session.received([leased(run)])
    return session, run


async def pair(make_engine: MakeEngine) -> tuple[Engine, Engine]:
    exchange = Exchange()
    here, there = (make_engine(exchange.bus(), poll_interval_ms=600_000) for _ in range(2))
    await here.start()
    await there.start()
    return here, there


@pytest.mark.parametrize(("verb", "status"), [("cancel", "cancelled"), ("terminate", "cancelled"), ("pause", "paused")])
async def test_a_run_that_continues_as_a_new_one_before_it_is_reached_is_followed(
    engine: Engine, store: TroubledStore, clock: MovableClock, verb: str, status: str
) -> None:
    _, claimed = await taken(engine, RecordingOutlet(), workflow_id="poll")
    run = claimed.run
    successor = SystemIds().run_id(clock.now(), "default")

    async def continues() -> None:
        store.before.clear()
        command = ContinueAsNew(run=run, lease=claimed.lease, new_run_id=successor, input=Payload(b"2"))
        terms = LeaseTerms(until=clock.now() + 1, renew_before=clock.now())
        ((outcome,), _) = await store.write([command], clock.now(), terms)
        assert isinstance(outcome, RunClosed)

    store.before[f"{verb}_run"] = continues
    assert await getattr(engine.control, verb)("default", workflow_id="poll") == status
    assert await status_of(engine, successor) == status
    record = await engine.runs.get("default", run_id=run.run_id)
    assert (record.status, record.continued_as) == (RunStatus.COMPLETED, successor)


async def test_a_wake_or_a_retry_that_is_made_again_is_that_of_the_run_that_it_reached(
    engine: Engine,
) -> None:
    """Named by its workflow id, which another run has by now: one that waits, and one that has failed."""
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet, workflow_id="poll")
    step = {"run": run.run, "lease": run.lease}
    nap = BeginSleep(**step, step_id="nap", name="nap", duration_us=3_600_000_000)
    await session.submit([(1, nap), (2, Park(**step, waits=("nap",), known_seq=9))])
    await outlet.answer_to(2)

    async def wake() -> Woken:
        return await engine.control.wake("default", workflow_id="poll", request_id="wake")

    async def retry() -> RunStatus:
        return await engine.control.retry("default", workflow_id="poll", request_id="retry")

    assert (await wake()).woken
    run = (await outlet.until_received(2))[-1]
    session.received([leased(run)])
    await session.submit([(3, FailRun(run=run.run, lease=run.lease, error=ErrorDetail(message="no")))])
    await outlet.answer_to(3)
    assert await retry() is RunStatus.PENDING
    run = (await outlet.until_received(3))[-1]
    session.received([leased(run)])
    await session.submit([(4, ContinueAsNew(run=run.run, lease=run.lease, new_run_id="", input=Payload(b"2")))])
    await outlet.answer_to(4)
    last = (await outlet.until_received(4))[-1]
    assert last.run != run.run
    session.received([leased(last)])
    nap = BeginSleep(run=last.run, lease=last.lease, step_id="nap", name="nap", duration_us=3_600_000_000)
    await session.submit([(5, nap), (6, Park(run=last.run, lease=last.lease, waits=("nap",), known_seq=9))])
    await outlet.answer_to(6)
    woken = await wake()
    assert (woken.run, woken.step_id, woken.woken, woken.status) == (run.run, "nap", True, RunStatus.COMPLETED)
    assert await status_of(engine, last.run.run_id) is RunStatus.SLEEPING
    await engine.control.wake("default", workflow_id="poll", request_id="wake again")
    last = (await outlet.until_received(5))[-1]
    session.received([leased(last)])
    await session.submit([(7, FailRun(run=last.run, lease=last.lease, error=ErrorDetail(message="no")))])
    await outlet.answer_to(7)
    assert await retry() is RunStatus.COMPLETED
    assert await status_of(engine, last.run.run_id) is RunStatus.FAILED


# --- pause and resume -------------------------------------------------------------------------------------------------


async def test_a_run_that_waits_for_a_worker_is_paused_and_resumed(engine: Engine) -> None:
    started = await engine.runs.start(start())
    assert await engine.control.pause("default", run_id=started.run_id) is RunStatus.PAUSED
    outlet = RecordingOutlet()
    await engine.sessions.open(worker("hello"), (), outlet)
    assert await engine.control.pause("default", run_id=started.run_id) is RunStatus.PAUSED
    assert outlet.claimed_runs == []
    assert await engine.control.resume("default", run_id=started.run_id) is RunStatus.PENDING
    await outlet.until_received(1)


async def test_the_holder_is_notified_of_a_pause_and_releases_the_run(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    assert await engine.control.pause("default", run_id=run.run.run_id, reason="look") is RunStatus.RUNNING
    await outlet.until(
        lambda: [(notice.kind, notice.reason) for notice in outlet.notices_received] == [("pause_requested", "look")]
    )
    await session.submit([(1, ReleaseRun(run=run.run, lease=run.lease))])
    closed = await outlet.answer_to(1)
    assert isinstance(closed, RunClosed)
    assert closed.status is RunStatus.PAUSED
    assert await engine.control.resume("default", run_id=run.run.run_id) is RunStatus.PENDING
    await outlet.until_received(2)


# --- cancel and terminate ---------------------------------------------------------------------------------------------


async def test_pause_and_cancel_cross_over_to_the_holder_s_server(make_engine: MakeEngine) -> None:
    here, there = await pair(make_engine)
    outlet = RecordingOutlet()
    _, run = await taken(there, outlet)
    await here.control.pause("default", run_id=run.run.run_id)
    await outlet.until(lambda: [notice.kind for notice in outlet.notices_received] == ["pause_requested"])
    async with asyncio.timeout(LOADED_MACHINE_S):  # the promise
        await here.control.cancel("default", run_id=run.run.run_id, reason="enough")
        await outlet.until(lambda: len(outlet.notices_received) == 2)
    assert (outlet.notices_received[1].kind, outlet.notices_received[1].reason) == ("cancel_requested", "enough")


async def test_terminate_closes_the_run_while_its_holder_works(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    wait = asyncio.create_task(engine.runs.wait("default", run_id=run.run.run_id, timeout_ms=60_000))
    assert await engine.control.terminate("default", run_id=run.run.run_id, reason="no") is RunStatus.CANCELLED
    end = await asyncio.wait_for(wait, TIMEOUT_S)
    assert isinstance(end, RunEnd)
    assert end.error is not None
    assert end.error.kind is ErrorKind.TERMINATED
    assert [notice.kind for notice in outlet.notices_received] == ["lease_lost"]
    assert session.leased == {}
    assert await engine.control.terminate("default", run_id=run.run.run_id) is RunStatus.CANCELLED


async def test_a_terminated_run_is_lost_to_its_holder_on_another_server(make_engine: MakeEngine) -> None:
    here, there = await pair(make_engine)
    outlet = RecordingOutlet()
    session, run = await taken(there, outlet)
    await here.control.terminate("default", run_id=run.run.run_id)
    await outlet.until(lambda: [notice.kind for notice in outlet.notices_received] == ["lease_lost"])
    assert session.leased == {}


async def test_a_cancelled_run_has_its_cleanup_time_and_no_more(make_engine: MakeEngine, clock: MovableClock) -> None:
    engine = make_engine(poll_interval_ms=600_000, cleanup_ms=200)
    await engine.start()
    outlet = RecordingOutlet()
    _, run = await taken(engine, outlet)
    await engine.control.cancel("default", run_id=run.run.run_id)
    end = await engine.runs.wait("default", run_id=run.run.run_id, timeout_ms=10_000)
    assert isinstance(end, RunEnd)
    assert end.status is RunStatus.CANCELLED


async def test_nobody_is_touched_in_another_namespace(engine: Engine) -> None:
    started = await engine.runs.start(start())
    for run_id, namespace in ((started.run_id, "another"), (NO_RUN, "default")):
        for act in (engine.control.terminate, engine.control.pause, engine.control.resume, engine.control.retry):
            with pytest.raises(NotFound):
                await act(namespace, run_id=run_id)
        with pytest.raises(NotFound):
            await engine.control.fork(namespace, run_id)
        with pytest.raises(NotFound):
            await engine.explanations.explain(namespace, run_id=run_id)
    with pytest.raises(InvalidArgument):
        await engine.control.pause("default")
    assert await status_of(engine, started.run_id) == RunStatus.PENDING


# --- retry and fork ---------------------------------------------------------------------------------------------------


async def failed_run(engine: Engine, outlet: RecordingOutlet) -> tuple[Session, ClaimedRun]:
    """Two steps are done; the run failed in the second."""
    session, run = await taken(engine, outlet)
    step = {"run": run.run, "lease": run.lease}
    error = ErrorDetail(type="ValueError", message="no", subject="step", subject_id="two", kind=ErrorKind.PERMANENT)
    await session.submit(
        [
            (1, BeginStep(**step, step_id="one", name="one")),
            (2, CompleteStep(**step, step_id="one", attempt=1, output=Payload(b"1"))),
            (3, BeginStep(**step, step_id="two", name="two")),
            (4, CompleteStep(**step, step_id="two", attempt=1, output=Payload(b"2"))),
            (5, FailRun(**step, error=error)),
        ]
    )
    await outlet.answer_to(5)
    return session, run


async def test_a_retried_run_is_assigned_again_without_the_step_that_failed(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await failed_run(engine, outlet)
    assert await engine.control.retry("default", run_id=run.run.run_id) is RunStatus.PENDING
    _, again = await outlet.until_received(2)
    assert [step.step_id for step in again.history.steps if step.seq] == ["one"]
    with pytest.raises(PreconditionFailed):
        await engine.control.retry("default", run_id=run.run.run_id)
    await session.submit([(9, complete(again))])
    await outlet.answer_to(9)
    assert await status_of(engine, run.run.run_id) == RunStatus.COMPLETED


async def test_a_fork_begins_at_the_named_step_with_the_replaced_outputs(engine: Engine) -> None:
    outlet = RecordingOutlet()
    _, run = await failed_run(engine, outlet)
    forked = await engine.control.fork(
        "default", run.run.run_id, from_step="two", outputs={"one": Payload(b"11")}, workflow_id="again"
    )
    assert isinstance(forked, Started)
    _, fork = await outlet.until_received(2)
    assert (fork.run.run_id, fork.workflow_id) == (forked.run_id, "again")
    assert [(step.step_id, step.output) for step in fork.history.steps] == [("one", Payload(b"11"))]
    assert (await engine.runs.get("default", run_id=forked.run_id)).forked_from == run.run.run_id
    with pytest.raises(InvalidArgument, match="outputs key"):
        await engine.control.fork("default", run.run.run_id, outputs={"": Payload(b"1")})


# --- what the engine pauses by itself ---------------------------------------------------------------------------------


async def test_a_run_that_does_not_fit_is_offered_to_the_next_build(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    problem = ErrorDetail(code=ErrorCode.PRECONDITION_FAILED, kind=ErrorKind.NONDETERMINISM, message="line 3")
    await session.submit([(1, PauseDiverged(run=run.run, lease=run.lease, problem=problem, build_id="old"))])
    await outlet.answer_to(1)
    assert await status_of(engine, run.run.run_id) == RunStatus.PAUSED
    same, other = RecordingOutlet(), RecordingOutlet()
    await engine.sessions.open(_build("old"), (), same)
    assert await status_of(engine, run.run.run_id) == RunStatus.PAUSED
    await session.goodbye()
    await engine.sessions.open(_build("new"), (), other)

    async def offered() -> bool:
        return len(same.claimed_runs) + len(other.claimed_runs) == 1

    await until(offered)


def _build(build_id: str) -> WorkerRecord:
    return msgspec.structs.replace(worker("hello"), build_id=build_id)


async def test_a_run_whose_every_worker_is_lost_is_quarantined(make_engine: MakeEngine) -> None:
    engine = make_engine(poll_interval_ms=20, lease_ms=100, claim_cap=2)
    await engine.start()
    started = await engine.runs.start(start())
    outlets = [RecordingOutlet() for _ in range(3)]
    for outlet in outlets:  # workers that never say a word
        await engine.sessions.open(worker("hello"), (), outlet)

    async def paused() -> bool:
        return await status_of(engine, started.run_id) == RunStatus.PAUSED

    await until(paused)
    assert sum(len(outlet.claimed_runs) for outlet in outlets) == 2
    record = await engine.runs.get("default", run_id=started.run_id)
    assert record.status is RunStatus.PAUSED
    assert record.problem is not None
    assert record.problem.kind is ErrorKind.LOST
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.reason == "quarantined"
    assert await engine.control.resume("default", run_id=started.run_id) is RunStatus.PENDING


# --- small things -----------------------------------------------------------------------------------------------------


async def test_a_status_is_seen_and_its_limits_are_kept(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session, run = await taken(engine, outlet)
    status = {"run": run.run, "lease": run.lease}
    await session.submit([(1, SetStatus(**status, text="half way", progress=0.5))])
    assert isinstance(await outlet.answer_to(1), Recorded)
    record = await engine.runs.get("default", run_id=run.run.run_id)
    assert (record.status_text, record.progress) == ("half way", 0.5)
    await session.submit([(2, SetStatus(**status, text="x" * 2_000)), (3, SetStatus(**status, text="", progress=2.0))])
    for operation_id, field in ((2, "text"), (3, "progress")):
        refusal = await outlet.answer_to(operation_id)
        assert field in str(refusal)


async def test_counting_stops_at_the_cap(engine: Engine) -> None:
    await engine.runs.start_many([start(), start(), start("other")])
    assert await engine.runs.count("default", RunFilter(workflow_types=("hello",))) == (2, False)


async def test_a_timeout_is_a_deadline_from_the_creation(engine: Engine, clock: MovableClock) -> None:
    before = clock.now()
    started = await engine.runs.start(start(timeout_us=60_000_000, deadline_at=before + 3_600_000_000))
    deadline = (await engine.runs.get("default", run_id=started.run_id)).deadline_at
    assert deadline is not None
    assert before + 60_000_000 <= deadline <= clock.now() + 60_000_000
    with pytest.raises(InvalidArgument, match="timeout"):
        await engine.runs.start(start(timeout_us=1_000, delay_us=60_000_000))


async def test_past_its_deadline_a_run_is_refused_alike_by_session_and_unary_call(
    engine: Engine, store: TroubledStore, clock: MovableClock
) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    await engine.runs.start(start(timeout_us=60_000_000))
    (run,) = await outlet.until_received(1)
    late = BeginStep(run=run.run, lease=run.lease, step_id="late", name="late")
    store.before["fire"] = timer = Barrier()  # which fails the run: not there yet
    clock.ahead_us = 61_000_000
    await session.submit([(1, late)])
    assert isinstance(await outlet.answer_to(1), outcomes.DeadlinePassed)
    with pytest.raises(DeadlinePassed) as refusal:
        await engine.tasks.submit(late)
    assert refusal.value.code is ErrorCode.TIMEOUT
    timer.open()
