"""Cancelled means stopped (P9): once it was asked for, nothing new is recorded except in a cleanup scope."""

import asyncio

import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.errors import REASON
from kagzi.core.records import RunEnd, RunKey
from kagzi.core.retry.policy import NO_RETRY
from kagzi.core.run.outcomes import (
    Begun,
    ChildStarted,
    Known,
    LeaseLost,
    Parked,
    Recorded,
    RunClosed,
    StepFailed,
    TimerSet,
)
from kagzi.core.states import RunStatus, StepStatus

from .verbs import (
    CLEANUP_US,
    Cellar,
    acknowledge_cancel,
    begin,
    complete,
    complete_run,
    fail,
    fail_run,
    finish,
    park,
    refused,
    sleep,
    the,
    wait_signal,
)

S = RunStatus


async def test_no_new_step_is_recorded_after_the_request(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.cancel(holding.run, "enough")
    new = [
        begin(holding, "a"),
        sleep(holding, "nap", s=1),
        sleep(holding, "past", until=1),
        wait_signal(holding),
        cellar.child_command(holding),
    ]
    for outcome in await cellar.write(*new):
        refusal = refused(outcome, ErrorCode.CANCELLED)
        assert (refusal.kind, refusal.metadata) == (ErrorKind.CANCELLED, {REASON: "enough"})
    for command in new:
        refused(await cellar.do(command), ErrorCode.CANCELLED)
    assert await cellar.steps(holding.run) == {}
    assert await cellar.runs(workflow_types=("child",)) == []


async def test_cleanup_may_do_everything(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.cancel(holding.run)
    the(Begun, await cellar.do(begin(holding, "a", cleanup=True)))
    the(Recorded, await cellar.do(complete(holding, "a")))
    the(TimerSet, await cellar.do(sleep(holding, "nap", s=1, cleanup=True)))
    the(TimerSet, await cellar.do(wait_signal(holding, cleanup=True)))
    the(ChildStarted, await cellar.do(cellar.child_command(holding, cleanup=True)))
    the(Parked, await cellar.do(park(holding, "nap", "approved", "child")))
    cellar.clock.advance(s=1)
    await cellar.fire()
    again = await cellar.hold(holding.run)
    assert the(RunClosed, await cellar.do(acknowledge_cancel(again))).status == S.CANCELLED


async def test_what_was_begun_may_come_to_its_end(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.write(begin(holding, "a"), begin(holding, "b", retry=NO_RETRY), sleep(holding, "nap", s=1))
    await cellar.cancel(holding.run)
    the(Recorded, await cellar.do(complete(holding, "a")))
    the(StepFailed, await cellar.do(fail(holding, "b")))
    cellar.clock.advance(s=1)
    the(Recorded, await cellar.do(finish(holding, "nap")))
    the(Known, await cellar.do(begin(holding, "a")))


async def test_the_fence_of_a_cancelled_run_holds_under_the_next_lease(cellar: Cellar) -> None:
    old = await cellar.running()
    await cellar.done(old, "a")
    await cellar.cancel(old.run)
    new = await cellar.take_over(old)
    refused(await cellar.do(begin(new, "b")), ErrorCode.CANCELLED)
    the(Known, await cellar.do(begin(new, "a")))
    the(Begun, await cellar.do(begin(new, "undo", cleanup=True)))


async def test_a_cancellation_in_the_same_moment_as_a_begin(cellar: Cellar, second_cellar: Cellar) -> None:
    for n in range(15):
        holding = await cellar.running()
        outcome, cancelled = await asyncio.gather(
            cellar.insist(begin(holding, f"{n}")), second_cellar.cancel(holding.run)
        )
        assert cancelled is not None
        assert (f"{n}" in await cellar.steps(holding.run)) == isinstance(outcome, Begun)
        refused(await cellar.do(begin(holding, "after")), ErrorCode.CANCELLED)


# --- terminate ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "running", "sleeping", "paused"])
async def test_a_terminated_run_is_over_at_once_whoever_holds_it(cellar: Cellar, state: str) -> None:
    holding = await cellar.running()
    await cellar.do(begin(holding, "a"))
    if state == "sleeping":
        await cellar.write(sleep(holding, "nap", s=60), park(holding, "nap"))
    elif state != "running":
        await cellar.store.release([holding], cellar.now)
    if state == "paused":
        await cellar.pause(holding.run)
    cellar.clock.advance(s=1)
    changed = await cellar.terminate(holding.run, "has gone mad")
    assert (changed.status, changed.changed, changed.workflow_type) == (S.CANCELLED, True, "hello")
    if state == "running":
        assert (changed.holder, changed.worker_id) == (holding, "worker-1")
    record = await cellar.run(holding.run)
    assert (record.status, record.finished_at) == (S.CANCELLED, cellar.now)
    assert record.error is not None
    assert changed.error == record.error
    assert record.error.kind == ErrorKind.TERMINATED
    assert "has gone mad" in record.error.message
    assert list(await cellar.store.ends_of([holding.run])) == [
        RunEnd(run=holding.run, status=S.CANCELLED, error=record.error)
    ]
    assert await cellar.do(begin(holding, "b", cleanup=True)) == LeaseLost()
    assert await cellar.claim() == []
    assert (await cellar.look()).next_due_at is None


async def test_what_has_ended_cannot_be_terminated(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(complete_run(holding))
    before = await cellar.picture(holding.run)
    changed = await cellar.terminate(holding.run)
    assert (changed.status, changed.changed) == (S.COMPLETED, False)
    assert await cellar.picture(holding.run) == before


async def test_a_run_that_is_not_there_cannot_be_changed(cellar: Cellar) -> None:
    run = await cellar.start()
    nobody = RunKey("default", cellar.ids.run_id(cellar.now))
    for key in (nobody, RunKey("elsewhere", run.run_id)):
        assert await cellar.store.terminate_run(key, "", cellar.now) is None
        assert await cellar.store.pause_run(key, "", cellar.now) is None
        assert await cellar.store.resume_run(key, cellar.now) is None
        assert await cellar.retry(key) is None
        assert await cellar.fork(key, "a") is None
    assert (await cellar.run(run)).status == S.PENDING


async def test_the_cleanup_has_a_limit_of_its_own(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.cancel(holding.run)
    await cellar.write(sleep(holding, "nap", s=3_600, cleanup=True), park(holding, "nap"))
    cellar.clock.advance(us=CLEANUP_US)
    fired = await cellar.fire()
    assert [end.run for end in fired.ended] == [holding.run]
    record = await cellar.run(holding.run)
    assert record.status == S.CANCELLED
    assert (await cellar.steps(holding.run))["nap"].status == StepStatus.ABANDONED


async def test_no_step_of_a_run_that_has_ended_looks_as_if_it_went_on(cellar: Cellar) -> None:
    for end in ("cancelled", "terminated", "completed", "failed"):
        holding = await cellar.running()
        await cellar.do(begin(holding, "charge"))
        await cellar.do(begin(holding, "flaky"))
        await cellar.do(fail(holding, "flaky"))
        await cellar.do(wait_signal(holding))
        before = await cellar.steps(holding.run)
        assert {step.status for step in before.values()} == {StepStatus.RUNNING, StepStatus.PENDING}
        cellar.clock.advance(s=1)
        match end:
            case "cancelled":
                await cellar.cancel(holding.run)
                await cellar.do(acknowledge_cancel(holding))
            case "terminated":
                await cellar.store.terminate_run(holding.run, "enough", cellar.now)
            case "completed":
                await cellar.do(complete_run(holding))
            case _:
                await cellar.do(fail_run(holding))
        finished_at = (await cellar.run(holding.run)).finished_at
        for step_id, step in (await cellar.steps(holding.run)).items():
            assert (step.status, step.finished_at, step.retry_at) == (StepStatus.ABANDONED, finished_at, None), step_id
            assert await cellar.store.get_step(holding.run, step_id) == step
    await cellar.store.retry_run(holding.run, "", "again", cellar.now)  # the failed one: its steps are as they were
    assert (await cellar.steps(holding.run))["charge"].status is StepStatus.RUNNING
