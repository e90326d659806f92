"""Cancelled means stopped (P9): once it was asked for, nothing new is recorded except in a cleanup scope."""

import asyncio

import msgspec
import pytest

from kagzi.core.effects import NO_EFFECTS, LeaseNotice
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
    StoreHarness,
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


async def test_no_new_step_is_recorded_after_the_request(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run, "enough")
    new = [
        begin(holding, "a"),
        sleep(holding, "nap", s=1),
        sleep(holding, "past", until=1),
        wait_signal(holding),
        harness.child_command(holding),
    ]
    for outcome in await harness.write(*new):
        refusal = refused(outcome, ErrorCode.CANCELLED)
        assert (refusal.kind, refusal.metadata) == (ErrorKind.CANCELLED, {REASON: "enough"})
    for command in new:
        refused(await harness.do(command), ErrorCode.CANCELLED)
    assert await harness.steps(holding.run) == {}
    assert await harness.runs(workflow_types=("child",)) == []


async def test_cleanup_may_do_everything(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run)
    the(Begun, await harness.do(begin(holding, "a", cleanup=True)))
    the(Recorded, await harness.do(complete(holding, "a")))
    the(TimerSet, await harness.do(sleep(holding, "nap", s=1, cleanup=True)))
    the(TimerSet, await harness.do(wait_signal(holding, cleanup=True)))
    the(ChildStarted, await harness.do(harness.child_command(holding, cleanup=True)))
    the(Parked, await harness.do(park(holding, "nap", "approved", "child")))
    harness.clock.advance(s=1)
    await harness.fire()
    again = await harness.hold(holding.run)
    assert the(RunClosed, await harness.do(acknowledge_cancel(again))).status == S.CANCELLED


async def test_what_was_begun_may_come_to_its_end(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a"), begin(holding, "b", retry=NO_RETRY), sleep(holding, "nap", s=1))
    await harness.cancel(holding.run)
    the(Recorded, await harness.do(complete(holding, "a")))
    the(StepFailed, await harness.do(fail(holding, "b")))
    harness.clock.advance(s=1)
    the(Recorded, await harness.do(finish(holding, "nap")))
    the(Known, await harness.do(begin(holding, "a")))


async def test_the_fence_of_a_cancelled_run_holds_under_the_next_lease(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.done(old, "a")
    await harness.cancel(old.run)
    new = await harness.take_over(old)
    refused(await harness.do(begin(new, "b")), ErrorCode.CANCELLED)
    the(Known, await harness.do(begin(new, "a")))
    the(Begun, await harness.do(begin(new, "undo", cleanup=True)))


async def test_a_cancellation_in_the_same_moment_as_a_begin(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    for n in range(15):
        holding = await harness.running()
        outcome, cancelled = await asyncio.gather(
            harness.insist(begin(holding, f"{n}")), second_harness.cancel(holding.run)
        )
        assert cancelled is not None
        assert (f"{n}" in await harness.steps(holding.run)) == isinstance(outcome, Begun)
        refused(await harness.do(begin(holding, "after")), ErrorCode.CANCELLED)


# --- terminate --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pending", "running", "sleeping", "paused"])
async def test_a_terminated_run_is_over_at_once_whoever_holds_it(harness: StoreHarness, state: str) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "a"))
    if state == "sleeping":
        await harness.write(sleep(holding, "nap", s=60), park(holding, "nap"))
    elif state != "running":
        await harness.store.release([holding], harness.now)
    if state == "paused":
        await harness.pause(holding.run)
    harness.clock.advance(s=1)
    assert await harness.terminate(holding.run, "has gone mad") == S.CANCELLED
    notice = LeaseNotice(holding, "lease_lost", "worker-1", "has gone mad")
    assert harness.effects.notices == ((notice,) if state == "running" else ())
    record = await harness.run(holding.run)
    assert (record.status, record.finished_at) == (S.CANCELLED, harness.now)
    assert record.error is not None
    end = RunEnd(run=holding.run, status=S.CANCELLED, error=record.error)
    assert harness.effects.ended == (msgspec.structs.replace(end, workflow_type="hello"),)
    assert record.error.kind == ErrorKind.TERMINATED
    assert "has gone mad" in record.error.message
    assert list(await harness.store.endings_of([holding.run])) == [end]
    assert await harness.do(begin(holding, "b", cleanup=True)) == LeaseLost()
    assert await harness.claim() == []
    assert (await harness.poll()).next_due_at is None


async def test_what_has_ended_cannot_be_terminated(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(complete_run(holding))
    before = await harness.picture(holding.run)
    assert await harness.terminate(holding.run) == S.COMPLETED
    assert harness.effects is NO_EFFECTS
    assert await harness.picture(holding.run) == before


async def test_a_run_that_is_not_there_cannot_be_changed(harness: StoreHarness) -> None:
    run = await harness.start()
    nobody = RunKey("default", harness.ids.run_id(harness.now))
    for key in (nobody, RunKey("elsewhere", run.run_id)):
        assert await harness.store.terminate_run(key, "", harness.now) == (None, NO_EFFECTS)
        assert await harness.store.pause_run(key, "", harness.now) == (None, NO_EFFECTS)
        assert await harness.store.resume_run(key, harness.now) == (None, NO_EFFECTS)
        assert await harness.retry(key) is None
        assert await harness.fork(key, "a") is None
    assert (await harness.run(run)).status == S.PENDING


async def test_the_cleanup_has_a_limit_of_its_own(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run)
    await harness.write(sleep(holding, "nap", s=3_600, cleanup=True), park(holding, "nap"))
    harness.clock.advance(us=CLEANUP_US)
    fired = await harness.fire()
    assert [end.run for end in fired.ended] == [holding.run]
    record = await harness.run(holding.run)
    assert record.status == S.CANCELLED
    assert (await harness.steps(holding.run))["nap"].status == StepStatus.ABANDONED


async def test_no_step_of_a_run_that_has_ended_is_shown_as_running(harness: StoreHarness) -> None:
    for end in ("cancelled", "terminated", "completed", "failed"):
        holding = await harness.running()
        await harness.do(begin(holding, "charge"))
        await harness.do(begin(holding, "flaky"))
        await harness.do(fail(holding, "flaky"))
        await harness.do(wait_signal(holding))
        before = await harness.steps(holding.run)
        assert {step.status for step in before.values()} == {StepStatus.RUNNING, StepStatus.PENDING}
        harness.clock.advance(s=1)
        match end:
            case "cancelled":
                await harness.cancel(holding.run)
                await harness.do(acknowledge_cancel(holding))
            case "terminated":
                await harness.store.terminate_run(holding.run, "enough", harness.now)
            case "completed":
                await harness.do(complete_run(holding))
            case _:
                await harness.do(fail_run(holding))
        finished_at = (await harness.run(holding.run)).finished_at
        for step_id, step in (await harness.steps(holding.run)).items():
            assert (step.status, step.finished_at, step.retry_at) == (StepStatus.ABANDONED, finished_at, None), step_id
            assert await harness.store.get_step(holding.run, step_id) == step
    await harness.store.retry_run(holding.run, "", "again", harness.now)  # the failed one: its steps are as they were
    assert (await harness.steps(holding.run))["charge"].status is StepStatus.RUNNING
