"""An explicit retry and the families of runs: what was lost with the first life is started again, what is known is kept."""

from kagzi.core.error_details import ErrorDetail
from kagzi.core.records import Held, RunKey
from kagzi.core.run.outcomes import ChildStarted, RunClosed, TimerSet
from kagzi.core.states import RunStatus, StepStatus
from kagzi.store.protocol import Changed
from tests.store.conformance.invariants import check_invariants
from tests.store.conformance.verbs import (
    Cellar,
    acknowledge_cancel,
    complete_run,
    fail_run,
    park,
    the,
    wait_signal,
)

S = RunStatus


async def failed_parent(cellar: Cellar, *steps: str) -> tuple[Held, dict[str, RunKey]]:
    parent = await cellar.running()
    children = {step: await cellar.child(parent, step) for step in steps}
    return parent, children


async def go_on(cellar: Cellar, parent: Held, from_step: str = "") -> Held:
    the(Changed, await cellar.retry(parent.run, from_step))
    await check_invariants(cellar.store)
    return await cellar.hold(parent.run)


async def test_a_child_whose_failure_failed_the_run_is_started_again(cellar: Cellar) -> None:
    parent, children = await failed_parent(cellar, "child")
    await cellar.do(fail_run(await cellar.hold(children["child"])))
    step = (await cellar.steps(parent.run))["child"]
    assert step.error is not None
    error = ErrorDetail(type=step.error.type, subject=step.error.subject, subject_id=step.error.subject_id)
    await cellar.do(fail_run(parent, error))

    new = await go_on(cellar, parent)
    another = await cellar.child(new)
    assert another != children["child"]
    (earlier,) = (await cellar.steps(parent.run))["child"].attempts
    assert earlier.error == step.error
    closed = the(RunClosed, await cellar.do(complete_run(await cellar.hold(another))))
    assert [one.run for one in closed.stirred] == [parent.run]
    assert (await cellar.run(children["child"])).status == S.FAILED


async def test_children_that_were_cancelled_with_the_run_are_started_again(cellar: Cellar) -> None:
    parent, children = await failed_parent(cellar, "claimed", "never-claimed")
    claimed = await cellar.hold(children["claimed"], limit=1)
    await cellar.do(fail_run(parent))
    await cellar.cascade()
    await cellar.do(acknowledge_cancel(claimed))
    new = await go_on(cellar, parent)
    for step, first in children.items():
        assert (await cellar.run(first)).status == S.CANCELLED
        assert await cellar.child(new, step) != first


async def test_children_that_were_not_reached_by_the_cascade_are_waited_for_again(cellar: Cellar) -> None:
    parent, children = await failed_parent(cellar, "child")
    await cellar.do(fail_run(parent))
    new = await go_on(cellar, parent)
    assert await cellar.cascade() == []
    same = the(ChildStarted, await cellar.do(cellar.child_command(new)))
    assert (same.child_run_id, same.created) == (children["child"].run_id, False)
    await cellar.do(park(new, "child"))
    await cellar.do(complete_run(await cellar.hold(children["child"])))
    assert (await cellar.run(parent.run)).status == S.PENDING


async def test_what_a_child_came_to_while_the_run_was_closed_is_heard(cellar: Cellar) -> None:
    parent, children = await failed_parent(cellar, "fine", "broken")
    fine, broken = [await cellar.hold(child, limit=1) for child in children.values()]
    await cellar.do(fail_run(parent))
    await cellar.write(complete_run(fine, "done"), fail_run(broken))
    await go_on(cellar, parent)
    steps = await cellar.steps(parent.run)
    assert [steps[name].status for name in children] == [StepStatus.COMPLETED, StepStatus.FAILED]


async def test_children_of_forgotten_steps_are_cancelled(cellar: Cellar) -> None:
    parent, _ = await failed_parent(cellar)
    await cellar.done(parent, "a")
    child = await cellar.child(parent, "later")
    await cellar.do(fail_run(parent))
    new = await go_on(cellar, parent, "a")
    assert "later" not in await cellar.steps(parent.run)
    (told,) = await cellar.cascade()
    assert told.run == child
    assert await cellar.child(new, "later") != child


async def test_signals_of_forgotten_waits_come_again_in_their_order(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.done(holding, "a")
    for value in ("1", "2", "3"):
        await cellar.signal(holding.run, value=value)
    await cellar.write(wait_signal(holding, step_id="w1"), wait_signal(holding, step_id="w2"))
    await cellar.do(fail_run(holding))
    new = await go_on(cellar, holding, "a")
    await cellar.write(*(wait_signal(new, step_id=f"w{n}") for n in (1, 2, 3)))
    steps = await cellar.steps(holding.run)
    assert [steps[f"w{n}"].output.data for n in (1, 2, 3)] == [b"1", b"2", b"3"]  # type: ignore[union-attr]
    the(TimerSet, await cellar.do(wait_signal(new, step_id="w4")))
