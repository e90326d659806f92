"""What a parent leaves behind: its children are cancelled or let go, durably, whenever the parent ended and whoever
died."""

import pytest

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.error_details import ErrorKind
from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.outcomes import RunClosed
from kagzi.core.states import RunStatus
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .places import Place
from .verbs import (
    DAY_US,
    StoreHarness,
    acknowledge_cancel,
    complete_run,
    fail_run,
    hand_back,
    leased,
    park,
    race,
    sleep,
    the,
)

S = RunStatus


async def parent_of(harness: StoreHarness, count: int, **options: object) -> tuple[RunLease, list[RunKey]]:
    parent = await harness.running()
    return parent, [await harness.child(parent, f"c{n}", **options) for n in range(count)]


async def states(harness: StoreHarness, runs: list[RunKey]) -> list[RunStatus]:
    return [(await harness.run(run)).status for run in runs]


@pytest.mark.parametrize("end", [complete_run, fail_run])
async def test_the_end_of_a_parent_cancels_its_children(harness: StoreHarness, end: object) -> None:
    parent, children = await parent_of(harness, 3)
    holding = await harness.hold(children[0], limit=1)
    assert not (await harness.poll()).cascade
    the(RunClosed, await harness.do(end(parent)))  # type: ignore[operator]
    assert harness.effects.children_due
    assert (await harness.poll()).cascade
    effects = await harness.cascade()
    assert not (await harness.poll()).cascade
    assert await states(harness, children) == [S.RUNNING, S.CANCELLED, S.CANCELLED]
    in_hand = await harness.run(children[0])
    assert in_hand.cancel_requested
    assert [(notice.leased, notice.worker_id) for notice in effects.notices] == [(holding, "worker-1")]
    assert {end.run for end in effects.ended} == set(children[1:])
    record = await harness.run(children[1])
    assert record.error is not None
    assert record.error.kind == ErrorKind.CANCELLED
    assert await harness.cascade() is NO_EFFECTS
    assert the(RunClosed, await harness.do(acknowledge_cancel(holding))).status == S.CANCELLED


async def test_abandoned_children_keep_running(harness: StoreHarness) -> None:
    parent, children = await parent_of(harness, 2, on_close="abandon")
    await harness.do(complete_run(parent))
    assert await harness.cascade() is NO_EFFECTS
    assert await states(harness, children) == [S.PENDING, S.PENDING]
    assert not (await harness.poll()).cascade


async def test_runs_that_were_only_attached_to_are_never_cancelled(harness: StoreHarness) -> None:
    other = await harness.start("shared", workflow_type="child")
    parent = await harness.running()
    await harness.do(harness.child_command(parent, workflow_id="shared", attach=True))
    await harness.cancel(parent.run)
    await harness.cascade()
    await harness.do(acknowledge_cancel(parent))
    await harness.cascade()
    record = await harness.run(other)
    assert (record.status, record.cancel_requested) == (S.PENDING, False)


async def test_children_that_ended_before_stay_as_they_ended(harness: StoreHarness) -> None:
    parent, children = await parent_of(harness, 2)
    await harness.do(complete_run(await harness.hold(children[0], limit=1)))
    await harness.do(complete_run(parent))
    assert len((await harness.cascade()).ended) == 1
    assert await states(harness, children) == [S.COMPLETED, S.CANCELLED]


async def test_a_request_to_cancel_reaches_the_children_before_the_end_of_the_parent(harness: StoreHarness) -> None:
    parent, children = await parent_of(harness, 2)
    await harness.cancel(parent.run)
    assert harness.effects.children_due
    assert (await harness.poll()).cascade
    await harness.cascade()
    assert await states(harness, children) == [S.CANCELLED, S.CANCELLED]
    assert (await harness.run(parent.run)).status == S.RUNNING
    await harness.do(acknowledge_cancel(parent))
    assert await harness.cascade() is NO_EFFECTS


async def test_termination_reaches_the_children(harness: StoreHarness) -> None:
    parent, children = await parent_of(harness, 2)
    await harness.terminate(parent.run)
    assert harness.effects.children_due
    await harness.cascade()
    assert await states(harness, children) == [S.CANCELLED, S.CANCELLED]


async def test_a_deadline_reaches_the_children(harness: StoreHarness) -> None:
    parent = await harness.running(deadline_at=harness.now + 1_000_000)
    child = await harness.child(parent)
    harness.clock.advance(us=DAY_US)
    await harness.fire()
    assert harness.effects.children_due
    await harness.cascade()
    assert (await harness.run(child)).status == S.CANCELLED


async def test_a_sleeping_child_is_woken_to_clean_up(harness: StoreHarness) -> None:
    parent, (child,) = await parent_of(harness, 1)
    holding = await harness.hold(child)
    await harness.write(sleep(holding, "nap", s=3_600), park(holding, "nap"))
    await harness.do(complete_run(parent))
    assert (await harness.cascade()).pending == (("default", "child"),)
    claimed = await harness.claim_one(workflow_type="child")
    assert claimed.cancel_requested


async def test_grandchildren_follow(harness: StoreHarness) -> None:
    parent, (child,) = await parent_of(harness, 1)
    middle = await harness.hold(child)
    grandchild = await harness.child(middle, workflow_type="grandchild")
    await harness.do(complete_run(parent))
    await harness.cascade()
    assert (await harness.run(middle.run)).cancel_requested
    assert (await harness.run(grandchild)).status == S.CANCELLED


async def test_the_cascade_stops_at_its_limit_and_says_so(harness: StoreHarness) -> None:
    parent = await harness.running()
    await harness.write(*(harness.child_command(parent, f"c{n}") for n in range(25)))
    await harness.do(complete_run(parent))
    more, first = await harness.store.cascade(harness.now, harness.now + DAY_US, 10)
    assert 1 <= len(first.ended) <= 10
    assert more
    assert len((await harness.cascade(limit=10)).ended) == 25 - len(first.ended)
    assert {run.status for run in await harness.runs(workflow_types=("child",))} == {S.CANCELLED}


async def test_only_the_children_of_a_losing_branch_are_cancelled(harness: StoreHarness) -> None:
    parent, children = await parent_of(harness, 3)
    await harness.do(race(parent, "race", "c0", "c1"))
    assert (await harness.poll()).cascade
    await harness.cascade()
    assert await states(harness, children) == [S.PENDING, S.CANCELLED, S.PENDING]
    assert not (await harness.poll()).cascade


async def test_the_cascade_outlives_the_process(durable_place: Place, clock: FakeClock, ids: CountingIds) -> None:
    store = await durable_place.open()
    harness = StoreHarness(store, clock, ids)
    ended, first = await parent_of(harness, 3)
    cancelled, second = await parent_of(harness, 3)
    raced, third = await parent_of(harness, 1)
    await harness.do(complete_run(ended))
    await harness.cancel(cancelled.run)
    await harness.do(race(raced, "race", "other", "c0"))
    await store.cascade(harness.now, harness.now + DAY_US, 1)
    await store.close()

    harness = StoreHarness(await durable_place.open(), clock, ids)
    assert (await harness.poll()).cascade
    await harness.cascade(limit=2)
    assert set(await states(harness, first + second + third)) == {S.CANCELLED}
    assert not (await harness.poll()).cascade


async def test_children_started_during_the_cascade_are_cancelled_too(harness: StoreHarness) -> None:
    # A cleanup scope may start a child after its run was cancelled: the child is the cleanup, and lives until the end.
    parent, (child,) = await parent_of(harness, 1)
    await harness.cancel(parent.run)
    await harness.cascade()
    assert (await harness.run(child)).status == S.CANCELLED
    late = await harness.child(parent, "undo", cleanup=True)
    await harness.do(acknowledge_cancel(parent))
    await harness.cascade()
    assert (await harness.run(late)).status == S.CANCELLED


async def test_a_parent_handed_back_keeps_its_children(harness: StoreHarness) -> None:
    parent, children = await parent_of(harness, 2)
    await harness.do(hand_back(parent))
    assert await harness.cascade() is NO_EFFECTS
    new = leased(await harness.claim_one())
    await harness.do(park(new, "c0", "c1"))
    assert await harness.cascade() is NO_EFFECTS
    assert await states(harness, children) == [S.PENDING, S.PENDING]
