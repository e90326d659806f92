"""Children: ordinary runs with a parent, unique by step; their end is the parent's result in the same transaction."""

import asyncio

import msgspec
import pytest

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import RunKey, RunLease, StepRecord
from kagzi.core.run.outcomes import (
    ChildStarted,
    Existing,
    Fetched,
    LeaseLost,
    NotParked,
    Parked,
    RunClosed,
    Started,
    StepFailed,
)
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason
from tests.support.timeouts import LOADED_MACHINE_S

from .invariants import check_invariants
from .verbs import (
    AT_ONCE,
    BOOM,
    DAY_US,
    StoreHarness,
    acknowledge_cancel,
    begin,
    by_id,
    complete,
    complete_run,
    fail_run,
    fetch,
    hand_back,
    leased,
    notified_of_result,
    park,
    payload,
    refused,
    sleep,
    stale,
    the,
    woken_by_result,
)

S = RunStatus


async def family(harness: StoreHarness, **options: object) -> tuple[RunLease, RunKey]:
    """A parent that sleeps until its child has ended, and the child, not yet claimed."""
    parent = await harness.running()
    child = await harness.child(parent, **options)
    the(Parked, await harness.do(park(parent, "child")))
    return parent, child


async def step_of(harness: StoreHarness, parent: RunLease, step_id: str = "child") -> StepRecord:
    return (await harness.steps(parent.run))[step_id]


# --- the beginning ----------------------------------------------------------------------------------------------------


async def test_a_child_is_a_run_linked_both_ways(harness: StoreHarness) -> None:
    parent = await harness.running(workflow_id="parent")
    command = harness.child_command(parent, "ship", workflow_id="child-1", input=payload("{}"), labels={"a": "b"})
    started = the(ChildStarted, await harness.do(command))
    assert (started.child_run_id, started.created, started.status) == (command.start.run.run_id, True, S.PENDING)
    assert started.at == harness.now
    child = await harness.run(command.start.run)
    assert (child.workflow_id, child.workflow_type, child.status) == ("child-1", "child", S.PENDING)
    assert (child.parent_run_id, child.parent_step_id) == (parent.run.run_id, "ship")
    assert (child.input, child.labels, child.run.namespace) == (payload("{}"), {"a": "b"}, "default")
    step = await step_of(harness, parent, "ship")
    assert (step.kind, step.status, step.name) == (StepKind.CHILD, StepStatus.RUNNING, "child")
    assert (step.child_run_id, step.begun_seq, step.seq) == (child.run.run_id, started.seq, 0)
    assert [run.run for run in await harness.runs(parent_run_id=parent.run.run_id)] == [child.run]
    claimed = await harness.claim_one(workflow_type="child")
    assert claimed.parent_run_id == parent.run.run_id
    assert ("default", "child") not in (await harness.poll()).pending


async def test_a_repeated_start_answers_the_same_child(harness: StoreHarness) -> None:
    parent = await harness.running()
    first = await harness.child(parent)
    again = the(ChildStarted, await harness.do(harness.child_command(parent)))
    assert again.child_run_id == first.run_id
    one, other = await harness.write(harness.child_command(parent, "b"), harness.child_command(parent, "b"))
    assert the(ChildStarted, one).child_run_id == the(ChildStarted, other).child_run_id
    new = await harness.take_over(parent)
    again = the(ChildStarted, await harness.do(harness.child_command(new)))
    assert (again.child_run_id, again.created) == (first.run_id, False)
    assert len(await harness.runs(workflow_types=("child",))) == 2


async def test_one_parent_may_have_many_children_of_one_batch(harness: StoreHarness) -> None:
    parent = await harness.running()
    outcomes = await harness.write(*(harness.child_command(parent, f"c[{n}]") for n in range(50)))
    assert len({the(ChildStarted, outcome).child_run_id for outcome in outcomes}) == 50
    assert len(await harness.claim(workflow_type="child")) == 50
    await check_invariants(harness.store)


async def test_an_id_that_is_active_elsewhere_fails_the_step(harness: StoreHarness) -> None:
    other = await harness.start("taken", workflow_type="child")
    parent = await harness.running()
    failed = the(StepFailed, await harness.do(harness.child_command(parent, workflow_id="taken")))
    assert failed.error.code == ErrorCode.CONFLICT
    assert "taken" in failed.error.message
    step = await step_of(harness, parent)
    assert (step.status, step.error, step.seq) == (StepStatus.FAILED, failed.error, failed.seq)
    assert await harness.do(harness.child_command(parent, workflow_id="taken")) == failed
    assert len(await harness.runs(workflow_types=("child",))) == 1
    assert (await harness.run(other)).parent_run_id is None


async def test_an_id_that_is_active_elsewhere_may_be_attached_to(harness: StoreHarness) -> None:
    other = await harness.running(workflow_id="shared", workflow_type="child")
    parents = [await harness.running() for _ in range(3)]
    for parent in parents:
        command = harness.child_command(parent, workflow_id="shared", attach=True)
        started = the(ChildStarted, await harness.do(command))
        assert (started.child_run_id, started.created, started.status) == (other.run.run_id, False, S.RUNNING)
        assert the(ChildStarted, await harness.do(command)).child_run_id == other.run.run_id
    await harness.write(*(park(parent, "child") for parent in parents))
    assert (await harness.run(other.run)).parent_run_id is None
    the(RunClosed, await harness.do(complete_run(other, "shared result")))
    assert set(harness.effects.changed) == {parent.run for parent in parents}
    for parent in parents:
        assert (await step_of(harness, parent)).output == payload("shared result")
        assert (await harness.run(parent.run)).status == S.PENDING


async def test_attaching_to_an_id_that_is_free_starts_it(harness: StoreHarness) -> None:
    parent = await harness.running()
    started = the(ChildStarted, await harness.do(harness.child_command(parent, workflow_id="free", attach=True)))
    assert started.created
    assert (await harness.run(RunKey("default", started.child_run_id))).parent_run_id == parent.run.run_id


async def test_only_the_holder_starts_children(harness: StoreHarness) -> None:
    parent = await harness.running()
    assert await harness.do(harness.child_command(stale(parent))) == LeaseLost()
    await harness.do(begin(parent, "step"))
    refused(await harness.do(harness.child_command(parent, "step")), ErrorCode.PRECONDITION_FAILED)
    assert await harness.runs(workflow_types=("child",)) == []


async def test_a_child_may_be_inserted_as_leased(harness: StoreHarness) -> None:
    parent = await harness.running()
    assignment = harness.assignment("worker-2")
    command = harness.child_command(parent, assignment=assignment)
    started = the(ChildStarted, await harness.do(command))
    child = await harness.run(command.start.run)
    assert started.status == child.status == S.RUNNING


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_the_end_of_a_child_wakes_its_parent_in_the_same_transaction(harness: StoreHarness) -> None:
    parent, child = await family(harness)
    record = await harness.run(parent.run)
    assert (record.status, record.wait_reason, record.wake_at) == (S.SLEEPING, WaitReason.CHILD, None)
    assert record.waits == ("child",)
    holding = await harness.hold(child)
    harness.clock.advance(s=3)
    before = harness.store.transactions
    the(RunClosed, await harness.do(complete_run(holding, "42")))
    assert harness.store.transactions - before <= 2, "one to find that it is watched, one to end it"
    assert harness.effects == woken_by_result(parent.run)
    step = await step_of(harness, parent)
    assert (step.status, step.output, step.finished_at) == (StepStatus.COMPLETED, payload("42"), harness.now)
    assert (await harness.run(parent.run)).status == S.PENDING
    claimed = await harness.claim_one()
    replayed = by_id(claimed.history.steps)["child"]
    assert (replayed.status, replayed.output, replayed.seq) == (StepStatus.COMPLETED, payload("42"), step.seq)
    assert replayed.child_run_id == child.run_id
    again = the(ChildStarted, await harness.do(harness.child_command(leased(claimed))))
    assert (again.child_run_id, again.created, again.status) == (child.run_id, False, S.COMPLETED)


async def test_a_leased_parent_gets_the_result_and_its_holder_is_to_be_notified(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    the(RunClosed, await harness.do(complete_run(await harness.hold(child, worker_id="worker-2"))))
    assert harness.effects == notified_of_result(parent)
    fetched = the(Fetched, await harness.do(fetch(parent)))
    not_parked = the(NotParked, await harness.do(park(parent, "child", known_seq=0)))
    for (result,) in (fetched.results, not_parked.results):
        assert (result.step_id, result.status, result.output) == ("child", StepStatus.COMPLETED, payload("result"))
    refused(await harness.do(park(parent)), ErrorCode.PRECONDITION_FAILED)


async def test_a_parent_nobody_holds_finds_the_result_when_it_is_claimed(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    await harness.do(hand_back(parent))
    await harness.do(complete_run(await harness.hold(child)))
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["child"].output == payload("result")


async def test_a_paused_parent_is_not_woken_and_finds_the_result_when_it_goes_on(harness: StoreHarness) -> None:
    parent, child = await family(harness)
    await harness.pause(parent.run)
    await harness.do(complete_run(await harness.hold(child)))
    assert (await harness.run(parent.run)).status == S.PAUSED
    assert (await step_of(harness, parent)).status == StepStatus.COMPLETED
    await harness.resume(parent.run)
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["child"].output == payload("result")


async def test_the_failure_of_a_child_is_the_failure_of_the_step(harness: StoreHarness) -> None:
    parent, child = await family(harness)
    error = msgspec.structs.replace(BOOM, kind=ErrorKind.PERMANENT)
    the(RunClosed, await harness.do(fail_run(await harness.hold(child), error)))
    assert harness.effects.changed == (parent.run,)
    failure = (await step_of(harness, parent)).error
    assert failure is not None
    assert (failure.code, failure.kind, failure.cause) == (ErrorCode.USER, ErrorKind.PERMANENT, error)
    assert failure.type == "kagzi.ChildError"
    workflow_id = (await harness.run(child)).workflow_id
    assert failure.message == f"child {workflow_id!r} failed: PaymentError: declined"
    assert failure.metadata == {"workflow": "child", "workflow_id": workflow_id}
    assert (failure.subject, failure.subject_id) == ("run", child.run_id)
    assert (await harness.run(parent.run)).status == S.PENDING


async def test_a_child_that_may_try_again_has_not_ended(harness: StoreHarness) -> None:
    parent, child = await family(harness, retry=AT_ONCE)
    for _ in range(2):
        closed = the(RunClosed, await harness.do(fail_run(await harness.hold(child))))
        assert (closed.status, harness.effects) == (S.PENDING, NO_EFFECTS)
        assert (await harness.run(parent.run)).status == S.SLEEPING
    the(RunClosed, await harness.do(fail_run(await harness.hold(child))))
    assert harness.effects.changed == (parent.run,)


async def end_by_cancel(harness: StoreHarness, child: RunKey) -> None:
    assert await harness.cancel(child) == S.CANCELLED


async def end_by_cleanup(harness: StoreHarness, child: RunKey) -> None:
    holding = await harness.hold(child)
    await harness.cancel(child)
    the(RunClosed, await harness.do(acknowledge_cancel(holding)))


async def end_by_cancel_limit(harness: StoreHarness, child: RunKey) -> None:
    await harness.hold(child)
    await harness.cancel(child)
    harness.clock.advance(us=DAY_US)
    await harness.fire(end_leases=False)


async def end_by_termination(harness: StoreHarness, child: RunKey) -> None:
    await harness.terminate(child)


async def end_by_replacement(harness: StoreHarness, child: RunKey) -> None:
    record = await harness.run(child)
    command = harness.start_command(record.workflow_id, workflow_type="child", on_conflict="replace")
    the(Started, await harness.do(command))


async def end_by_deadline(harness: StoreHarness, child: RunKey) -> None:
    harness.clock.advance(us=DAY_US)
    await harness.fire(end_leases=False)


@pytest.mark.parametrize(
    ("end", "code", "kind"),
    [
        (end_by_cancel, ErrorCode.CANCELLED, ErrorKind.CANCELLED),
        (end_by_cleanup, ErrorCode.CANCELLED, ErrorKind.CANCELLED),
        (end_by_cancel_limit, ErrorCode.CANCELLED, ErrorKind.CANCELLED),
        (end_by_termination, ErrorCode.CANCELLED, ErrorKind.TERMINATED),
        (end_by_replacement, ErrorCode.CANCELLED, ErrorKind.TERMINATED),
        (end_by_deadline, ErrorCode.USER, ErrorKind.TIMEOUT),
    ],
)
async def test_every_ending_of_a_child_reaches_its_parent(
    harness: StoreHarness, end: object, code: ErrorCode, kind: ErrorKind
) -> None:
    deadline = harness.now + 3_600_000_000 if end is end_by_deadline else None
    parent, child = await family(harness, deadline_at=deadline)
    await end(harness, child)  # type: ignore[operator]
    step, record = await step_of(harness, parent), await harness.run(child)
    assert record.status.ended
    assert step.status == StepStatus.FAILED
    assert step.error is not None
    assert (step.error.code, step.error.kind, step.error.cause) == (code, kind, record.error)
    assert (await harness.run(parent.run)).status == S.PENDING
    await harness.hold(parent.run)


async def test_many_endings_in_one_batch_wake_the_parent_once(harness: StoreHarness) -> None:
    parent = await harness.running()
    steps = [f"c[{n}]" for n in range(40)]
    await harness.write(*(harness.child_command(parent, step) for step in steps))
    await harness.do(park(parent, *steps))
    children = [leased(one) for one in await harness.claim(workflow_type="child")]
    endings = [complete_run(child, f"{n}") if n % 3 else fail_run(child) for n, child in enumerate(children)]
    await harness.write(*endings)
    assert harness.effects == woken_by_result(parent.run)
    claimed = await harness.claim_one()
    assert claimed.lease.counter == 2
    results = by_id(claimed.history.steps)
    assert {results[step].status for step in steps} == {StepStatus.COMPLETED, StepStatus.FAILED}
    assert len({results[step].seq for step in steps}) == 40
    assert await harness.claim() == []
    await check_invariants(harness.store)


async def test_endings_of_children_of_several_parents_in_one_batch(harness: StoreHarness) -> None:
    pairs = [await family(harness) for _ in range(6)]
    children = {one.run: leased(one) for one in await harness.claim(workflow_type="child")}
    outcomes = await harness.write(*(complete_run(children[child], child.run_id) for _, child in pairs))
    for (parent, child), outcome in zip(pairs, outcomes, strict=True):
        assert the(RunClosed, outcome).status == S.COMPLETED
        assert (await step_of(harness, parent)).output == payload(child.run_id)
    assert set(harness.effects.changed) == {parent.run for parent, _ in pairs}


async def test_parent_and_child_may_be_in_one_batch(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    holding = await harness.hold(child)
    outcomes = await harness.write(park(parent, "child"), complete_run(holding))
    if not isinstance(outcomes[1], RunClosed):
        the(RunClosed, await harness.do(complete_run(holding)))
    record = await harness.run(parent.run)
    if isinstance(outcomes[0], Parked):
        assert record.status == S.PENDING
    else:
        assert record.status == S.RUNNING
    assert (await step_of(harness, parent)).status == StepStatus.COMPLETED


async def test_no_result_is_lost_when_children_end_at_once_on_two_connections(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    for _ in range(4):
        parent = await harness.running()
        steps = [f"c[{n}]" for n in range(8)]
        await harness.write(*(harness.child_command(parent, step) for step in steps))
        children = [leased(one) for one in await harness.claim(workflow_type="child")]

        endings = [
            (harness, second_harness)[n % 2].insist(complete_run(child, f"{n}")) for n, child in enumerate(children)
        ]
        async with asyncio.timeout(LOADED_MACHINE_S):
            parked, *_ = await asyncio.gather(second_harness.insist(park(parent, *steps, known_seq=0)), *endings)
        recorded = await harness.steps(parent.run)
        assert {recorded[step].status for step in steps} == {StepStatus.COMPLETED}
        assert sorted(int(recorded[step].output.data) for step in steps if recorded[step].output) == list(range(8))
        new = await harness.hold(parent.run) if isinstance(parked, Parked) else parent
        await harness.do(complete_run(new))
    await check_invariants(harness.store)


async def test_a_repeated_end_gives_the_parent_nothing_more(harness: StoreHarness) -> None:
    parent, child = await family(harness)
    holding = await harness.hold(child)
    await harness.do(complete_run(holding))
    before = await harness.picture(parent.run)
    assert the(RunClosed, await harness.do(complete_run(holding, "another"))).status == S.COMPLETED
    assert await harness.picture(parent.run) == before


async def test_a_parent_that_has_ended_is_left_alone(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent, on_close="abandon")
    assert the(RunClosed, await harness.do(complete_run(parent, "first"))).status == S.COMPLETED
    before = await harness.picture(parent.run)
    the(RunClosed, await harness.do(complete_run(await harness.hold(child))))
    assert harness.effects is NO_EFFECTS
    assert await harness.picture(parent.run) == before


async def test_grandchildren_wake_only_their_own_parent(harness: StoreHarness) -> None:
    parent, child = await family(harness)
    middle = await harness.hold(child)
    grandchild = await harness.child(middle, workflow_type="grandchild")
    await harness.do(park(middle, "child"))
    await harness.do(complete_run(await harness.hold(grandchild), "deep"))
    assert (await harness.run(parent.run)).status == S.SLEEPING
    again = await harness.hold(child)
    await harness.do(complete_run(again, "middle"))
    assert (await step_of(harness, parent)).output == payload("middle")


async def test_a_child_and_a_sleep_side_by_side(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    await harness.do(sleep(parent, "nap", s=60))
    the(Parked, await harness.do(park(parent, "nap", "child")))
    record = await harness.run(parent.run)
    assert (record.status, record.wake_at) == (S.SLEEPING, harness.now + 60_000_000)
    assert set(record.waits) == {"nap", "child"}
    await harness.do(complete_run(await harness.hold(child)))
    new = await harness.hold(parent.run)
    parked = the(Parked, await harness.do(park(new, "nap")))
    assert parked.wake_at == harness.now + 60_000_000
    await check_invariants(harness.store)


async def test_the_end_of_a_child_rides_with_its_last_completion(harness: StoreHarness) -> None:
    parent, child = await family(harness)
    holding = await harness.hold(child)
    outcomes = await harness.write(begin(holding, "a"), complete(holding, "a"), complete_run(holding, "end"))
    the(RunClosed, outcomes[-1])
    assert harness.effects.changed == (parent.run,)
    assert (await harness.steps(child))["a"].status == StepStatus.COMPLETED


async def test_namespaces_of_parent_and_child_are_one(harness: StoreHarness) -> None:
    parent = await harness.running(namespace="tenant")
    child = await harness.child(parent)
    assert child.namespace == "tenant"
    assert await harness.store.get_run("default", run_id=child.run_id) is None
    assert await harness.runs("default") == []
    holding = await harness.hold(child)
    the(RunClosed, await harness.do(complete_run(holding)))
    assert harness.effects.changed == (parent.run,)


def test_what_the_parent_gets_has_a_name_of_its_own() -> None:
    assert ErrorDetail(type="kagzi.ChildError", message="x").text == "ChildError: x"


async def test_a_start_with_the_request_id_of_a_child_answers_the_child(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    command = harness.start_command(workflow_type="child", request_id=f"{parent.run.run_id}/child")
    assert the(Existing, await harness.do(command)).run_id == child.run_id
