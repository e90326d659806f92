"""continue_as_new: one transaction ends a run and starts its successor, which takes over what was the run's.
Divergence: code that does not fit pauses the run until other code comes."""

from kagzi.core import limits
from kagzi.core.effects import NO_EFFECTS
from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.records import RunEnd, RunKey
from kagzi.core.run.outcomes import LeaseLost, Parked, RunClosed, SignalBound, TimerSet
from kagzi.core.states import RunStatus, StepStatus

from .invariants import check_invariants
from .verbs import (
    MISFIT,
    StoreHarness,
    begin,
    by_id,
    complete_run,
    continue_as,
    diverged,
    leased,
    park,
    payload,
    refused,
    stale,
    the,
    wait_signal,
    woken_by_result,
)

S = RunStatus


async def test_the_successor_takes_id_labels_priority_and_deadline(harness: StoreHarness) -> None:
    deadline = harness.now + 3_600_000_000
    holding = await harness.running(workflow_id="poll", labels={"k": "v"}, priority=7, deadline_at=deadline)
    await harness.done(holding, "a")
    harness.clock.advance(s=5)
    new = RunKey("default", harness.ids.run_id(harness.now))
    before = harness.store.transactions
    closed = the(RunClosed, await harness.do(continue_as(holding, new.run_id, "round 2")))
    assert harness.store.transactions - before <= 2
    assert (closed.status, closed.continued_as) == (S.COMPLETED, new.run_id)
    old, record = await harness.run(holding.run), await harness.run(new)
    assert (old.status, old.continued_as, old.finished_at) == (S.COMPLETED, new.run_id, harness.now)
    assert (record.status, record.workflow_id, record.workflow_type) == (S.PENDING, "poll", "hello")
    assert (record.labels, record.priority, record.deadline_at) == ({"k": "v"}, 7, deadline)
    assert (record.input, record.created_at, record.continued_as) == (payload("round 2"), harness.now, None)
    assert await harness.steps(new) == {}
    (end,) = await harness.store.endings_of([holding.run])
    assert the(RunEnd, end).continued_as == new.run_id
    latest = await harness.store.get_run("default", workflow_id="poll")
    assert latest is not None
    assert latest.run == new
    claimed = await harness.claim_one()
    assert (claimed.run, claimed.input) == (new, payload("round 2"))
    await check_invariants(harness.store)


async def test_going_on_can_be_repeated(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id="poll")
    command = continue_as(holding, harness.ids.run_id(harness.now))
    first = the(RunClosed, await harness.do(command))
    again = the(RunClosed, await harness.do(command))
    assert again.continued_as == first.continued_as
    assert len(await harness.runs()) == 2
    assert await harness.do(begin(holding, "late")) == LeaseLost()


async def test_only_the_holder_goes_on(harness: StoreHarness) -> None:
    holding = await harness.running()
    assert await harness.do(continue_as(stale(holding), harness.ids.run_id(harness.now))) == LeaseLost()
    assert len(await harness.runs()) == 1


async def test_a_chain_of_many_has_one_open_run(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id="poll")
    for n in range(10):
        await harness.do(continue_as(holding, harness.ids.run_id(harness.now), f"{n}"))
        holding = leased(await harness.claim_one())
    await harness.do(complete_run(holding, "at last"))
    runs = await harness.runs()
    assert len(runs) == 11
    assert {run.status for run in runs} == {S.COMPLETED}
    assert sum(run.continued_as is None for run in runs) == 1


async def test_signals_not_consumed_are_carried_over_in_order(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id="cart")
    for n in range(4):
        await harness.signal(holding.run, "item", f"{n}", request_id=f"r{n}")
    the(SignalBound, await harness.do(wait_signal(holding, "item")))
    new = RunKey("default", harness.ids.run_id(harness.now))
    await harness.do(continue_as(holding, new.run_id))
    await harness.signal(new, "item", "3", request_id="r3")  # the same signal again, for the successor
    await harness.signal(new, "item", "4")
    successor = await harness.hold(new)
    waits = [wait_signal(successor, "item", step_id=f"{n}") for n in range(5)]
    outcomes = await harness.write(*waits)
    assert [outcome.payload for outcome in outcomes if isinstance(outcome, SignalBound)] == [
        payload(f"{n}") for n in range(1, 5)
    ]
    the(TimerSet, outcomes[-1])


async def test_a_parent_waits_for_the_last_of_the_chain(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    the(Parked, await harness.do(park(parent, "child")))
    new = RunKey("default", harness.ids.run_id(harness.now))
    the(RunClosed, await harness.do(continue_as(await harness.hold(child), new.run_id)))
    assert harness.effects is NO_EFFECTS
    assert (await harness.run(parent.run)).status == S.SLEEPING
    assert (await harness.run(new)).parent_run_id == parent.run.run_id
    the(RunClosed, await harness.do(complete_run(await harness.hold(new), "end of the chain")))
    assert harness.effects == woken_by_result(parent.run)
    assert (await harness.steps(parent.run))["child"].output == payload("end of the chain")


async def test_an_attached_parent_follows_the_chain_too(harness: StoreHarness) -> None:
    other = await harness.running(workflow_id="shared", workflow_type="child")
    parent = await harness.running()
    await harness.write(harness.child_command(parent, workflow_id="shared", attach=True), park(parent, "child"))
    new = RunKey("default", harness.ids.run_id(harness.now))
    await harness.do(continue_as(other, new.run_id))
    assert (await harness.run(parent.run)).status == S.SLEEPING
    await harness.do(complete_run(await harness.hold(new), "shared"))
    assert (await harness.steps(parent.run))["child"].output == payload("shared")


async def test_the_end_of_a_parent_reaches_the_last_of_the_chain(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    new = RunKey("default", harness.ids.run_id(harness.now))
    await harness.do(continue_as(await harness.hold(child), new.run_id))
    await harness.do(complete_run(parent))
    await harness.cascade()
    assert (await harness.run(new)).status == S.CANCELLED
    assert (await harness.run(child)).status == S.COMPLETED


async def test_a_cancelled_run_does_not_escape_by_going_on(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run)
    refused(await harness.do(continue_as(holding, harness.ids.run_id(harness.now))), ErrorCode.CANCELLED)
    assert len(await harness.runs()) == 1


# --- divergence -------------------------------------------------------------------------------------------------------


async def test_a_run_whose_code_does_not_fit_is_paused_with_its_problem(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "refund")
    closed = the(RunClosed, await harness.do(diverged(holding, "build-1")))
    assert closed.status == S.PAUSED
    record = await harness.run(holding.run)
    assert (record.status, record.problem, record.worker_id) == (S.PAUSED, MISFIT, None)
    assert record.problem is not None
    assert record.problem.kind == ErrorKind.NONDETERMINISM
    assert await harness.claim() == []
    assert await harness.do(begin(holding, "x")) == LeaseLost()


async def test_it_is_offered_once_to_every_new_build(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(diverged(holding, "build-1"))
    assert await harness.new_build("build-1") == []
    assert (await harness.run(holding.run)).status == S.PAUSED
    assert await harness.new_build("build-2") == [("default", "hello")]
    claimed = await harness.claim_one()
    assert (await harness.run(holding.run)).problem is None
    await harness.do(diverged(leased(claimed), "build-2"))
    for build in ("build-1", "build-2"):
        assert await harness.new_build(build) == []
    assert await harness.new_build("build-3") == [("default", "hello")]
    await harness.do(complete_run(leased(await harness.claim_one())))
    assert (await harness.run(holding.run)).status == S.COMPLETED


async def test_only_the_latest_builds_are_remembered(harness: StoreHarness) -> None:
    # Under `kagzi dev` every saved file is a build: what a run remembers of them must not grow for ever.
    await harness.do(diverged(await harness.running(), "build-0"))
    for number in [*range(1, limits.TRIED_BUILDS), 5, limits.TRIED_BUILDS]:
        await harness.new_build(f"build-{number}-comes")  # another one takes the run
        await harness.do(diverged(leased(await harness.claim_one()), f"build-{number}"))
    for remembered in (1, 5, limits.TRIED_BUILDS):
        assert await harness.new_build(f"build-{remembered}") == []
    assert await harness.new_build("build-0") == [("default", "hello")]


async def test_builds_of_other_types_versions_and_namespaces_do_not_count(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(diverged(holding, "build-1"))
    assert await harness.new_build("build-2", workflow_type="other") == []
    assert await harness.new_build("build-2", version="2") == []
    assert await harness.new_build("build-2", namespace="elsewhere") == []
    assert (await harness.run(holding.run)).status == S.PAUSED
    assert await harness.new_build("build-2") == [("default", "hello")]


async def test_a_run_paused_by_people_is_not_offered_to_builds(harness: StoreHarness) -> None:
    run = await harness.start()
    await harness.pause(run)
    assert await harness.new_build("build-2") == []
    assert (await harness.run(run)).status == S.PAUSED


async def test_people_may_resume_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    await harness.do(diverged(holding, "build-1"))
    await harness.resume(holding.run)
    record = await harness.run(holding.run)
    assert (record.status, record.problem) == (S.PENDING, None)
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["a"].status == StepStatus.COMPLETED


async def test_a_diverged_run_keeps_its_waits(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(wait_signal(holding))
    await harness.do(diverged(holding))
    await harness.signal(holding.run)
    assert (await harness.run(holding.run)).status == S.PAUSED
    await harness.new_build("build-2")
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["approved"].output == payload("yes")
    refused(await harness.do(park(leased(claimed))), ErrorCode.PRECONDITION_FAILED)
