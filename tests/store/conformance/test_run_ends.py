"""One end (P4): a run reaches exactly one terminal state, and it never changes."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import Held, RunEnd, RunKey
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Busy, DeadlinePassed, Known, LeaseLost, Recorded, RunClosed
from kagzi.core.states import RunStatus, StepStatus, WaitReason

from .verbs import (
    AT_ONCE,
    BOOM,
    CLEANUP_US,
    DAY_US,
    STEADY,
    STOPPED,
    Cellar,
    acknowledge_cancel,
    begin,
    by_id,
    complete,
    complete_run,
    fail_run,
    finish,
    hand_back,
    held,
    ms,
    park,
    payload,
    refused,
    sleep,
    the,
)

S = RunStatus


async def test_a_completed_run_keeps_its_output(cellar: Cellar) -> None:
    holding = await cellar.running()
    cellar.clock.advance(us=3)
    closed = the(RunClosed, await cellar.do(complete_run(holding, "42")))
    assert (closed.status, closed.at, closed.retry_at) == (S.COMPLETED, cellar.now, None)
    record = await cellar.run(holding.run)
    assert (record.status, record.output, record.error) == (S.COMPLETED, payload("42"), None)
    assert record.finished_at == cellar.now
    (end,) = await cellar.store.ends_of([holding.run])
    assert end == RunEnd(run=holding.run, status=S.COMPLETED, output=payload("42"))
    assert (await cellar.look()).next_due_at is None


async def test_a_failed_run_keeps_its_error(cellar: Cellar) -> None:
    holding = await cellar.running()
    error = msgspec.structs.replace(
        BOOM,
        metadata={"a": "b"},
        cause=ErrorDetail(type="OSError", message="disk"),
        subject="step",
        subject_id="charge",
    )
    closed = the(RunClosed, await cellar.do(fail_run(holding, error)))
    assert (closed.status, closed.retry_at) == (S.FAILED, None)
    record = await cellar.run(holding.run)
    assert (record.status, record.error, record.output, record.attempt) == (S.FAILED, error, None, 1)
    assert list(await cellar.store.ends_of([holding.run])) == [RunEnd(run=holding.run, status=S.FAILED, error=error)]


async def test_ends_are_told_in_the_order_asked_for(cellar: Cellar) -> None:
    done, open_run = await cellar.running(), await cellar.running()
    await cellar.do(complete_run(done))
    nobody = RunKey("default", cellar.ids.run_id(cellar.now))
    foreign = RunKey("elsewhere", done.run.run_id)
    first, *rest = await cellar.store.ends_of([done.run, nobody, open_run.run, foreign])
    assert the(RunEnd, first).status == S.COMPLETED
    assert rest == [None, S.RUNNING, None]
    assert list(await cellar.store.ends_of([])) == []


async def test_the_end_rides_with_the_last_completion(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(begin(holding, "last"))
    before = cellar.store.transactions
    recorded, closed = await cellar.write(complete(holding, "last"), complete_run(holding))
    assert cellar.store.transactions - before == 1
    assert the(Recorded, recorded).seq < the(RunClosed, closed).seq
    assert (await cellar.steps(holding.run))["last"].status == StepStatus.COMPLETED


async def test_after_its_end_a_run_takes_nothing_more(cellar: Cellar) -> None:
    holding = await cellar.running()
    closed, late, later = await cellar.write(complete_run(holding), begin(holding, "late"), sleep(holding, "nap", s=1))
    assert the(RunClosed, closed).status == S.COMPLETED
    assert [late, later] == [LeaseLost(), LeaseLost()]
    assert await cellar.steps(holding.run) == {}


@pytest.mark.parametrize("end", [complete_run, fail_run])
async def test_a_repeated_end_answers_the_recorded_one(cellar: Cellar, end: object) -> None:
    holding = await cellar.running()
    first = the(RunClosed, await cellar.do(end(holding)))  # type: ignore[operator]
    before = await cellar.picture(holding.run)
    cellar.clock.advance(s=1)
    again = the(RunClosed, await cellar.do(end(holding)))  # type: ignore[operator]
    assert (again.status, again.retry_at) == (first.status, None)
    assert await cellar.picture(holding.run) == before


async def test_the_last_batch_of_a_run_can_be_repeated_whole(cellar: Cellar) -> None:
    holding = await cellar.running()
    batch = [
        begin(holding, "a"),
        complete(holding, "a"),
        begin(holding, "b"),
        complete(holding, "b"),
        complete_run(holding),
    ]
    first = await cellar.write(*batch)
    before = await cellar.picture(holding.run)
    cellar.clock.advance(s=1)
    again = await cellar.write(*batch)
    assert [again[1], again[3]] == [first[1], first[3]]
    the(Known, again[0])
    the(Known, again[2])
    assert the(RunClosed, again[4]).status == S.COMPLETED
    assert await cellar.picture(holding.run) == before


@pytest.mark.parametrize("second", [fail_run, acknowledge_cancel, hand_back, complete_run])
async def test_another_end_does_not_change_the_first(cellar: Cellar, second: Callable[[Held], Command]) -> None:
    holding = await cellar.running()
    await cellar.do(complete_run(holding, "first"))
    before = await cellar.picture(holding.run)
    outcome = await cellar.do(second(holding))
    if second is hand_back:
        assert outcome == LeaseLost()
    else:  # the holder is told how the run ended
        assert the(RunClosed, outcome).status == S.COMPLETED
    await cellar.cancel(holding.run)
    cellar.clock.advance(s=1_000)
    await cellar.fire()
    assert await cellar.picture(holding.run) == before


async def test_racing_ends_leave_one(cellar: Cellar, second_cellar: Cellar) -> None:
    for _ in range(12):
        holding = await cellar.running()
        await cellar.cancel(holding.run)
        commands = [complete_run(holding), fail_run(holding), acknowledge_cancel(holding)]
        outcomes = await asyncio.gather(
            *((cellar, second_cellar)[n % 2].do(command) for n, command in enumerate(commands))
        )
        record = await cellar.run(holding.run)
        assert record.status.ended
        closed = {outcome.status for outcome in outcomes if isinstance(outcome, RunClosed)}
        assert closed == {record.status}
        assert all(isinstance(outcome, RunClosed | LeaseLost | Busy) for outcome in outcomes)
        assert (record.output is not None) == (record.status == S.COMPLETED)
        assert (record.error is not None) == (record.status != S.COMPLETED)


# --- the run's own retry ----------------------------------------------------------------------------------------------


async def test_a_run_with_a_policy_of_its_own_tries_again_and_keeps_its_results(cellar: Cellar) -> None:
    holding = await cellar.running(retry=STEADY)
    await cellar.done(holding, "a", "kept")
    closed = the(RunClosed, await cellar.do(fail_run(holding)))
    retry_at = cellar.now + ms(10_000)
    assert (closed.status, closed.retry_at) == (S.SLEEPING, retry_at)
    record = await cellar.run(holding.run)
    assert (record.status, record.wait_reason, record.wake_at) == (S.SLEEPING, WaitReason.RETRY, retry_at)
    assert (record.attempt, record.finished_at) == (2, None)

    cellar.clock.set(retry_at - 1)
    await cellar.fire()
    assert await cellar.claim() == []
    cellar.clock.set(retry_at)
    assert (await cellar.fire()).woken == (("default", "hello"),)
    claimed = await cellar.claim_one()
    assert claimed.attempt == 2
    assert by_id(claimed.history.steps)["a"].output == payload("kept")


async def test_a_run_retry_that_is_due_at_once_is_pending(cellar: Cellar) -> None:
    holding = await cellar.running(retry=AT_ONCE)
    closed = the(RunClosed, await cellar.do(fail_run(holding)))
    assert closed.status == S.PENDING
    assert (await cellar.claim_one()).attempt == 2


async def test_a_run_out_of_tries_fails(cellar: Cellar) -> None:
    holding = await cellar.running(retry=RetryPolicy(maximum_attempts=2, initial_interval_ms=0))
    await cellar.do(fail_run(holding))
    closed = the(RunClosed, await cellar.do(fail_run(held(await cellar.claim_one()))))
    assert (closed.status, closed.retry_at) == (S.FAILED, None)
    record = await cellar.run(holding.run)
    assert (record.status, record.attempt) == (S.FAILED, 2)
    assert record.error is not None
    assert record.error.message == "declined"


async def test_an_error_that_forbids_it_fails_the_run_at_once(cellar: Cellar) -> None:
    holding = await cellar.running(retry=STEADY)
    error = msgspec.structs.replace(BOOM, non_retryable=True)
    assert the(RunClosed, await cellar.do(fail_run(holding, error))).status == S.FAILED


async def test_a_repeated_failure_of_the_run_is_counted_once(cellar: Cellar) -> None:
    holding = await cellar.running(retry=STEADY)
    first = the(RunClosed, await cellar.do(fail_run(holding)))
    before = await cellar.picture(holding.run)
    again = the(RunClosed, await cellar.do(fail_run(holding)))
    assert (again.status, again.retry_at) == (first.status, first.retry_at)
    assert await cellar.picture(holding.run) == before


async def test_a_repeated_failure_of_a_run_that_is_to_be_claimed_again_is_counted_once(cellar: Cellar) -> None:
    holding = await cellar.running(retry=AT_ONCE)
    the(RunClosed, await cellar.do(fail_run(holding)))
    before = await cellar.picture(holding.run)
    # Pending after its failure, or after its lease was lost: that cannot be told apart. Either way it is no longer held.
    assert await cellar.do(fail_run(holding)) == LeaseLost()
    assert await cellar.picture(holding.run) == before


async def test_a_repeated_release_answers_the_same(cellar: Cellar) -> None:
    holding = await cellar.running()
    first = the(RunClosed, await cellar.do(hand_back(holding)))
    assert first.status == S.PENDING
    before = await cellar.picture(holding.run)
    cellar.clock.advance(s=1)
    assert the(RunClosed, await cellar.do(hand_back(holding))).status == S.PENDING
    assert await cellar.picture(holding.run) == before


# --- cancel -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delayed", [False, True])
async def test_a_run_never_claimed_is_cancelled_at_once(cellar: Cellar, delayed: bool) -> None:
    run = await cellar.start(start_at=cellar.now + DAY_US if delayed else None)
    answer = await cellar.cancel(run, "not needed")
    assert answer is not None
    assert (answer.status, answer.ended, answer.holder, answer.woken) == (S.CANCELLED, True, None, None)
    record = await cellar.run(run)
    assert (record.status, record.finished_at) == (S.CANCELLED, cellar.now)
    assert record.error is not None
    assert record.error.kind == ErrorKind.CANCELLED
    assert (record.cancel_requested, record.cancel_reason) == (True, "not needed")
    assert (await cellar.look()).next_due_at is None
    cellar.clock.advance(us=2 * DAY_US)
    await cellar.fire()
    assert await cellar.claim() == []


async def test_a_sleeping_run_is_woken_to_clean_up(cellar: Cellar) -> None:
    sleeper = await cellar.asleep(s=3_600)
    answer = await cellar.cancel(sleeper.run, "enough")
    assert answer is not None
    assert (answer.status, answer.ended, answer.woken) == (S.PENDING, False, ("default", "hello"))
    claimed = await cellar.claim_one()
    assert (claimed.cancel_requested, claimed.cancel_reason) == (True, "enough")
    assert by_id(claimed.history.steps)["nap"].status == StepStatus.RUNNING, "it was woken, its sleep is not over"
    closed = the(RunClosed, await cellar.do(acknowledge_cancel(held(claimed))))
    assert closed.status == S.CANCELLED
    record = await cellar.run(sleeper.run)
    assert (record.status, record.error) == (S.CANCELLED, STOPPED)


async def test_a_running_run_is_asked_through_its_holder(cellar: Cellar) -> None:
    holding = await cellar.running()
    answer = await cellar.cancel(holding.run, "stop")
    assert answer is not None
    assert (answer.status, answer.ended, answer.holder) == (S.RUNNING, False, holding)
    assert answer.worker_id == "worker-1"
    renewal = await cellar.renew(holding)
    assert renewal.lost == ()
    assert renewal.cancel_requested == ((holding.run, "stop"),)
    the(Recorded, (await cellar.write(begin(holding, "cleanup", cleanup=True), complete(holding, "cleanup")))[1])
    assert the(RunClosed, await cellar.do(acknowledge_cancel(holding))).status == S.CANCELLED


async def test_a_handed_back_run_stays_pending_for_its_clean_up(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(hand_back(holding))
    answer = await cellar.cancel(holding.run)
    assert answer is not None
    assert (answer.status, answer.ended) == (S.PENDING, False)
    assert (await cellar.claim_one()).cancel_requested


async def test_a_cancellation_survives_the_loss_of_the_lease(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.cancel(holding.run, "stop")
    new = await cellar.take_over(holding)
    assert (await cellar.run(new.run)).cancel_requested
    assert (await cellar.renew(new)).cancel_requested == ((new.run, "stop"),)


async def test_a_completion_before_the_acknowledgement_wins(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.cancel(holding.run)
    assert the(RunClosed, await cellar.do(complete_run(holding))).status == S.COMPLETED
    record = await cellar.run(holding.run)
    assert (record.status, record.output) == (S.COMPLETED, payload("result"))
    cellar.clock.advance(us=CLEANUP_US + 1)
    assert (await cellar.fire()).ended == ()


async def test_nobody_cancels_what_was_not_asked_to_stop(cellar: Cellar) -> None:
    holding = await cellar.running()
    refused(await cellar.do(acknowledge_cancel(holding)), ErrorCode.PRECONDITION_FAILED)
    assert (await cellar.run(holding.run)).status == S.RUNNING


async def test_an_ended_run_is_not_cancelled(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(complete_run(holding))
    before = await cellar.picture(holding.run)
    answer = await cellar.cancel(holding.run)
    assert answer is not None
    assert (answer.status, answer.ended, answer.holder) == (S.COMPLETED, False, None)
    assert await cellar.picture(holding.run) == before


async def test_no_such_run_to_cancel(cellar: Cellar) -> None:
    run = await cellar.start()
    assert await cellar.cancel(RunKey("elsewhere", run.run_id)) is None
    assert await cellar.cancel(RunKey("default", cellar.ids.run_id(cellar.now))) is None
    assert (await cellar.run(run)).status == S.PENDING


@pytest.mark.parametrize("state", ["running", "pending", "asleep again"])
async def test_a_clean_up_that_takes_too_long_is_cut_off(cellar: Cellar, state: str) -> None:
    holding = await cellar.running()
    await cellar.cancel(holding.run, "stop")
    if state == "pending":
        await cellar.do(hand_back(holding))
    if state == "asleep again":
        await cellar.write(sleep(holding, "wait", s=3_600), park(holding, "wait"))
    cut_off_at = cellar.now + CLEANUP_US
    cellar.clock.set(cut_off_at - 1)
    assert (await cellar.fire(end_leases=False)).ended == ()
    assert (await cellar.look()).next_due_at is not None
    cellar.clock.set(cut_off_at)
    (ended,) = (await cellar.fire(end_leases=False)).ended
    assert (ended.run, ended.status) == (holding.run, S.CANCELLED)
    record = await cellar.run(holding.run)
    assert (record.status, record.finished_at) == (S.CANCELLED, cut_off_at)
    assert await cellar.do(begin(holding, "late")) == LeaseLost()


async def test_cancelling_twice_is_cancelling_once(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.cancel(holding.run, "first")
    cut_off_at = cellar.now + CLEANUP_US
    cellar.clock.advance(s=100)
    answer = await cellar.cancel(holding.run, "second")
    assert answer is not None
    assert (answer.status, answer.ended) == (S.RUNNING, False)
    cellar.clock.set(cut_off_at)
    assert [end.run for end in (await cellar.fire(end_leases=False)).ended] == [holding.run], "asking again bought time"


# --- deadline ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "running", "asleep", "delayed"])
async def test_a_run_past_its_deadline_fails_by_timer(cellar: Cellar, state: str) -> None:
    deadline_at = cellar.now + ms(5_000)
    if state == "running":
        run = (await cellar.running(deadline_at=deadline_at)).run
    elif state == "asleep":
        run = (await cellar.asleep(s=3_600, deadline_at=deadline_at)).run
    else:
        start_at = cellar.now + DAY_US if state == "delayed" else None
        run = await cellar.start(deadline_at=deadline_at, start_at=start_at)
    assert (await cellar.look()).next_due_at == deadline_at
    cellar.clock.set(deadline_at - 1)
    assert (await cellar.fire()).ended == ()
    cellar.clock.set(deadline_at)
    (ended,) = (await cellar.fire(end_leases=False)).ended
    assert (ended.run, ended.status) == (run, S.FAILED)
    assert ended.error is not None
    assert ended.error.kind == ErrorKind.TIMEOUT
    record = await cellar.run(run)
    assert (record.status, record.error, record.finished_at) == (S.FAILED, ended.error, deadline_at)


async def test_past_its_deadline_nothing_more_is_recorded(cellar: Cellar) -> None:
    holding = await cellar.running(deadline_at=cellar.now + 1_000)
    await cellar.write(begin(holding, "open"), sleep(holding, "nap", us=500))
    cellar.clock.advance(us=1_000)
    before = await cellar.picture(holding.run)
    outcomes = await cellar.write(
        begin(holding, "new"),
        complete(holding, "open"),
        finish(holding, "nap"),
        sleep(holding, "nap2", s=1),
        park(holding, "nap"),
        complete_run(holding),
        fail_run(holding),
    )
    assert outcomes == [DeadlinePassed()] * 7
    assert await cellar.picture(holding.run) == before


async def test_a_microsecond_before_its_deadline_a_run_may_end(cellar: Cellar) -> None:
    holding = await cellar.running(deadline_at=cellar.now + 1_000)
    cellar.clock.advance(us=999)
    assert the(RunClosed, await cellar.do(complete_run(holding))).status == S.COMPLETED
    cellar.clock.advance(s=1)
    assert the(RunClosed, await cellar.do(complete_run(holding))).status == S.COMPLETED
    assert (await cellar.fire()).ended == ()


async def test_a_stale_holder_past_the_deadline_is_still_stale(cellar: Cellar) -> None:
    old = await cellar.running(deadline_at=cellar.now + DAY_US)
    await cellar.take_over(old)
    cellar.clock.advance(us=DAY_US)
    assert await cellar.do(begin(Held(old.run, old.lease), "a")) == LeaseLost()
