"""One end (P4): a run reaches exactly one terminal state, and it never changes."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from kagzi.core.effects import NO_EFFECTS, Effects
from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import RunEnd, RunKey, RunLease
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Busy, DeadlinePassed, Known, LeaseLost, Recorded, RunClosed
from kagzi.core.states import RunStatus, StepStatus, WaitReason
from kagzi.store.protocol import TypeKey

from .verbs import (
    AT_ONCE,
    BOOM,
    CLEANUP_US,
    DAY_US,
    STEADY,
    STOPPED,
    StoreHarness,
    acknowledge_cancel,
    begin,
    by_id,
    cancel_notice,
    complete,
    complete_run,
    fail_run,
    finish,
    hand_back,
    leased,
    ms,
    park,
    payload,
    refused,
    sleep,
    the,
)

S = RunStatus


async def test_a_completed_run_keeps_its_output(harness: StoreHarness) -> None:
    holding = await harness.running()
    harness.clock.advance(us=3)
    closed = the(RunClosed, await harness.do(complete_run(holding, "42")))
    assert (closed.status, closed.at, closed.retry_at) == (S.COMPLETED, harness.now, None)
    record = await harness.run(holding.run)
    assert (record.status, record.output, record.error) == (S.COMPLETED, payload("42"), None)
    assert record.finished_at == harness.now
    (end,) = await harness.store.endings_of([holding.run])
    assert end == RunEnd(run=holding.run, status=S.COMPLETED, output=payload("42"))
    assert (await harness.poll()).next_due_at is None


async def test_a_failed_run_keeps_its_error(harness: StoreHarness) -> None:
    holding = await harness.running()
    error = msgspec.structs.replace(
        BOOM,
        metadata={"a": "b"},
        cause=ErrorDetail(type="OSError", message="disk"),
        subject="step",
        subject_id="charge",
    )
    closed = the(RunClosed, await harness.do(fail_run(holding, error)))
    assert (closed.status, closed.retry_at) == (S.FAILED, None)
    record = await harness.run(holding.run)
    assert (record.status, record.error, record.output, record.attempt) == (S.FAILED, error, None, 1)
    assert list(await harness.store.endings_of([holding.run])) == [
        RunEnd(run=holding.run, status=S.FAILED, error=error)
    ]


async def test_endings_are_returned_in_the_order_requested(harness: StoreHarness) -> None:
    done, open_run = await harness.running(), await harness.running()
    await harness.do(complete_run(done))
    nobody = RunKey("default", harness.ids.run_id(harness.now))
    foreign = RunKey("elsewhere", done.run.run_id)
    first, *rest = await harness.store.endings_of([done.run, nobody, open_run.run, foreign])
    assert the(RunEnd, first).status == S.COMPLETED
    assert rest == [None, S.RUNNING, None]
    assert list(await harness.store.endings_of([])) == []


async def test_the_end_rides_with_the_last_completion(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "last"))
    before = harness.store.transactions
    recorded, closed = await harness.write(complete(holding, "last"), complete_run(holding))
    assert harness.store.transactions - before == 1
    assert the(Recorded, recorded).seq < the(RunClosed, closed).seq
    assert (await harness.steps(holding.run))["last"].status == StepStatus.COMPLETED


async def test_after_its_end_a_run_takes_nothing_more(harness: StoreHarness) -> None:
    holding = await harness.running()
    closed, late, later = await harness.write(complete_run(holding), begin(holding, "late"), sleep(holding, "nap", s=1))
    assert the(RunClosed, closed).status == S.COMPLETED
    assert [late, later] == [LeaseLost(), LeaseLost()]
    assert await harness.steps(holding.run) == {}


@pytest.mark.parametrize("end", [complete_run, fail_run])
async def test_a_repeated_end_answers_the_recorded_one(harness: StoreHarness, end: object) -> None:
    holding = await harness.running()
    first = the(RunClosed, await harness.do(end(holding)))  # type: ignore[operator]
    before = await harness.picture(holding.run)
    harness.clock.advance(s=1)
    again = the(RunClosed, await harness.do(end(holding)))  # type: ignore[operator]
    assert (again.status, again.retry_at) == (first.status, None)
    assert await harness.picture(holding.run) == before


async def test_the_last_batch_of_a_run_can_be_repeated_whole(harness: StoreHarness) -> None:
    holding = await harness.running()
    batch = [
        begin(holding, "a"),
        complete(holding, "a"),
        begin(holding, "b"),
        complete(holding, "b"),
        complete_run(holding),
    ]
    first = await harness.write(*batch)
    before = await harness.picture(holding.run)
    harness.clock.advance(s=1)
    again = await harness.write(*batch)
    assert [again[1], again[3]] == [first[1], first[3]]
    the(Known, again[0])
    the(Known, again[2])
    assert the(RunClosed, again[4]).status == S.COMPLETED
    assert await harness.picture(holding.run) == before


@pytest.mark.parametrize("second", [fail_run, acknowledge_cancel, hand_back, complete_run])
async def test_another_end_does_not_change_the_first(
    harness: StoreHarness, second: Callable[[RunLease], Command]
) -> None:
    holding = await harness.running()
    await harness.do(complete_run(holding, "first"))
    before = await harness.picture(holding.run)
    outcome = await harness.do(second(holding))
    if second is hand_back:
        assert outcome == LeaseLost()
    else:  # the holder is told how the run ended
        assert the(RunClosed, outcome).status == S.COMPLETED
    await harness.cancel(holding.run)
    harness.clock.advance(s=1_000)
    await harness.fire()
    assert await harness.picture(holding.run) == before


async def test_racing_endings_leave_one(harness: StoreHarness, second_harness: StoreHarness) -> None:
    for _ in range(12):
        holding = await harness.running()
        await harness.cancel(holding.run)
        commands = [complete_run(holding), fail_run(holding), acknowledge_cancel(holding)]
        outcomes = await asyncio.gather(
            *((harness, second_harness)[n % 2].do(command) for n, command in enumerate(commands))
        )
        record = await harness.run(holding.run)
        assert record.status.ended
        closed = {outcome.status for outcome in outcomes if isinstance(outcome, RunClosed)}
        assert closed == {record.status}
        assert all(isinstance(outcome, RunClosed | LeaseLost | Busy) for outcome in outcomes)
        assert (record.output is not None) == (record.status == S.COMPLETED)
        assert (record.error is not None) == (record.status != S.COMPLETED)


# --- the run's own retry ----------------------------------------------------------------------------------------------


async def test_a_run_with_a_policy_of_its_own_tries_again_and_keeps_its_results(harness: StoreHarness) -> None:
    holding = await harness.running(retry=STEADY)
    await harness.done(holding, "a", "kept")
    closed = the(RunClosed, await harness.do(fail_run(holding)))
    retry_at = harness.now + ms(10_000)
    assert (closed.status, closed.retry_at) == (S.SLEEPING, retry_at)
    record = await harness.run(holding.run)
    assert (record.status, record.wait_reason, record.wake_at) == (S.SLEEPING, WaitReason.RETRY, retry_at)
    assert (record.attempt, record.finished_at) == (2, None)

    harness.clock.set(retry_at - 1)
    await harness.fire()
    assert await harness.claim() == []
    harness.clock.set(retry_at)
    assert (await harness.fire()).pending == (("default", "hello"),)
    claimed = await harness.claim_one()
    assert claimed.attempt == 2
    assert by_id(claimed.history.steps)["a"].output == payload("kept")


async def test_a_run_retry_that_is_due_at_once_is_pending(harness: StoreHarness) -> None:
    holding = await harness.running(retry=AT_ONCE)
    closed = the(RunClosed, await harness.do(fail_run(holding)))
    assert closed.status == S.PENDING
    assert (await harness.claim_one()).attempt == 2


async def test_a_run_out_of_tries_fails(harness: StoreHarness) -> None:
    holding = await harness.running(retry=RetryPolicy(maximum_attempts=2, initial_interval_ms=0))
    await harness.do(fail_run(holding))
    closed = the(RunClosed, await harness.do(fail_run(leased(await harness.claim_one()))))
    assert (closed.status, closed.retry_at) == (S.FAILED, None)
    record = await harness.run(holding.run)
    assert (record.status, record.attempt) == (S.FAILED, 2)
    assert record.error is not None
    assert record.error.message == "declined"


async def test_an_error_that_forbids_it_fails_the_run_at_once(harness: StoreHarness) -> None:
    holding = await harness.running(retry=STEADY)
    error = msgspec.structs.replace(BOOM, non_retryable=True)
    assert the(RunClosed, await harness.do(fail_run(holding, error))).status == S.FAILED


async def test_a_repeated_failure_of_the_run_is_counted_once(harness: StoreHarness) -> None:
    holding = await harness.running(retry=STEADY)
    first = the(RunClosed, await harness.do(fail_run(holding)))
    before = await harness.picture(holding.run)
    again = the(RunClosed, await harness.do(fail_run(holding)))
    assert (again.status, again.retry_at) == (first.status, first.retry_at)
    assert await harness.picture(holding.run) == before


async def test_a_repeated_failure_of_a_run_that_is_to_be_claimed_again_is_counted_once(harness: StoreHarness) -> None:
    holding = await harness.running(retry=AT_ONCE)
    the(RunClosed, await harness.do(fail_run(holding)))
    before = await harness.picture(holding.run)
    # Pending after its failure, or after its lease was lost: that cannot be told apart. Either way it is no longer
    # held.
    assert await harness.do(fail_run(holding)) == LeaseLost()
    assert await harness.picture(holding.run) == before


async def test_a_repeated_release_answers_the_same(harness: StoreHarness) -> None:
    holding = await harness.running()
    first = the(RunClosed, await harness.do(hand_back(holding)))
    assert first.status == S.PENDING
    before = await harness.picture(holding.run)
    harness.clock.advance(s=1)
    assert the(RunClosed, await harness.do(hand_back(holding))).status == S.PENDING
    assert await harness.picture(holding.run) == before


# --- cancel -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delayed", [False, True])
async def test_a_run_never_claimed_is_cancelled_at_once(harness: StoreHarness, delayed: bool) -> None:
    run = await harness.start(start_at=harness.now + DAY_US if delayed else None)
    assert await harness.cancel(run, "not needed") == S.CANCELLED
    record = await harness.run(run)
    assert harness.effects == Effects(
        ended=(RunEnd(run=run, status=S.CANCELLED, error=record.error, workflow_type="hello"),)
    )
    assert (record.status, record.finished_at) == (S.CANCELLED, harness.now)
    assert record.error is not None
    assert record.error.kind == ErrorKind.CANCELLED
    assert (record.cancel_requested, record.cancel_reason) == (True, "not needed")
    assert (await harness.poll()).next_due_at is None
    harness.clock.advance(us=2 * DAY_US)
    await harness.fire()
    assert await harness.claim() == []


async def test_a_sleeping_run_is_woken_to_clean_up(harness: StoreHarness) -> None:
    sleeper = await harness.asleep(s=3_600)
    assert await harness.cancel(sleeper.run, "enough") == S.PENDING
    key, cancel_by = TypeKey("default", "hello"), harness.now + CLEANUP_US
    assert harness.effects == Effects(pending=(key,), due=(cancel_by,), changed=(sleeper.run,))
    claimed = await harness.claim_one()
    assert (claimed.cancel_requested, claimed.cancel_reason) == (True, "enough")
    assert by_id(claimed.history.steps)["nap"].status == StepStatus.RUNNING, "it was woken, its sleep is not over"
    closed = the(RunClosed, await harness.do(acknowledge_cancel(leased(claimed))))
    assert closed.status == S.CANCELLED
    record = await harness.run(sleeper.run)
    assert (record.status, record.error) == (S.CANCELLED, STOPPED)


async def test_a_running_run_is_cancelled_through_its_holder(harness: StoreHarness) -> None:
    holding = await harness.running()
    assert await harness.cancel(holding.run, "stop") == S.RUNNING
    assert (harness.effects.notices, harness.effects.pending) == ((cancel_notice(holding, "stop"),), ())
    renewal = await harness.renew(holding)
    assert renewal.lost == ()
    assert renewal.cancel_requested == ((holding.run, "stop"),)
    the(Recorded, (await harness.write(begin(holding, "cleanup", cleanup=True), complete(holding, "cleanup")))[1])
    assert the(RunClosed, await harness.do(acknowledge_cancel(holding))).status == S.CANCELLED


async def test_a_handed_back_run_stays_pending_for_its_clean_up(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(hand_back(holding))
    assert await harness.cancel(holding.run) == S.PENDING
    assert (await harness.claim_one()).cancel_requested


async def test_a_cancellation_survives_the_loss_of_the_lease(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run, "stop")
    new = await harness.take_over(holding)
    assert (await harness.run(new.run)).cancel_requested
    assert (await harness.renew(new)).cancel_requested == ((new.run, "stop"),)


async def test_a_completion_before_the_acknowledgement_wins(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run)
    assert the(RunClosed, await harness.do(complete_run(holding))).status == S.COMPLETED
    record = await harness.run(holding.run)
    assert (record.status, record.output) == (S.COMPLETED, payload("result"))
    harness.clock.advance(us=CLEANUP_US + 1)
    assert (await harness.fire()).ended == ()


async def test_no_worker_cancels_a_run_without_a_cancel_request(harness: StoreHarness) -> None:
    holding = await harness.running()
    refused(await harness.do(acknowledge_cancel(holding)), ErrorCode.PRECONDITION_FAILED)
    assert (await harness.run(holding.run)).status == S.RUNNING


async def test_an_ended_run_is_not_cancelled(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(complete_run(holding))
    before = await harness.picture(holding.run)
    assert await harness.cancel(holding.run) == S.COMPLETED
    assert harness.effects is NO_EFFECTS
    assert await harness.picture(holding.run) == before


async def test_no_such_run_to_cancel(harness: StoreHarness) -> None:
    run = await harness.start()
    assert await harness.cancel(RunKey("elsewhere", run.run_id)) is None
    assert await harness.cancel(RunKey("default", harness.ids.run_id(harness.now))) is None
    assert (await harness.run(run)).status == S.PENDING


@pytest.mark.parametrize("state", ["running", "pending", "asleep again"])
async def test_a_clean_up_that_takes_too_long_is_stopped(harness: StoreHarness, state: str) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run, "stop")
    if state == "pending":
        await harness.do(hand_back(holding))
    if state == "asleep again":
        await harness.write(sleep(holding, "wait", s=3_600), park(holding, "wait"))
    limit_at = harness.now + CLEANUP_US
    harness.clock.set(limit_at - 1)
    assert (await harness.fire(end_leases=False)).ended == ()
    assert (await harness.poll()).next_due_at is not None
    harness.clock.set(limit_at)
    (ended,) = (await harness.fire(end_leases=False)).ended
    assert (ended.run, ended.status) == (holding.run, S.CANCELLED)
    record = await harness.run(holding.run)
    assert (record.status, record.finished_at) == (S.CANCELLED, limit_at)
    assert await harness.do(begin(holding, "late")) == LeaseLost()


async def test_cancelling_twice_is_cancelling_once(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run, "first")
    limit_at = harness.now + CLEANUP_US
    harness.clock.advance(s=100)
    assert await harness.cancel(holding.run, "second") == S.RUNNING
    harness.clock.set(limit_at)
    assert [end.run for end in (await harness.fire(end_leases=False)).ended] == [holding.run], (
        "asking again bought time"
    )


# --- deadline ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "running", "asleep", "delayed"])
async def test_a_run_past_its_deadline_fails_by_timer(harness: StoreHarness, state: str) -> None:
    deadline_at = harness.now + ms(5_000)
    if state == "running":
        run = (await harness.running(deadline_at=deadline_at)).run
    elif state == "asleep":
        run = (await harness.asleep(s=3_600, deadline_at=deadline_at)).run
    else:
        start_at = harness.now + DAY_US if state == "delayed" else None
        run = await harness.start(deadline_at=deadline_at, start_at=start_at)
    assert (await harness.poll()).next_due_at == deadline_at
    harness.clock.set(deadline_at - 1)
    assert (await harness.fire()).ended == ()
    harness.clock.set(deadline_at)
    (ended,) = (await harness.fire(end_leases=False)).ended
    assert (ended.run, ended.status) == (run, S.FAILED)
    assert ended.error is not None
    assert ended.error.kind == ErrorKind.TIMEOUT
    record = await harness.run(run)
    assert (record.status, record.error, record.finished_at) == (S.FAILED, ended.error, deadline_at)


async def test_past_its_deadline_nothing_more_is_recorded(harness: StoreHarness) -> None:
    holding = await harness.running(deadline_at=harness.now + 1_000)
    await harness.write(begin(holding, "open"), sleep(holding, "nap", us=500))
    harness.clock.advance(us=1_000)
    before = await harness.picture(holding.run)
    outcomes = await harness.write(
        begin(holding, "new"),
        complete(holding, "open"),
        finish(holding, "nap"),
        sleep(holding, "nap2", s=1),
        park(holding, "nap"),
        complete_run(holding),
        fail_run(holding),
    )
    assert outcomes == [DeadlinePassed()] * 7
    assert await harness.picture(holding.run) == before


async def test_a_microsecond_before_its_deadline_a_run_may_end(harness: StoreHarness) -> None:
    holding = await harness.running(deadline_at=harness.now + 1_000)
    harness.clock.advance(us=999)
    assert the(RunClosed, await harness.do(complete_run(holding))).status == S.COMPLETED
    harness.clock.advance(s=1)
    assert the(RunClosed, await harness.do(complete_run(holding))).status == S.COMPLETED
    assert (await harness.fire()).ended == ()


async def test_a_stale_holder_past_the_deadline_is_still_stale(harness: StoreHarness) -> None:
    old = await harness.running(deadline_at=harness.now + DAY_US)
    await harness.take_over(old)
    harness.clock.advance(us=DAY_US)
    assert await harness.do(begin(RunLease(old.run, old.lease), "a")) == LeaseLost()
