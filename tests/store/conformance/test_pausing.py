"""Pause: what is in flight is recorded, nothing begins, nobody claims; signals and timers take effect on resume."""

import pytest

from kagzi.core.effects import NO_EFFECTS, Effects, LeaseNotice
from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.records import RunKey
from kagzi.core.run.outcomes import Begun, Known, LeaseLost, Parked, Recorded, RunClosed, TimerSet
from kagzi.core.states import RunStatus, StepStatus, WaitReason

from .invariants import check_invariants
from .verbs import (
    CLEANUP_US,
    DAY_US,
    LEASE_US,
    StoreHarness,
    begin,
    by_id,
    complete,
    complete_run,
    continue_as,
    fail_run,
    hand_back,
    leased,
    park,
    sleep,
    the,
    woken_by_result,
)

S = RunStatus


async def test_a_run_nobody_holds_is_paused_at_once(harness: StoreHarness) -> None:
    run = await harness.start()
    assert await harness.pause(run) == S.PAUSED
    assert harness.effects == Effects(changed=(run,))
    assert (await harness.run(run)).status == S.PAUSED
    assert await harness.claim() == []
    assert (await harness.poll()).pending == ()
    assert await harness.pause(run) == S.PAUSED
    assert harness.effects is NO_EFFECTS
    assert await harness.resume(run) == S.PENDING
    assert harness.effects == woken_by_result(run)
    assert (await harness.claim_one()).run == run
    await harness.resume(run)
    assert harness.effects is NO_EFFECTS


async def test_a_holder_that_was_not_notified_learns_of_it_when_it_renews(harness: StoreHarness) -> None:
    """Between servers that cannot wake each other nobody else would say so."""
    pausing, other = await harness.running(), await harness.running()
    assert (await harness.renew(pausing, other)).pause_requested == ()
    await harness.pause(pausing.run)
    renewal = await harness.renew(pausing, other)
    assert (renewal.pause_requested, renewal.cancel_requested, renewal.lost) == ((pausing.run,), (), ())


async def test_a_leased_run_is_requested_to_pause_and_what_is_in_flight_is_recorded(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "a"))
    assert await harness.pause(holding.run) == S.RUNNING
    assert harness.effects.notices == (LeaseNotice(holding, "pause_requested", "worker-1", "wait a little"),)
    assert (await harness.run(holding.run)).pause_requested
    the(Recorded, await harness.do(complete(holding, "a")))
    closed = the(RunClosed, await harness.do(hand_back(holding)))
    assert closed.status == S.PAUSED
    record = await harness.run(holding.run)
    assert (record.status, record.worker_id) == (S.PAUSED, None)
    assert await harness.claim() == []
    await harness.resume(holding.run)
    record = await harness.run(holding.run)
    assert (record.status, record.pause_requested) == (S.PENDING, False)
    claimed = await harness.claim_one()
    assert not claimed.pause_requested
    the(Known, await harness.do(begin(leased(claimed), "a")))
    the(Begun, await harness.do(begin(leased(claimed), "b")))


async def test_a_run_with_a_pause_request_is_paused_when_it_parks(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(TimerSet, await harness.do(sleep(holding, "nap", s=60)))
    await harness.pause(holding.run)
    the(Parked, await harness.do(park(holding, "nap")))
    assert (await harness.run(holding.run)).status == S.PAUSED
    await check_invariants(harness.store)


async def test_a_run_with_a_pause_request_is_paused_when_its_worker_is_lost(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.pause(holding.run)
    harness.clock.advance(us=LEASE_US + 1)
    fired = await harness.fire()
    assert fired.lost == (holding,)
    assert fired.pending == ()
    assert (await harness.run(holding.run)).status == S.PAUSED
    assert await harness.claim() == []


async def test_a_run_with_a_pause_request_is_paused_when_its_worker_leaves(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    one, other = await harness.running(), await harness.running()
    await harness.pause(one.run)
    await harness.pause(other.run)
    await harness.store.release([one], harness.now)
    await harness.store.worker_left("default", "worker-1", harness.now, hand_back=True)
    assert {(await harness.run(holding.run)).status for holding in (one, other)} == {S.PAUSED}


async def test_a_request_may_be_taken_back(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.pause(holding.run)
    assert await harness.resume(holding.run) == S.RUNNING
    assert harness.effects == Effects(changed=(holding.run,))
    assert not (await harness.run(holding.run)).pause_requested
    assert the(RunClosed, await harness.do(hand_back(holding))).status == S.PENDING


async def test_an_end_comes_before_a_pause(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.pause(holding.run)
    assert the(RunClosed, await harness.do(complete_run(holding))).status == S.COMPLETED
    for change in (harness.pause, harness.resume):
        assert await change(holding.run) == S.COMPLETED
        assert harness.effects is NO_EFFECTS


@pytest.mark.parametrize("early", [True, False])
async def test_timers_take_effect_on_resume(harness: StoreHarness, early: bool) -> None:
    last = await harness.asleep(s=60)
    await harness.pause(last.run)
    assert (await harness.run(last.run)).status == S.PAUSED
    harness.clock.advance(s=30 if early else 90)
    assert (await harness.fire()).pending == ()
    assert (await harness.run(last.run)).status == S.PAUSED
    await harness.resume(last.run)
    await harness.fire()
    if early:  # it goes on as it was, now or after a look of its worker
        if (await harness.run(last.run)).status == S.PENDING:
            holding = await harness.hold(last.run)
            the(Parked, await harness.do(park(holding, "nap")))
        assert (await harness.run(last.run)).status == S.SLEEPING
        harness.clock.advance(s=30)
        await harness.fire()
    claimed = await harness.claim_one()
    nap = by_id(claimed.history.steps)["nap"]
    if nap.status != StepStatus.COMPLETED:
        outcome = await harness.do(park(leased(claimed), "nap"))
        (nap,) = outcome.results  # type: ignore[union-attr]
    assert nap.status == StepStatus.COMPLETED


async def test_a_deadline_holds_while_paused(harness: StoreHarness) -> None:
    run = await harness.start(deadline_at=harness.now + 1_000_000)
    await harness.pause(run)
    assert (await harness.poll()).next_due_at == harness.now + 1_000_000
    harness.clock.advance(s=1)
    assert [end.run for end in (await harness.fire()).ended] == [run]
    record = await harness.run(run)
    assert record.status == S.FAILED
    assert record.error is not None
    assert record.error.kind == ErrorKind.TIMEOUT


async def test_a_paused_run_that_is_cancelled_is_resumed_to_clean_up(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(hand_back(holding))
    await harness.pause(holding.run)
    cancelled = await harness.cancel(holding.run)
    assert cancelled is not None
    harness.clock.advance(us=DAY_US)
    await harness.fire()
    assert (await harness.run(holding.run)).status == S.CANCELLED


async def test_a_paused_run_never_claimed_is_cancelled_at_once(harness: StoreHarness) -> None:
    run = await harness.start()
    await harness.pause(run)
    assert await harness.cancel(run) == S.CANCELLED
    assert [end.run for end in harness.effects.ended] == [run]
    assert (await harness.run(run)).status == S.CANCELLED


# --- quarantine -------------------------------------------------------------------------------------------------------


async def expire_lease(harness: StoreHarness, claim_cap: int) -> RunStatus:
    """Somebody claims the run and is never heard of again."""
    claimed = await harness.claim_one()
    harness.clock.advance(us=LEASE_US + 1)
    fired = await harness.fire(claim_cap=claim_cap)
    assert fired.lost == (leased(claimed),)
    [expired] = fired.expired  # what the log says of it
    record = await harness.run(claimed.run)
    assert (expired.leased, expired.times) == (leased(claimed), record.lost_leases)
    assert (expired.workflow_id, expired.workflow_type) == (record.workflow_id, record.workflow_type)
    assert expired.problem == record.problem
    return record.status


async def test_a_run_whose_every_worker_is_lost_is_paused(harness: StoreHarness) -> None:
    run = await harness.start()
    assert [await expire_lease(harness, 3) for _ in range(3)] == [S.PENDING, S.PENDING, S.PAUSED]
    record = await harness.run(run)
    assert record.problem is not None
    assert (record.problem.kind, record.problem.code) == (ErrorKind.LOST, ErrorCode.PRECONDITION_FAILED)
    assert "3 times" in record.problem.message
    assert "kagzi resume" in record.problem.message
    assert await harness.claim() == []
    assert await harness.resume(run) == S.PENDING
    record = await harness.run(run)
    assert (record.problem, record.lost_leases) == (None, 0)
    assert [await expire_lease(harness, 3) for _ in range(3)] == [S.PENDING, S.PENDING, S.PAUSED]


async def test_the_cap_is_ten_if_nobody_says_otherwise(harness: StoreHarness) -> None:
    run = await harness.start()
    for _ in range(9):
        await harness.claim_one()
        harness.clock.advance(us=LEASE_US + 1)
        await harness.fire()
    record = await harness.run(run)
    assert (record.status, record.lost_leases) == (S.PENDING, 9)
    await harness.claim_one()
    harness.clock.advance(us=LEASE_US + 1)
    await harness.fire()
    assert (await harness.run(run)).status == S.PAUSED


async def test_every_result_starts_the_count_anew(harness: StoreHarness) -> None:
    run = await harness.start()
    for n in range(4):
        await expire_lease(harness, 3)
        await expire_lease(harness, 3)
        holding = await harness.hold(run)
        assert (await harness.run(run)).lost_leases == 2
        await harness.done(holding, f"{n}")
        assert (await harness.run(run)).lost_leases == 0
        await harness.do(hand_back(holding))
    assert (await harness.run(run)).status == S.PENDING


async def test_handing_back_is_not_counted(harness: StoreHarness) -> None:
    run = await harness.start()
    for _ in range(5):
        await harness.do(hand_back(await harness.hold(run)))
        await harness.store.release([await harness.hold(run)], harness.now)
    await harness.fire(claim_cap=2)
    record = await harness.run(run)
    assert (record.status, record.lost_leases) == (S.PENDING, 0)


async def test_what_broke_its_stream_before_it_arrived_is_counted_and_has_a_grace_the_second_time(
    harness: StoreHarness,
) -> None:
    run = await harness.start()
    soon = harness.now + 3_000_000
    first = await harness.hold(run)
    effects = await harness.store.lost_before_ack([first, first], harness.now, [soon, soon])
    assert effects.pending == effects.released == (("default", "hello"),)
    record = await harness.run(run)
    assert (record.status, record.lost_leases) == (S.PENDING, 1)
    the(LeaseLost, await harness.do(begin(first, "late")))
    assert await harness.store.lost_before_ack([first], harness.now, [soon]) is NO_EFFECTS  # stale
    second = await harness.hold(run)
    assert await harness.store.lost_before_ack([second], harness.now, [soon]) is NO_EFFECTS
    assert (await harness.run(run)).status == S.RUNNING
    assert (await harness.poll()).next_due_at == soon
    harness.clock.advance(s=3)
    fired = await harness.fire(claim_cap=3)
    assert fired.lost == (second,)
    assert (await harness.run(run)).lost_leases == 2
    third = await harness.hold(run)
    await harness.store.lost_before_ack([third], harness.now, [harness.now])
    await harness.fire(claim_cap=3)
    record = await harness.run(run)
    assert (record.status, record.lost_leases) == (S.PAUSED, 3)
    assert record.problem is not None
    assert record.problem.kind == ErrorKind.LOST
    assert "3 times" in record.problem.message
    await check_invariants(harness.store)


async def test_who_comes_back_within_the_grace_keeps_it_and_progress_starts_the_count_anew(
    harness: StoreHarness,
) -> None:
    run = await harness.start()
    await harness.store.lost_before_ack([await harness.hold(run)], harness.now, [harness.now])
    holding = await harness.hold(run)
    await harness.store.lost_before_ack([holding], harness.now, [harness.now + 1_000_000])
    assert (await harness.renew(holding)).lost == ()
    harness.clock.advance(s=5)
    assert (await harness.fire()).lost == ()
    await harness.done(holding, "a")
    assert (await harness.run(run)).lost_leases == 0
    effects = await harness.store.lost_before_ack([holding], harness.now, [harness.now])
    assert effects.pending == (("default", "hello"),)


async def test_a_lost_stream_of_a_run_to_be_paused_pauses_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.pause(holding.run)
    assert await harness.store.lost_before_ack([holding], harness.now, [harness.now]) is NO_EFFECTS
    record = await harness.run(holding.run)
    assert (record.status, record.problem, record.pause_reason) == (S.PAUSED, None, "wait a little")
    assert not record.pause_requested


# --- cancellation goes before pausing ---------------------------------------------------------------------------------


async def test_a_run_being_cancelled_is_not_paused(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run)
    assert await harness.pause(holding.run) == S.RUNNING
    assert harness.effects is NO_EFFECTS
    assert not (await harness.run(holding.run)).pause_requested
    await harness.do(hand_back(holding))
    await harness.pause(holding.run)
    assert harness.effects is NO_EFFECTS
    assert (await harness.run(holding.run)).status == S.PENDING


async def test_quarantined_while_it_cleans_up_it_is_still_closed_at_its_limit(harness: StoreHarness) -> None:
    run = await harness.start()
    await harness.hold(run)
    await harness.cancel(run)
    harness.clock.advance(us=LEASE_US + 1)
    await harness.fire(claim_cap=1)
    record = await harness.run(run)
    assert (record.status, record.cancel_requested) == (S.PAUSED, True)
    assert record.problem is not None
    harness.clock.advance(us=CLEANUP_US)
    assert [end.run for end in (await harness.fire()).ended] == [run]
    assert (await harness.run(run)).status == S.CANCELLED


# --- the reason, and a clean sheet ------------------------------------------------------------------------------------


async def test_the_reason_is_kept_until_it_is_resumed(harness: StoreHarness) -> None:
    run = await harness.start()
    await harness.pause(run, "the bank is closed")
    await harness.pause(run, "another reason")
    assert (await harness.run(run)).pause_reason == "the bank is closed"
    await harness.resume(run)
    assert (await harness.run(run)).pause_reason == ""
    holding = await harness.hold(run)
    await harness.pause(run, "look at it first")
    assert (await harness.run(run)).pause_reason == "look at it first"
    await harness.do(hand_back(holding))
    assert (await harness.run(run)).pause_reason == "look at it first"
    await harness.cancel(run)
    assert (await harness.run(run)).pause_reason == ""


async def test_who_is_paused_waits_for_nothing_else(harness: StoreHarness) -> None:
    last = await harness.asleep(s=60)
    await harness.pause(last.run)
    record = await harness.run(last.run)
    assert (record.status, record.wait_reason, record.wake_at) == (S.PAUSED, None, None)
    other = await harness.running()
    await harness.pause(other.run)
    the(Parked, await harness.do(park(other)))  # nothing to wait for: it is paused all the same
    assert (await harness.run(other.run)).status == S.PAUSED
    the(Parked, await harness.do(park(other)))  # said again


async def test_an_end_leaves_no_request(harness: StoreHarness) -> None:
    for end in (complete_run, fail_run):
        holding = await harness.running()
        await harness.pause(holding.run)
        await harness.do(end(holding))
        assert not (await harness.run(holding.run)).pause_requested


async def test_a_start_that_was_to_come_later_still_does(harness: StoreHarness) -> None:
    run = await harness.start(start_at=harness.now + 60_000_000)
    await harness.pause(run)
    assert await harness.resume(run) == S.SLEEPING
    record = await harness.run(run)
    assert (record.wait_reason, record.wake_at) == (WaitReason.TIME, harness.now + 60_000_000)
    await harness.pause(run)
    harness.clock.advance(s=61)
    assert await harness.resume(run) == S.PENDING


async def test_the_successor_of_a_run_to_be_paused_is_paused(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.pause(holding.run, "look first")
    new = harness.ids.run_id(harness.now)
    assert the(RunClosed, await harness.do(continue_as(holding, new))).continued_as == new
    record = await harness.run(RunKey("default", new))
    assert (record.status, record.pause_reason) == (S.PAUSED, "look first")
    assert await harness.claim() == []
    await harness.resume(record.run)
    assert (await harness.claim_one()).run == record.run


async def test_the_holder_of_a_terminated_run_learns_how_it_ended(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    await harness.terminate(holding.run)
    for end in (complete_run, fail_run):
        assert the(RunClosed, await harness.do(end(holding))).status == S.CANCELLED
    the(Recorded, await harness.do(complete(holding, "a")))  # a repeat of what was recorded
    the(LeaseLost, await harness.do(begin(holding, "b")))
    assert (await harness.run(holding.run)).output is None
