"""One holder (P3): whoever does not hold the current lease changes nothing, on any verb."""

from collections.abc import Callable

import pytest

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.records import Lease, RunKey, RunLease
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Begun, LeaseLost, Recorded, RunClosed, RunNotFound
from kagzi.core.states import RunStatus, StepStatus

from .verbs import (
    StoreHarness,
    acknowledge_cancel,
    begin,
    complete,
    complete_run,
    fail,
    fail_run,
    finish,
    hand_back,
    park,
    sleep,
    stale,
    the,
)

EVERY_COMMAND: dict[str, Callable[[RunLease], Command]] = {
    "begin a new step": lambda holding: begin(holding, "new"),
    "begin an open step": lambda holding: begin(holding, "open"),
    "complete": lambda holding: complete(holding, "open"),
    "fail": lambda holding: fail(holding, "open"),
    "sleep": lambda holding: sleep(holding, "new nap", s=1),
    "finish sleep": lambda holding: finish(holding, "nap"),
    "park": lambda holding: park(holding, "nap"),
    "complete run": complete_run,
    "fail run": fail_run,
    "cancel run": acknowledge_cancel,
    "release": hand_back,
}
every_command = pytest.mark.parametrize("command", EVERY_COMMAND.values(), ids=EVERY_COMMAND.keys())


async def busy_run(harness: StoreHarness) -> RunLease:
    """A run with an open step and a timer, begun under a lease before the current one, so that nothing is a repeat."""
    first = await harness.running()
    await harness.write(begin(first, "open"), sleep(first, "nap", s=3_600))
    return await harness.take_over(first)


@every_command
async def test_a_stale_lease_changes_nothing(harness: StoreHarness, command: Callable[[RunLease], Command]) -> None:
    old = await busy_run(harness)
    new = await harness.take_over(old)
    await harness.cancel(old.run)
    before = await harness.picture(old.run)
    assert await harness.do(command(old)) == LeaseLost()
    assert await harness.picture(old.run) == before
    the(Recorded, (await harness.write(begin(new, "open"), complete(new, "open")))[1])


@every_command
async def test_a_lease_that_ran_out_is_stale_before_anybody_else_claims(
    harness: StoreHarness, command: Callable[[RunLease], Command]
) -> None:
    old = await busy_run(harness)
    harness.clock.advance(s=60)
    assert old in (await harness.fire()).lost
    before = await harness.picture(old.run)
    assert await harness.do(command(old)) == LeaseLost()
    assert await harness.picture(old.run) == before


@every_command
async def test_a_reused_counter_with_another_nonce_is_refused(
    harness: StoreHarness, command: Callable[[RunLease], Command]
) -> None:
    holding = await busy_run(harness)
    before = await harness.picture(holding.run)
    assert await harness.do(command(stale(holding))) == LeaseLost()
    forged = RunLease(holding.run, Lease(holding.lease.counter + 1, holding.lease.nonce))
    assert await harness.do(command(forged)) == LeaseLost()
    assert await harness.picture(holding.run) == before


@every_command
async def test_a_foreign_namespace_sees_no_run(harness: StoreHarness, command: Callable[[RunLease], Command]) -> None:
    holding = await busy_run(harness)
    await harness.start(namespace="elsewhere")
    before = await harness.picture(holding.run)
    foreign = RunLease(RunKey("elsewhere", holding.run.run_id), holding.lease)
    unknown = RunLease(RunKey("default", harness.ids.run_id(harness.now)), holding.lease)
    assert await harness.write(command(foreign), command(unknown)) == [RunNotFound(), RunNotFound()]
    assert await harness.picture(holding.run) == before


@every_command
async def test_an_ended_run_takes_nothing_from_an_older_holder(
    harness: StoreHarness, command: Callable[[RunLease], Command]
) -> None:
    old = await busy_run(harness)
    new = await harness.take_over(old)
    the(RunClosed, await harness.do(complete_run(new)))
    before = await harness.picture(old.run)
    assert await harness.do(command(old)) == LeaseLost()
    assert await harness.picture(old.run) == before


async def test_a_parked_run_takes_no_new_writes_from_its_last_holder(harness: StoreHarness) -> None:
    holding = await harness.asleep()
    before = await harness.picture(holding.run)
    outcomes = await harness.write(begin(holding, "new"), fail_run(holding), complete_run(holding))
    assert outcomes == [LeaseLost()] * 3
    assert await harness.picture(holding.run) == before


async def test_a_stale_holder_neither_renews_nor_shortens_nor_releases(harness: StoreHarness) -> None:
    old = await busy_run(harness)
    new = await harness.take_over(old)
    before = await harness.picture(old.run)
    due_at = (await harness.poll()).next_due_at
    foreign = RunLease(RunKey("elsewhere", new.run.run_id), new.lease)
    losers = (old, stale(new), foreign)
    harness.clock.advance(us=5)

    renewal = await harness.renew(*losers)
    assert set(renewal.lost) == set(losers)
    await harness.store.shorten_leases(losers, harness.now)
    assert await harness.store.release(losers, harness.now) is NO_EFFECTS

    assert await harness.picture(old.run) == before
    assert (await harness.poll()).next_due_at == due_at
    assert (await harness.fire()).lost == ()


async def test_in_one_batch_the_stale_are_refused_and_the_current_recorded(harness: StoreHarness) -> None:
    old = await busy_run(harness)
    new = await harness.take_over(old)
    outcomes = await harness.write(
        begin(new, "a"),
        complete(old, "open", "ghost"),
        complete(new, "a", "real"),
        begin(stale(new), "b"),
        complete_run(old),
    )
    assert [type(outcome) for outcome in outcomes] == [Begun, LeaseLost, Recorded, LeaseLost, LeaseLost]
    steps = await harness.steps(new.run)
    assert set(steps) == {"open", "nap", "a"}
    assert steps["open"].status == StepStatus.RUNNING
    assert (await harness.run(new.run)).status == RunStatus.RUNNING


async def test_only_the_first_release_counts(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.store.release([old], harness.now)
    new = (await harness.claim_one()).lease
    await harness.store.release([old], harness.now)
    assert await harness.do(hand_back(old)) == LeaseLost()
    assert (await harness.run(old.run)).status == RunStatus.RUNNING
    the(Begun, await harness.do(begin(RunLease(old.run, new), "a")))
