"""What a parent leaves behind: its children are cancelled or let go, durably, whenever the parent ended and whoever died."""

import pytest

from kagzi.core.error_details import ErrorKind
from kagzi.core.records import Held, RunKey
from kagzi.core.run.outcomes import RunClosed
from kagzi.core.states import RunStatus
from tests.support.clock import FakeClock
from tests.support.seams import CountingIds

from .places import Place
from .verbs import (
    DAY_US,
    Cellar,
    acknowledge_cancel,
    complete_run,
    fail_run,
    hand_back,
    held,
    park,
    race,
    sleep,
    the,
)

S = RunStatus


async def parent_of(cellar: Cellar, count: int, **options: object) -> tuple[Held, list[RunKey]]:
    parent = await cellar.running()
    return parent, [await cellar.child(parent, f"c{n}", **options) for n in range(count)]


async def states(cellar: Cellar, runs: list[RunKey]) -> list[RunStatus]:
    return [(await cellar.run(run)).status for run in runs]


@pytest.mark.parametrize("end", [complete_run, fail_run])
async def test_the_end_of_a_parent_cancels_its_children(cellar: Cellar, end: object) -> None:
    parent, children = await parent_of(cellar, 3)
    holding = await cellar.hold(children[0], limit=1)
    assert not (await cellar.look()).cascade
    closed = the(RunClosed, await cellar.do(end(parent)))  # type: ignore[operator]
    assert closed.has_children
    assert (await cellar.look()).cascade
    told = await cellar.cascade()
    assert len(told) == 3
    assert not (await cellar.look()).cascade
    assert await states(cellar, children) == [S.RUNNING, S.CANCELLED, S.CANCELLED]
    in_hand = await cellar.run(children[0])
    assert in_hand.cancel_requested
    assert [(one.holder, one.worker_id) for one in told if one.holder] == [(holding, "worker-1")]
    assert sum(one.ended for one in told) == 2
    record = await cellar.run(children[1])
    assert record.error is not None
    assert record.error.kind == ErrorKind.CANCELLED
    assert await cellar.cascade() == []
    assert the(RunClosed, await cellar.do(acknowledge_cancel(holding))).status == S.CANCELLED


async def test_children_that_were_let_go_live_on(cellar: Cellar) -> None:
    parent, children = await parent_of(cellar, 2, on_close="abandon")
    await cellar.do(complete_run(parent))
    assert await cellar.cascade() == []
    assert await states(cellar, children) == [S.PENDING, S.PENDING]
    assert not (await cellar.look()).cascade


async def test_runs_that_were_only_attached_to_are_never_cancelled(cellar: Cellar) -> None:
    other = await cellar.start("shared", workflow_type="child")
    parent = await cellar.running()
    await cellar.do(cellar.child_command(parent, workflow_id="shared", attach=True))
    await cellar.cancel(parent.run)
    await cellar.cascade()
    await cellar.do(acknowledge_cancel(parent))
    await cellar.cascade()
    record = await cellar.run(other)
    assert (record.status, record.cancel_requested) == (S.PENDING, False)


async def test_children_that_ended_before_stay_as_they_ended(cellar: Cellar) -> None:
    parent, children = await parent_of(cellar, 2)
    await cellar.do(complete_run(await cellar.hold(children[0], limit=1)))
    await cellar.do(complete_run(parent))
    assert len(await cellar.cascade()) == 1
    assert await states(cellar, children) == [S.COMPLETED, S.CANCELLED]


async def test_a_request_to_cancel_reaches_the_children_before_the_parent_ends(cellar: Cellar) -> None:
    parent, children = await parent_of(cellar, 2)
    cancelled = await cellar.cancel(parent.run)
    assert cancelled is not None
    assert cancelled.has_children
    assert (await cellar.look()).cascade
    await cellar.cascade()
    assert await states(cellar, children) == [S.CANCELLED, S.CANCELLED]
    assert (await cellar.run(parent.run)).status == S.RUNNING
    await cellar.do(acknowledge_cancel(parent))
    assert await cellar.cascade() == []


async def test_termination_reaches_the_children(cellar: Cellar) -> None:
    parent, children = await parent_of(cellar, 2)
    assert (await cellar.terminate(parent.run)).has_children
    await cellar.cascade()
    assert await states(cellar, children) == [S.CANCELLED, S.CANCELLED]


async def test_a_deadline_reaches_the_children(cellar: Cellar) -> None:
    parent = await cellar.running(deadline_at=cellar.now + 1_000_000)
    child = await cellar.child(parent)
    cellar.clock.advance(us=DAY_US)
    assert (await cellar.fire()).has_children
    await cellar.cascade()
    assert (await cellar.run(child)).status == S.CANCELLED


async def test_a_sleeping_child_is_woken_to_clean_up(cellar: Cellar) -> None:
    parent, (child,) = await parent_of(cellar, 1)
    holding = await cellar.hold(child)
    await cellar.write(sleep(holding, "nap", s=3_600), park(holding, "nap"))
    await cellar.do(complete_run(parent))
    (told,) = await cellar.cascade()
    assert told.woken == ("default", "child")
    claimed = await cellar.claim_one(workflow_type="child")
    assert claimed.cancel_requested


async def test_grandchildren_follow(cellar: Cellar) -> None:
    parent, (child,) = await parent_of(cellar, 1)
    middle = await cellar.hold(child)
    grandchild = await cellar.child(middle, workflow_type="grandchild")
    await cellar.do(complete_run(parent))
    await cellar.cascade()
    assert (await cellar.run(middle.run)).cancel_requested
    assert (await cellar.run(grandchild)).status == S.CANCELLED


async def test_the_cascade_stops_at_its_limit_and_says_so(cellar: Cellar) -> None:
    parent = await cellar.running()
    await cellar.write(*(cellar.child_command(parent, f"c{n}") for n in range(25)))
    await cellar.do(complete_run(parent))
    first = await cellar.store.cascade(cellar.now, cellar.now + DAY_US, 10)
    assert 1 <= len(first.cancelled) <= 10
    assert first.more
    assert len(await cellar.cascade(limit=10)) == 25 - len(first.cancelled)
    assert {run.status for run in await cellar.runs(workflow_types=("child",))} == {S.CANCELLED}


async def test_only_the_children_of_a_losing_branch_are_cancelled(cellar: Cellar) -> None:
    parent, children = await parent_of(cellar, 3)
    await cellar.do(race(parent, "race", "c0", "c1"))
    assert (await cellar.look()).cascade
    await cellar.cascade()
    assert await states(cellar, children) == [S.PENDING, S.CANCELLED, S.PENDING]
    assert not (await cellar.look()).cascade


async def test_the_cascade_outlives_the_process(durable_place: Place, clock: FakeClock, ids: CountingIds) -> None:
    store = await durable_place.open()
    cellar = Cellar(store, clock, ids)
    ended, first = await parent_of(cellar, 3)
    cancelled, second = await parent_of(cellar, 3)
    raced, third = await parent_of(cellar, 1)
    await cellar.do(complete_run(ended))
    await cellar.cancel(cancelled.run)
    await cellar.do(race(raced, "race", "other", "c0"))
    await store.cascade(cellar.now, cellar.now + DAY_US, 1)
    await store.close()

    cellar = Cellar(await durable_place.open(), clock, ids)
    assert (await cellar.look()).cascade
    await cellar.cascade(limit=2)
    assert set(await states(cellar, first + second + third)) == {S.CANCELLED}
    assert not (await cellar.look()).cascade


async def test_children_started_while_the_cascade_goes_on_are_found_too(cellar: Cellar) -> None:
    # A cleanup scope may start a child after its run was cancelled: the child is the cleanup, and lives until the end.
    parent, (child,) = await parent_of(cellar, 1)
    await cellar.cancel(parent.run)
    await cellar.cascade()
    assert (await cellar.run(child)).status == S.CANCELLED
    late = await cellar.child(parent, "undo", cleanup=True)
    await cellar.do(acknowledge_cancel(parent))
    await cellar.cascade()
    assert (await cellar.run(late)).status == S.CANCELLED


async def test_a_parent_handed_back_keeps_its_children(cellar: Cellar) -> None:
    parent, children = await parent_of(cellar, 2)
    await cellar.do(hand_back(parent))
    assert await cellar.cascade() == []
    new = held(await cellar.claim_one())
    await cellar.do(park(new, "c0", "c1"))
    assert await cellar.cascade() == []
    assert await states(cellar, children) == [S.PENDING, S.PENDING]
