"""Retry and fork: what a finished run did is kept; the run, or another one, goes on from a chosen step."""

from typing import Any

import msgspec
import pytest

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import RunKey, RunLease, StepAttempt
from kagzi.core.retry.policy import NO_RETRY
from kagzi.core.run.outcomes import Begun, ChildStarted, Existing, Known, Parked, RetryScheduled, RunClosed, Started
from kagzi.core.states import RunStatus, StepStatus

from .invariants import check_invariants
from .verbs import (
    AT_ONCE,
    BOOM,
    STEADY,
    StoreHarness,
    begin,
    by_id,
    complete,
    complete_run,
    fail,
    fail_run,
    leased,
    park,
    payload,
    refused,
    sleep,
    the,
    wait_signal,
    woken_by_result,
)

S = RunStatus
TWICE = msgspec.structs.replace(AT_ONCE, maximum_attempts=2)
CHARGE_FAILED = ErrorDetail(
    type="kagzi.StepError", message="charge failed", subject="step", subject_id="charge", cause=BOOM
)


async def failed_run(harness: StoreHarness, **options: object) -> RunLease:
    """a, charge (failed), b, and then the run failed because of charge."""
    holding = await harness.running(**options)
    await harness.done(holding, "a", "1")
    await harness.write(begin(holding, "charge", retry=NO_RETRY), fail(holding, "charge"))
    await harness.done(holding, "b", "2")
    the(RunClosed, await harness.do(fail_run(holding, CHARGE_FAILED)))
    return holding


async def test_a_workflow_id_names_the_run_that_is_open_again_though_a_later_one_has_ended(
    harness: StoreHarness,
) -> None:
    first = await failed_run(harness, workflow_id="w")
    harness.clock.advance(s=10)
    second = await harness.running(workflow_id="w")
    the(RunClosed, await harness.do(complete_run(second)))
    assert await run_of_workflow(harness, first) == second.run.run_id
    assert await harness.retry(first.run) == S.PENDING
    assert await run_of_workflow(harness, first) == first.run.run_id


async def run_of_workflow(harness: StoreHarness, lease: RunLease) -> str:
    record = await harness.store.get_run(lease.run.namespace, workflow_id="w")
    assert record is not None
    return record.run.run_id


async def test_a_retry_forgets_the_step_that_failed_and_what_came_after_it(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    harness.clock.advance(s=10)
    assert await harness.retry(last.run) == S.PENDING
    assert harness.effects == woken_by_result(last.run)
    record = await harness.run(last.run)
    assert (record.status, record.error, record.finished_at) == (S.PENDING, None, None)
    assert await harness.store.endings_of([last.run]) == [S.PENDING]
    claimed = await harness.claim_one()
    assert claimed.lease.counter == 2
    results = {name: step for name, step in by_id(claimed.history.steps).items() if step.seq}
    assert set(results) == {"a"}
    assert results["a"].output == payload("1")
    new = leased(claimed)
    the(Known, await harness.do(begin(new, "a")))
    the(Begun, await harness.do(begin(new, "charge", 0)))
    await harness.do(complete(new, "charge", "paid", 0))
    await harness.done(new, "b", "3")
    await harness.do(complete_run(new, "fine"))
    record, steps = await harness.picture(last.run)
    assert (record.status, record.output, record.error) == (S.COMPLETED, payload("fine"), None)
    assert steps["charge"].output == payload("paid")
    assert steps["b"].output == payload("3")


async def test_a_retry_keeps_the_failure_in_the_history(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    await harness.retry(last.run)
    new = await harness.hold(last.run)
    await harness.do(begin(new, "charge", 0))
    steps = await harness.steps(last.run)
    (earlier,) = steps["charge"].attempts
    assert the(StepAttempt, earlier).error.type == BOOM.type
    assert earlier.before_retry
    assert steps["charge"].status == StepStatus.RUNNING
    await harness.do(complete(new, "charge", "paid", 0))
    assert [each.before_retry for each in (await harness.steps(last.run))["charge"].attempts] == [True]


async def test_attempts_of_before_a_retry_are_told_from_those_after_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "kept", retry=AT_ONCE), fail(holding, "kept"))
    await harness.write(begin(holding, "kept", 2), complete(holding, "kept", "1", 2))
    await harness.do(begin(holding, "charge", retry=TWICE))
    holding = await harness.take_over(holding)
    for attempt in (1, 2):
        await harness.write(begin(holding, "charge", attempt), fail(holding, "charge", attempt=attempt))
    the(RunClosed, await harness.do(fail_run(holding, CHARGE_FAILED)))
    await harness.retry(holding.run)
    new = await harness.hold(holding.run)
    await harness.write(begin(new, "charge", 0, retry=TWICE), fail(new, "charge"), begin(new, "charge", 2))
    new = await harness.take_over(new)
    steps = await harness.steps(holding.run)
    assert [(each.attempt, each.lost, each.before_retry) for each in steps["charge"].attempts] == [
        (1, True, True),
        (1, False, True),
        (2, False, True),
        (1, False, False),
        (2, True, False),
    ]
    assert [each.before_retry for each in steps["kept"].attempts] == [False]


async def test_a_retry_may_begin_at_another_step(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    assert await harness.retry(last.run, "a") == S.PENDING
    claimed = await harness.claim_one()
    assert [step.step_id for step in claimed.history.steps if step.seq] == []


async def test_a_run_that_failed_by_itself_keeps_all_results(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a", "1")
    await harness.do(fail_run(holding))
    assert await harness.retry(holding.run) == S.PENDING
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["a"].output == payload("1")


async def test_a_retry_can_be_repeated(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    assert await harness.retry(last.run, request_id="r") == S.PENDING
    before = await harness.picture(last.run)
    assert await harness.retry(last.run, request_id="r") == S.PENDING
    assert harness.effects is NO_EFFECTS
    assert await harness.picture(last.run) == before


async def test_what_cannot_be_retried_is_refused(harness: StoreHarness) -> None:
    running = await harness.running()
    refused(await harness.retry(running.run), ErrorCode.PRECONDITION_FAILED)
    await harness.do(complete_run(running))
    refused(await harness.retry(running.run), ErrorCode.PRECONDITION_FAILED)
    last = await failed_run(harness)
    before = await harness.picture(last.run)
    error = refused(await harness.retry(last.run, "no such step"), ErrorCode.PRECONDITION_FAILED)
    assert "no such step" in error.message
    assert await harness.picture(last.run) == before


async def test_a_run_whose_id_is_active_again_is_not_retried(harness: StoreHarness) -> None:
    last = await failed_run(harness, workflow_id="order-1")
    other = await harness.start("order-1")
    assert "order-1" in refused(await harness.retry(last.run), ErrorCode.CONFLICT).message
    assert (await harness.run(last.run)).status == S.FAILED
    await harness.terminate(other)
    assert await harness.retry(last.run) == S.PENDING


async def test_a_lease_of_the_first_life_is_worthless_in_the_second(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    await harness.retry(last.run)
    new = await harness.hold(last.run)
    await harness.do(begin(last, "ghost"))
    await harness.do(complete_run(last))
    assert (await harness.run(last.run)).status == S.RUNNING
    assert "ghost" not in await harness.steps(last.run)
    the(RunClosed, await harness.do(complete_run(new)))


async def test_the_retry_of_a_child_is_its_own_affair(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    await harness.do(fail_run(await harness.hold(child)))
    step = (await harness.steps(parent.run))["child"]
    assert step.status == StepStatus.FAILED
    assert await harness.retry(child) == S.PENDING
    await harness.do(complete_run(await harness.hold(child)))
    assert (await harness.steps(parent.run))["child"] == step


# --- fork -------------------------------------------------------------------------------------------------------------


async def forked(harness: StoreHarness, source: RunKey, from_step: str, **options: object) -> RunKey:
    return RunKey(source.namespace, the(Started, await harness.fork(source, from_step, **options)).run_id)


async def test_a_fork_has_what_the_source_had_before_the_step_was_begun(harness: StoreHarness) -> None:
    last = await failed_run(harness, input=payload("in"), labels={"k": "v"}, workflow_id="order-1")
    before = await harness.picture(last.run)
    run = await forked(harness, last.run, "charge", workflow_id="order-1-again")
    record = await harness.run(run)
    assert (record.status, record.forked_from, record.workflow_id) == (S.PENDING, last.run.run_id, "order-1-again")
    assert (record.input, record.workflow_type, record.labels) == (payload("in"), "hello", {"k": "v"})
    claimed = await harness.claim_one()
    assert claimed.run == run
    assert claimed.lease.counter == 1
    (step,) = claimed.history.steps
    assert (step.step_id, step.status, step.output) == ("a", StepStatus.COMPLETED, payload("1"))
    new = leased(claimed)
    the(Begun, await harness.do(begin(new, "charge")))
    seqs = [one.begun_seq for one in (await harness.steps(run)).values()]
    assert len(seqs) == len(set(seqs))
    assert await harness.picture(last.run) == before, "the source was touched"


async def test_a_fork_may_replace_recorded_outputs(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a", "1")
    await harness.done(holding, "b", "2")
    await harness.done(holding, "c", "3")
    await harness.do(complete_run(holding))
    run = await forked(harness, holding.run, "c", outputs={"a": payload("replaced")})
    claimed = await harness.claim_one()
    assert claimed.run == run
    outputs = {step.step_id: step.output for step in claimed.history.steps}
    assert outputs == {"a": payload("replaced"), "b": payload("2")}
    assert (await harness.steps(holding.run))["a"].output == payload("1")


async def test_a_fork_may_be_of_a_run_that_goes_on_and_of_another_version(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a", "1")
    await harness.do(begin(holding, "b"))
    run = await forked(harness, holding.run, "b", version="2")
    assert (await harness.run(run)).version == "2"
    assert await harness.claim(versions=("1",)) == []
    claimed = await harness.claim_one(versions=("2",))
    assert [step.step_id for step in claimed.history.steps] == ["a"]
    assert (await harness.run(holding.run)).status == S.RUNNING


async def test_a_fork_from_no_step_goes_on_from_where_the_run_is(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a", "1")
    await harness.done(holding, "b", "2")
    await harness.do(begin(holding, "c"))
    before = await harness.picture(holding.run)
    run = await forked(harness, holding.run, "", version="2", outputs={"b": payload("replaced")})
    claimed = await harness.claim_one(versions=("2",))
    assert claimed.run == run
    steps = {step.step_id: (step.status, step.output) for step in claimed.history.steps}
    assert steps == {
        "a": (StepStatus.COMPLETED, payload("1")),
        "b": (StepStatus.COMPLETED, payload("replaced")),
        "c": (StepStatus.RUNNING, None),
    }
    new = leased(claimed)
    await harness.done(new, "c", "3")
    the(Begun, await harness.do(begin(new, "d")))
    seqs = [one.begun_seq for one in (await harness.steps(run)).values()]
    assert len(seqs) == len(set(seqs))
    assert await harness.picture(holding.run) == before, "the source was touched"
    open_step = await harness.fork(holding.run, "", outputs={"c": payload("1")})
    assert "has no result" in refused(open_step, ErrorCode.PRECONDITION_FAILED).message


async def test_a_fork_of_a_run_that_has_not_begun_begins_anew(harness: StoreHarness) -> None:
    run = await forked(harness, await harness.start(input=payload("in"), version="1"), "", version="2")
    claimed = await harness.claim_one(versions=("2",))
    assert (claimed.run, claimed.input, claimed.history.steps) == (run, payload("in"), ())


async def test_a_fork_can_be_repeated(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    options = {"workflow_id": "fork", "request_id": "r"}
    run = await forked(harness, last.run, "charge", **options)
    assert the(Existing, await harness.fork(last.run, "charge", **options)).run_id == run.run_id
    assert len(await harness.runs()) == 2


async def test_a_fork_from_a_step_that_is_not_there_is_refused(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    assert "nowhere" in refused(await harness.fork(last.run, "nowhere"), ErrorCode.PRECONDITION_FAILED).message
    wrong = await harness.fork(last.run, "charge", outputs={"nowhere": payload("1")})
    assert "nowhere" in refused(wrong, ErrorCode.PRECONDITION_FAILED).message
    assert len(await harness.runs()) == 1


async def test_what_was_begun_before_the_step_is_begun_in_the_fork_too(harness: StoreHarness) -> None:
    # Were it forgotten, replay would meet a new step in front of recorded results, which is a divergence.
    holding = await harness.running()
    await harness.write(begin(holding, "slow", retry=STEADY), sleep(holding, "nap", s=60), wait_signal(holding))
    await harness.done(holding, "quick")
    await harness.do(begin(holding, "last"))
    await harness.write(complete(holding, "slow"), complete(holding, "last"), complete_run(holding))
    await forked(harness, holding.run, "last")
    claimed = await harness.claim_one()
    steps = by_id(claimed.history.steps)
    assert list(steps) == ["slow", "nap", "approved", "quick"]
    assert {name for name, step in steps.items() if step.seq} == {"quick"}
    assert (steps["slow"].status, steps["slow"].output) == (StepStatus.RUNNING, None)
    assert the(Begun, await harness.do(begin(leased(claimed), "slow"))).attempt == 1
    await harness.do(complete(leased(claimed), "slow", "again"))
    the(Parked, await harness.do(park(leased(claimed), "nap", "approved")))
    await check_invariants(harness.store)


async def test_what_was_begun_before_the_step_is_begun_in_the_retried_run_too(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "slow"))
    await harness.done(holding, "quick")
    await harness.write(begin(holding, "charge", retry=NO_RETRY), fail(holding, "charge"))
    await harness.write(complete(holding, "slow"), fail_run(holding, CHARGE_FAILED))
    assert await harness.retry(holding.run) == S.PENDING
    claimed = await harness.claim_one()
    steps = by_id(claimed.history.steps)
    assert {name for name, step in steps.items() if step.seq} == {"quick"}
    assert steps["slow"].status == StepStatus.RUNNING
    assert steps["slow"].begun_seq < steps["quick"].begun_seq
    the(Begun, await harness.do(begin(leased(claimed), "slow")))


async def test_a_retried_step_has_the_policy_and_the_timeout_of_its_next_begin(harness: StoreHarness) -> None:
    last = await failed_run(harness)
    await harness.retry(last.run)
    new = await harness.hold(last.run)
    await harness.do(begin(new, "charge", retry=TWICE, timeout_ms=7_000))
    assert (await harness.steps(last.run))["charge"].timeout_ms == 7_000
    the(RetryScheduled, await harness.do(fail(new, "charge")))


@pytest.mark.parametrize("how", ["retry", "fork"])
@pytest.mark.parametrize("attempt", [0, 1], ids=["next", "first"])
async def test_a_step_that_is_open_again_has_the_policy_and_the_timeout_of_its_next_begin(
    harness: StoreHarness, how: str, attempt: int
) -> None:
    run = await run_with_open_step(harness, how, retry=NO_RETRY, timeout_ms=1_000)
    new = await harness.hold(run)
    await harness.do(begin(new, "slow", attempt, retry=TWICE, timeout_ms=7_000))
    assert (await harness.steps(run))["slow"].timeout_ms == 7_000
    the(RetryScheduled, await harness.do(fail(new, "slow")))
    await harness.do(begin(new, "slow", 2, retry=NO_RETRY, timeout_ms=9_000))
    # ADR 0087: the policy is that of the first begin of a life, and each attempt has the timeout of its own begin.
    assert (await harness.steps(run))["slow"].timeout_ms == 9_000
    await check_invariants(harness.store)


@pytest.mark.parametrize("how", ["retry", "fork"])
async def test_a_step_that_may_run_once_runs_once_more_when_it_is_open_again(harness: StoreHarness, how: str) -> None:
    await run_with_open_step(harness, how, once=True)
    claimed = await harness.claim_one()
    # Not RUNNING: a worker would take that for the begin of a lost one.
    assert by_id(claimed.history.steps)["slow"].status == StepStatus.PENDING
    the(Begun, await harness.do(begin(leased(claimed), "slow", once=True)))
    new = await harness.take_over(leased(claimed))
    step = the(Known, await harness.do(begin(new, "slow", once=True))).step
    assert step.error is not None
    assert step.error.kind == ErrorKind.LOST


@pytest.mark.parametrize("how", ["retry", "fork"])
async def test_a_step_that_may_run_once_from_now_on_is_lost_with_its_worker(harness: StoreHarness, how: str) -> None:
    run = await run_with_open_step(harness, how)
    new = await harness.hold(run)
    the(Begun, await harness.do(begin(new, "slow", once=True)))
    new = await harness.take_over(new)
    the(Known, await harness.do(begin(new, "slow", once=True)))


async def run_with_open_step(harness: StoreHarness, how: str, **options: Any) -> RunKey:
    """A retried run or a fork: "slow" was begun before a result that is kept, and its own result is forgotten."""
    holding = await harness.running()
    await harness.do(begin(holding, "slow", **options))
    await harness.done(holding, "quick")
    await harness.write(begin(holding, "charge", retry=NO_RETRY), fail(holding, "charge"))
    await harness.write(complete(holding, "slow"), fail_run(holding, CHARGE_FAILED))
    if how == "fork":
        return await forked(harness, holding.run, "charge")
    assert await harness.retry(holding.run) == S.PENDING
    return holding.run


async def test_a_child_begun_before_the_step_is_referred_to_when_it_ended_later(harness: StoreHarness) -> None:
    holding = await harness.running()
    child = await harness.child(holding)
    await harness.done(holding, "quick")
    await harness.do(begin(holding, "last"))
    await harness.do(complete_run(await harness.hold(child), "of the child"))
    await harness.write(complete(holding, "last"), complete_run(holding))
    await forked(harness, holding.run, "last")
    claimed = await harness.claim_one()
    steps = by_id(claimed.history.steps)
    assert list(steps) == ["child", "quick"]
    assert (steps["child"].child_run_id, steps["child"].output) == (child.run_id, payload("of the child"))
    await check_invariants(harness.store)


async def test_a_child_that_still_runs_wakes_the_fork_too(harness: StoreHarness) -> None:
    holding = await harness.running()
    child = await harness.child(holding)
    await harness.done(holding, "quick")
    await harness.do(begin(holding, "last"))
    run = await forked(harness, holding.run, "last")
    new = await harness.hold(run)
    the(Parked, await harness.do(park(new, "child")))
    await harness.do(complete_run(await harness.hold(child), "for both"))
    for parent in (holding.run, run):
        assert (await harness.steps(parent))["child"].output == payload("for both")
    assert (await harness.run(run)).status == S.PENDING
    await harness.do(complete_run(await harness.hold(run)))
    await harness.cascade()


@pytest.mark.parametrize("how", ["completed", "failed"])
async def test_the_children_of_a_source_are_referred_to_and_not_copied(harness: StoreHarness, how: str) -> None:
    holding = await harness.running()
    child = await harness.child(holding)
    end = complete_run if how == "completed" else fail_run
    await harness.do(end(await harness.hold(child)))
    await harness.done(holding, "after")
    await harness.do(complete_run(holding))
    await forked(harness, holding.run, "after")
    claimed = await harness.claim_one()
    (step,) = claimed.history.steps
    assert (step.step_id, step.child_run_id) == ("child", child.run_id)
    assert len(await harness.runs(workflow_types=("child",))) == 1
    await harness.do(complete_run(leased(claimed)))
    await harness.cascade()
    assert (await harness.run(child)).status == (S.COMPLETED if how == "completed" else S.FAILED)


async def begun_again(harness: StoreHarness, last: RunLease, child: RunKey) -> None:
    """The step of the child is begun, in its place, and has none; a start makes another, once, whose end it hears
    of."""
    claimed = await harness.claim_one()
    steps = by_id(claimed.history.steps)
    assert [step.step_id for step in claimed.history.steps][:2] == ["child", "a"]
    assert (steps["child"].status, steps["child"].seq, steps["child"].child_run_id) == (StepStatus.RUNNING, 0, None)
    assert (steps["a"].output, steps["child"].begun_seq < steps["a"].begun_seq) == (payload("1"), True)
    new = leased(claimed)
    command = harness.child_command(new)
    started = the(ChildStarted, await harness.do(command))
    assert started.created
    assert started.seq == steps["child"].begun_seq
    assert started.child_run_id != child.run_id
    again = the(ChildStarted, await harness.do(command))
    assert (again.created, again.child_run_id, again.seq) == (False, started.child_run_id, started.seq)
    await harness.do(complete_run(await harness.hold(RunKey("default", started.child_run_id)), "at last"))
    step = (await harness.steps(last.run))["child"]
    assert (step.output, step.child_run_id) == (payload("at last"), started.child_run_id)
    await harness.do(complete_run(new))
    await harness.cascade()
    assert len(await harness.runs(workflow_types=("child",))) == 2


@pytest.mark.parametrize("reason", [CHARGE_FAILED, BOOM], ids=["of a step", "of the function"])
async def test_a_child_that_was_cancelled_with_its_parent_is_started_again_in_its_place(
    harness: StoreHarness, reason: ErrorDetail
) -> None:
    last = await harness.running()
    child = await harness.child(last)
    await harness.done(last, "a", "1")
    await harness.write(begin(last, "charge", retry=NO_RETRY), fail(last, "charge"))
    await harness.do(fail_run(last, reason))
    await harness.cascade()
    assert (await harness.run(child)).status == S.CANCELLED
    assert await harness.retry(last.run) == S.PENDING
    await begun_again(harness, last, child)


async def test_a_child_that_failed_its_parent_is_started_again_in_its_place(harness: StoreHarness) -> None:
    last = await harness.running()
    child = await harness.child(last)
    await harness.done(last, "a", "1")
    await harness.do(fail_run(await harness.hold(child)))
    await harness.do(fail_run(last, ErrorDetail(message="no", subject="child", subject_id=child.run_id)))
    assert await harness.retry(last.run) == S.PENDING
    await begun_again(harness, last, child)
    step = (await harness.steps(last.run))["child"]
    (earlier,) = step.attempts
    assert (step.attempt, earlier.attempt, earlier.error.subject_id) == (2, 1, child.run_id)


async def test_a_child_begun_after_the_step_that_failed_is_forgotten(harness: StoreHarness) -> None:
    last = await harness.running()
    await harness.done(last, "a", "1")
    await harness.write(begin(last, "charge", retry=NO_RETRY), fail(last, "charge"))
    await harness.child(last)
    await harness.do(fail_run(last, CHARGE_FAILED))
    await harness.cascade()
    assert await harness.retry(last.run) == S.PENDING
    claimed = await harness.claim_one()
    assert "child" not in by_id(claimed.history.steps)
    assert the(ChildStarted, await harness.do(harness.child_command(leased(claimed)))).created


async def test_a_fork_of_a_run_whose_child_is_to_be_started_again_starts_its_own(harness: StoreHarness) -> None:
    last = await harness.running()
    await harness.child(last)
    await harness.done(last, "a", "1")
    await harness.done(last, "b", "2")
    await harness.do(fail_run(last))
    await harness.cascade()
    assert await harness.retry(last.run) == S.PENDING
    run = await forked(harness, last.run, "b")
    new = await harness.hold(run)
    assert (await harness.steps(run))["child"].child_run_id is None
    assert the(ChildStarted, await harness.do(harness.child_command(new))).created
