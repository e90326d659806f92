"""An explicit retry, and the parents and children of the run: what was lost with the first life is started again, what
is known is kept."""

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.error_details import ErrorDetail
from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.outcomes import ChildStarted, RunClosed, TimerSet
from kagzi.core.states import RunStatus, StepStatus
from tests.store.conformance.invariants import check_invariants
from tests.store.conformance.verbs import (
    StoreHarness,
    acknowledge_cancel,
    complete_run,
    fail_run,
    park,
    the,
    wait_signal,
)

S = RunStatus


async def failed_parent(harness: StoreHarness, *steps: str) -> tuple[RunLease, dict[str, RunKey]]:
    parent = await harness.running()
    children = {step: await harness.child(parent, step) for step in steps}
    return parent, children


async def retry(harness: StoreHarness, parent: RunLease, from_step: str = "") -> RunLease:
    the(RunStatus, await harness.retry(parent.run, from_step))
    await check_invariants(harness.store)
    return await harness.hold(parent.run)


async def test_a_child_whose_failure_failed_the_run_is_started_again(harness: StoreHarness) -> None:
    parent, children = await failed_parent(harness, "child")
    await harness.do(fail_run(await harness.hold(children["child"])))
    step = (await harness.steps(parent.run))["child"]
    assert step.error is not None
    error = ErrorDetail(type=step.error.type, subject=step.error.subject, subject_id=step.error.subject_id)
    await harness.do(fail_run(parent, error))

    new = await retry(harness, parent)
    another = await harness.child(new)
    assert another != children["child"]
    (earlier,) = (await harness.steps(parent.run))["child"].attempts
    assert earlier.error == step.error
    the(RunClosed, await harness.do(complete_run(await harness.hold(another))))
    assert harness.effects.changed == (parent.run,)
    assert (await harness.run(children["child"])).status == S.FAILED


async def test_children_that_were_cancelled_with_the_run_are_started_again(harness: StoreHarness) -> None:
    parent, children = await failed_parent(harness, "claimed", "never-claimed")
    claimed = await harness.hold(children["claimed"], limit=1)
    await harness.do(fail_run(parent))
    await harness.cascade()
    await harness.do(acknowledge_cancel(claimed))
    new = await retry(harness, parent)
    for step, first in children.items():
        assert (await harness.run(first)).status == S.CANCELLED
        assert await harness.child(new, step) != first


async def test_children_that_were_not_reached_by_the_cascade_are_waited_for_again(harness: StoreHarness) -> None:
    parent, children = await failed_parent(harness, "child")
    await harness.do(fail_run(parent))
    new = await retry(harness, parent)
    assert await harness.cascade() == NO_EFFECTS
    same = the(ChildStarted, await harness.do(harness.child_command(new)))
    assert (same.child_run_id, same.created) == (children["child"].run_id, False)
    await harness.do(park(new, "child"))
    await harness.do(complete_run(await harness.hold(children["child"])))
    assert (await harness.run(parent.run)).status == S.PENDING


async def test_what_a_child_came_to_while_the_run_was_closed_is_delivered(harness: StoreHarness) -> None:
    parent, children = await failed_parent(harness, "fine", "broken")
    fine, broken = [await harness.hold(child, limit=1) for child in children.values()]
    await harness.do(fail_run(parent))
    await harness.write(complete_run(fine, "done"), fail_run(broken))
    await retry(harness, parent)
    steps = await harness.steps(parent.run)
    assert [steps[name].status for name in children] == [StepStatus.COMPLETED, StepStatus.FAILED]


async def test_children_of_forgotten_steps_are_cancelled(harness: StoreHarness) -> None:
    parent, _ = await failed_parent(harness)
    await harness.done(parent, "a")
    child = await harness.child(parent, "later")
    await harness.do(fail_run(parent))
    new = await retry(harness, parent, "a")
    assert "later" not in await harness.steps(parent.run)
    (cancelled,) = (await harness.cascade()).ended
    assert cancelled.run == child
    assert await harness.child(new, "later") != child


async def test_signals_of_forgotten_waits_come_again_in_their_order(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    for value in ("1", "2", "3"):
        await harness.signal(holding.run, value=value)
    await harness.write(wait_signal(holding, step_id="w1"), wait_signal(holding, step_id="w2"))
    await harness.do(fail_run(holding))
    new = await retry(harness, holding, "a")
    await harness.write(*(wait_signal(new, step_id=f"w{n}") for n in (1, 2, 3)))
    steps = await harness.steps(holding.run)
    assert [steps[f"w{n}"].output.data for n in (1, 2, 3)] == [b"1", b"2", b"3"]  # type: ignore[union-attr]
    the(TimerSet, await harness.do(wait_signal(new, step_id="w4")))
