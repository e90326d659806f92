"""A run that was started behind another begins in the transaction in which that one ends, however it ends."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kagzi.core.effects import NO_EFFECTS, Effects
from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.outcomes import Existing, RunClosed, Started
from kagzi.core.states import RunStatus
from kagzi.store.protocol import TypeKey

from .invariants import check_run
from .verbs import (
    CLEANUP_US,
    DAY_US,
    StoreHarness,
    acknowledge_cancel,
    complete_run,
    continue_as,
    fail_run,
    hand_back,
    the,
    woken_by_result,
)

S = RunStatus

# Each ends the run and returns the effects of that.
End = Callable[[StoreHarness, RunLease], Awaitable[Effects]]


async def by_completing(harness: StoreHarness, first: RunLease) -> Effects:
    the(RunClosed, await harness.do(complete_run(first)))
    return harness.effects


async def by_failing(harness: StoreHarness, first: RunLease) -> Effects:
    the(RunClosed, await harness.do(fail_run(first)))
    return harness.effects


async def by_stopping(harness: StoreHarness, first: RunLease) -> Effects:
    await harness.cancel(first.run)
    the(RunClosed, await harness.do(acknowledge_cancel(first)))
    return harness.effects


async def by_terminating(harness: StoreHarness, first: RunLease) -> Effects:
    await harness.terminate(first.run)
    return harness.effects


async def by_its_deadline(harness: StoreHarness, first: RunLease) -> Effects:
    harness.clock.advance(us=DAY_US)
    await harness.fire()
    return harness.effects


async def by_its_cancel_limit(harness: StoreHarness, first: RunLease) -> Effects:
    await harness.cancel(first.run)
    harness.clock.advance(us=CLEANUP_US)
    await harness.fire()
    return harness.effects


async def by_being_replaced(harness: StoreHarness, first: RunLease) -> Effects:
    replacing = harness.start_command("first", workflow_type="first", on_conflict="replace")
    the(Started, await harness.do(replacing))
    return harness.effects


ENDINGS = (
    by_completing,
    by_failing,
    by_stopping,
    by_terminating,
    by_its_deadline,
    by_its_cancel_limit,
    by_being_replaced,
)


async def first_run(harness: StoreHarness) -> RunLease:
    return await harness.running(workflow_id="first", workflow_type="first", deadline_at=harness.now + DAY_US)


async def behind(harness: StoreHarness, run: RunKey, **options: Any) -> RunKey:
    return await harness.start(blocked_by=run.run_id, **options)


async def test_it_waits_without_a_time(harness: StoreHarness) -> None:
    first = await first_run(harness)
    second = await behind(harness, first.run)
    record = await harness.run(second)
    assert (record.status, record.blocked_by, record.wake_at) == (S.SLEEPING, first.run.run_id, None)
    harness.clock.advance(s=60)
    await harness.fire(end_leases=False)
    assert await harness.claim() == []
    check_run(await harness.run(second))


@pytest.mark.parametrize("end", ENDINGS)
async def test_it_begins_when_the_other_has_ended(harness: StoreHarness, end: End) -> None:
    first = await first_run(harness)
    second, third = await behind(harness, first.run), await behind(harness, first.run)
    effects = await end(harness, first)
    assert (await harness.run(first.run)).status.ended
    assert {TypeKey("default", "hello")} <= set(effects.pending)
    assert {second, third} <= set(effects.changed)
    for run in (second, third):
        record = await harness.run(run)
        assert (record.status, record.blocked_by, record.wait_reason) == (S.PENDING, None, None)
    assert {claimed.run for claimed in await harness.claim()} == {second, third}


async def test_a_chain_goes_one_by_one(harness: StoreHarness) -> None:
    first = await first_run(harness)
    second = await behind(harness, first.run)
    third = await behind(harness, second)
    await by_completing(harness, first)
    assert (await harness.run(third)).status == S.SLEEPING
    await harness.do(complete_run(await harness.hold(second)))
    assert (await harness.run(third)).status == S.PENDING


async def test_handing_back_is_no_end(harness: StoreHarness) -> None:
    first = await first_run(harness)
    second = await behind(harness, first.run)
    the(RunClosed, await harness.do(hand_back(first)))
    assert harness.effects is NO_EFFECTS
    assert (await harness.run(second)).status == S.SLEEPING


async def test_a_paused_one_begins_when_it_is_resumed(harness: StoreHarness) -> None:
    first = await first_run(harness)
    second = await behind(harness, first.run)
    assert await harness.pause(second) == S.PAUSED
    assert await by_completing(harness, first) == Effects(changed=(second,))
    record = await harness.run(second)
    assert (record.status, record.blocked_by) == (S.PAUSED, None)
    assert await harness.resume(second) == S.PENDING
    assert (await harness.claim_one()).run == second


async def test_resumed_too_early_it_waits_on(harness: StoreHarness) -> None:
    first = await first_run(harness)
    second = await behind(harness, first.run)
    await harness.pause(second)
    assert await harness.resume(second) == S.SLEEPING
    record = await harness.run(second)
    assert (record.status, record.blocked_by) == (S.SLEEPING, first.run.run_id)
    check_run(record)
    await by_completing(harness, first)
    assert (await harness.claim_one()).run == second


async def test_it_waits_for_the_successor(harness: StoreHarness) -> None:
    first = await first_run(harness)
    second = await behind(harness, first.run)
    new = harness.ids.run_id(harness.now)
    the(RunClosed, await harness.do(continue_as(first, new)))
    assert harness.effects is NO_EFFECTS
    record = await harness.run(second)
    assert (record.status, record.blocked_by) == (S.SLEEPING, new)
    effects = await by_completing(harness, await harness.hold(RunKey("default", new)))
    assert effects == woken_by_result(second)


@pytest.mark.parametrize("paused", [False, True])
async def test_cancelled_before_it_began_it_has_nothing_to_clean_up(harness: StoreHarness, paused: bool) -> None:
    first = await first_run(harness)
    second = await behind(harness, first.run)
    third = await behind(harness, second)
    if paused:
        await harness.pause(second)
    assert await harness.cancel(second) == S.CANCELLED
    assert harness.effects.changed == (third,)
    record = await harness.run(second)
    assert (record.status, record.blocked_by) == (S.CANCELLED, None)
    assert await by_completing(harness, first) is NO_EFFECTS
    assert (await harness.run(second)).status == S.CANCELLED


async def test_its_own_deadline_holds_while_it_waits(harness: StoreHarness) -> None:
    first = await first_run(harness)
    second = await behind(harness, first.run, deadline_at=harness.now + 1_000_000)
    harness.clock.advance(s=1)
    assert [end.run for end in (await harness.fire(end_leases=False)).ended] == [second]
    assert (await harness.run(second)).blocked_by is None
    assert await by_completing(harness, first) is NO_EFFECTS
    assert (await harness.run(second)).status == S.FAILED


async def test_a_repeated_start_answers_the_run_in_any_state(harness: StoreHarness) -> None:
    first = await first_run(harness)
    command = harness.start_command(blocked_by=first.run.run_id)
    the(Started, await harness.do(command))
    assert the(Existing, await harness.do(command)).status == S.SLEEPING
    await by_completing(harness, first)
    assert the(Existing, await harness.do(command)).status == S.PENDING


async def test_many_blocked_runs_in_one_batch_of_endings(harness: StoreHarness) -> None:
    holding = [await harness.running(workflow_type="first") for _ in range(5)]
    waiting = [await behind(harness, first.run) for first in holding]
    await harness.write(*[complete_run(first) for first in holding])
    assert sorted(harness.effects.changed, key=lambda run: run.run_id) == waiting
    assert {(await harness.run(run)).status for run in waiting} == {S.PENDING}
