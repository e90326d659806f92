"""Pause: what is in flight is recorded, nothing begins, nobody claims; signals and timers take effect on resume."""

import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.records import RunKey
from kagzi.core.run.outcomes import Begun, Known, LeaseLost, Parked, Recorded, RunClosed, TimerSet
from kagzi.core.states import RunStatus, StepStatus, WaitReason

from .invariants import check_invariants
from .verbs import (
    CLEANUP_US,
    DAY_US,
    LEASE_US,
    Cellar,
    begin,
    by_id,
    complete,
    complete_run,
    fail_run,
    go_on_as,
    hand_back,
    held,
    park,
    sleep,
    the,
)

S = RunStatus


async def test_a_run_nobody_holds_is_paused_at_once(cellar: Cellar) -> None:
    run = await cellar.start()
    changed = await cellar.pause(run)
    assert (changed.status, changed.changed, changed.holder) == (S.PAUSED, True, None)
    assert (await cellar.run(run)).status == S.PAUSED
    assert await cellar.claim() == []
    assert (await cellar.look()).pending == ()
    again = await cellar.pause(run)
    assert (again.status, again.changed) == (S.PAUSED, False)
    resumed = await cellar.resume(run)
    assert (resumed.status, resumed.changed, resumed.workflow_type) == (S.PENDING, True, "hello")
    assert (await cellar.claim_one()).run == run
    assert not (await cellar.resume(run)).changed


async def test_a_holder_that_was_not_told_finds_out_when_it_renews(cellar: Cellar) -> None:
    """Between servers that cannot wake each other nobody else would say so."""
    asked, other = await cellar.running(), await cellar.running()
    assert (await cellar.renew(asked, other)).pause_requested == ()
    await cellar.pause(asked.run)
    renewal = await cellar.renew(asked, other)
    assert (renewal.pause_requested, renewal.cancel_requested, renewal.lost) == ((asked.run,), (), ())


async def test_a_run_in_hand_is_asked_and_what_is_in_flight_is_recorded(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(begin(holding, "a"))
    changed = await cellar.pause(holding.run)
    assert (changed.status, changed.holder, changed.worker_id) == (S.RUNNING, holding, "worker-1")
    assert (await cellar.run(holding.run)).pause_requested
    the(Recorded, await cellar.do(complete(holding, "a")))
    closed = the(RunClosed, await cellar.do(hand_back(holding)))
    assert closed.status == S.PAUSED
    record = await cellar.run(holding.run)
    assert (record.status, record.worker_id) == (S.PAUSED, None)
    assert await cellar.claim() == []
    await cellar.resume(holding.run)
    record = await cellar.run(holding.run)
    assert (record.status, record.pause_requested) == (S.PENDING, False)
    claimed = await cellar.claim_one()
    assert not claimed.pause_requested
    the(Known, await cellar.do(begin(held(claimed), "a")))
    the(Begun, await cellar.do(begin(held(claimed), "b")))


async def test_a_run_that_was_asked_is_paused_when_it_parks(cellar: Cellar) -> None:
    holding = await cellar.running()
    the(TimerSet, await cellar.do(sleep(holding, "nap", s=60)))
    await cellar.pause(holding.run)
    the(Parked, await cellar.do(park(holding, "nap")))
    assert (await cellar.run(holding.run)).status == S.PAUSED
    await check_invariants(cellar.store)


async def test_a_run_that_was_asked_is_paused_when_its_worker_is_lost(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.pause(holding.run)
    cellar.clock.advance(us=LEASE_US + 1)
    fired = await cellar.fire()
    assert fired.lost == (holding,)
    assert fired.woken == ()
    assert (await cellar.run(holding.run)).status == S.PAUSED
    assert await cellar.claim() == []


async def test_a_run_that_was_asked_is_paused_when_its_worker_leaves(cellar: Cellar) -> None:
    await cellar.register("worker-1")
    one, other = await cellar.running(), await cellar.running()
    await cellar.pause(one.run)
    await cellar.pause(other.run)
    await cellar.store.release([one], cellar.now)
    await cellar.store.worker_left("default", "worker-1", cellar.now, hand_back=True)
    assert {(await cellar.run(holding.run)).status for holding in (one, other)} == {S.PAUSED}


async def test_a_request_may_be_taken_back(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.pause(holding.run)
    resumed = await cellar.resume(holding.run)
    assert (resumed.status, resumed.changed) == (S.RUNNING, True)
    assert not (await cellar.run(holding.run)).pause_requested
    assert the(RunClosed, await cellar.do(hand_back(holding))).status == S.PENDING


async def test_an_end_comes_before_a_pause(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.pause(holding.run)
    assert the(RunClosed, await cellar.do(complete_run(holding))).status == S.COMPLETED
    for change in (cellar.pause, cellar.resume):
        changed = await change(holding.run)
        assert (changed.status, changed.changed) == (S.COMPLETED, False)


@pytest.mark.parametrize("early", [True, False])
async def test_timers_take_effect_on_resume(cellar: Cellar, early: bool) -> None:
    last = await cellar.asleep(s=60)
    await cellar.pause(last.run)
    assert (await cellar.run(last.run)).status == S.PAUSED
    cellar.clock.advance(s=30 if early else 90)
    assert (await cellar.fire()).woken == ()
    assert (await cellar.run(last.run)).status == S.PAUSED
    await cellar.resume(last.run)
    await cellar.fire()
    if early:  # it goes on as it was, now or after a look of its worker
        if (await cellar.run(last.run)).status == S.PENDING:
            holding = await cellar.hold(last.run)
            the(Parked, await cellar.do(park(holding, "nap")))
        assert (await cellar.run(last.run)).status == S.SLEEPING
        cellar.clock.advance(s=30)
        await cellar.fire()
    claimed = await cellar.claim_one()
    nap = by_id(claimed.history.steps)["nap"]
    if nap.status != StepStatus.COMPLETED:
        outcome = await cellar.do(park(held(claimed), "nap"))
        (nap,) = outcome.results  # type: ignore[union-attr]
    assert nap.status == StepStatus.COMPLETED


async def test_a_deadline_holds_while_paused(cellar: Cellar) -> None:
    run = await cellar.start(deadline_at=cellar.now + 1_000_000)
    await cellar.pause(run)
    assert (await cellar.look()).next_due_at == cellar.now + 1_000_000
    cellar.clock.advance(s=1)
    assert [end.run for end in (await cellar.fire()).ended] == [run]
    record = await cellar.run(run)
    assert record.status == S.FAILED
    assert record.error is not None
    assert record.error.kind == ErrorKind.TIMEOUT


async def test_a_paused_run_that_is_cancelled_is_let_go_to_clean_up(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(hand_back(holding))
    await cellar.pause(holding.run)
    cancelled = await cellar.cancel(holding.run)
    assert cancelled is not None
    cellar.clock.advance(us=DAY_US)
    await cellar.fire()
    assert (await cellar.run(holding.run)).status == S.CANCELLED


async def test_a_paused_run_never_claimed_is_cancelled_at_once(cellar: Cellar) -> None:
    run = await cellar.start()
    await cellar.pause(run)
    cancelled = await cellar.cancel(run)
    assert cancelled is not None
    assert cancelled.ended
    assert (await cellar.run(run)).status == S.CANCELLED


# --- quarantine ---------------------------------------------------------------------------------------------------------


async def lose(cellar: Cellar, claim_cap: int) -> RunStatus:
    """Somebody claims the run and is never heard of again."""
    claimed = await cellar.claim_one()
    cellar.clock.advance(us=LEASE_US + 1)
    fired = await cellar.fire(claim_cap=claim_cap)
    assert fired.lost == (held(claimed),)
    [expired] = fired.expired  # what the log says of it
    record = await cellar.run(claimed.run)
    assert (expired.held, expired.times) == (held(claimed), record.lost_leases)
    assert (expired.workflow_id, expired.workflow_type) == (record.workflow_id, record.workflow_type)
    assert expired.problem == record.problem
    return record.status


async def test_a_run_that_loses_every_worker_is_put_aside(cellar: Cellar) -> None:
    run = await cellar.start()
    assert [await lose(cellar, 3) for _ in range(3)] == [S.PENDING, S.PENDING, S.PAUSED]
    record = await cellar.run(run)
    assert record.problem is not None
    assert (record.problem.kind, record.problem.code) == (ErrorKind.LOST, ErrorCode.PRECONDITION_FAILED)
    assert "3 times" in record.problem.message
    assert "kagzi resume" in record.problem.message
    assert await cellar.claim() == []
    resumed = await cellar.resume(run)
    assert (resumed.status, resumed.changed) == (S.PENDING, True)
    record = await cellar.run(run)
    assert (record.problem, record.lost_leases) == (None, 0)
    assert [await lose(cellar, 3) for _ in range(3)] == [S.PENDING, S.PENDING, S.PAUSED]


async def test_the_cap_is_ten_if_nobody_says_otherwise(cellar: Cellar) -> None:
    run = await cellar.start()
    for _ in range(9):
        await cellar.claim_one()
        cellar.clock.advance(us=LEASE_US + 1)
        await cellar.fire()
    record = await cellar.run(run)
    assert (record.status, record.lost_leases) == (S.PENDING, 9)
    await cellar.claim_one()
    cellar.clock.advance(us=LEASE_US + 1)
    await cellar.fire()
    assert (await cellar.run(run)).status == S.PAUSED


async def test_every_result_starts_the_count_anew(cellar: Cellar) -> None:
    run = await cellar.start()
    for n in range(4):
        await lose(cellar, 3)
        await lose(cellar, 3)
        holding = await cellar.hold(run)
        assert (await cellar.run(run)).lost_leases == 2
        await cellar.done(holding, f"{n}")
        assert (await cellar.run(run)).lost_leases == 0
        await cellar.do(hand_back(holding))
    assert (await cellar.run(run)).status == S.PENDING


async def test_handing_back_is_not_counted(cellar: Cellar) -> None:
    run = await cellar.start()
    for _ in range(5):
        await cellar.do(hand_back(await cellar.hold(run)))
        await cellar.store.release([await cellar.hold(run)], cellar.now)
    await cellar.fire(claim_cap=2)
    record = await cellar.run(run)
    assert (record.status, record.lost_leases) == (S.PENDING, 0)


async def test_what_broke_its_stream_before_it_arrived_is_counted_and_has_a_grace_the_second_time(
    cellar: Cellar,
) -> None:
    run = await cellar.start()
    soon = cellar.now + 3_000_000
    first = await cellar.hold(run)
    assert list(await cellar.store.lose([first, first], cellar.now, [soon, soon])) == [("default", "hello")]
    record = await cellar.run(run)
    assert (record.status, record.lost_leases) == (S.PENDING, 1)
    the(LeaseLost, await cellar.do(begin(first, "late")))
    assert await cellar.store.lose([first], cellar.now, [soon]) == ()  # stale
    second = await cellar.hold(run)
    assert await cellar.store.lose([second], cellar.now, [soon]) == ()
    assert (await cellar.run(run)).status == S.RUNNING
    assert (await cellar.look()).next_due_at == soon
    cellar.clock.advance(s=3)
    fired = await cellar.fire(claim_cap=3)
    assert fired.lost == (second,)
    assert (await cellar.run(run)).lost_leases == 2
    third = await cellar.hold(run)
    await cellar.store.lose([third], cellar.now, [cellar.now])
    await cellar.fire(claim_cap=3)
    record = await cellar.run(run)
    assert (record.status, record.lost_leases) == (S.PAUSED, 3)
    assert record.problem is not None
    assert record.problem.kind == ErrorKind.LOST
    assert "3 times" in record.problem.message
    await check_invariants(cellar.store)


async def test_who_comes_back_within_the_grace_keeps_it_and_progress_starts_the_count_anew(cellar: Cellar) -> None:
    run = await cellar.start()
    await cellar.store.lose([await cellar.hold(run)], cellar.now, [cellar.now])
    holding = await cellar.hold(run)
    await cellar.store.lose([holding], cellar.now, [cellar.now + 1_000_000])
    assert (await cellar.renew(holding)).lost == ()
    cellar.clock.advance(s=5)
    assert (await cellar.fire()).lost == ()
    await cellar.done(holding, "a")
    assert (await cellar.run(run)).lost_leases == 0
    assert list(await cellar.store.lose([holding], cellar.now, [cellar.now])) == [("default", "hello")]


async def test_a_lost_stream_of_a_run_to_be_paused_pauses_it(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.pause(holding.run)
    assert await cellar.store.lose([holding], cellar.now, [cellar.now]) == ()
    record = await cellar.run(holding.run)
    assert (record.status, record.problem, record.pause_reason) == (S.PAUSED, None, "wait a little")
    assert not record.pause_requested


# --- cancellation goes before pausing -----------------------------------------------------------------------------------


async def test_a_run_being_cancelled_is_not_paused(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.cancel(holding.run)
    changed = await cellar.pause(holding.run)
    assert (changed.status, changed.changed, changed.holder) == (S.RUNNING, False, None)
    assert not (await cellar.run(holding.run)).pause_requested
    await cellar.do(hand_back(holding))
    assert not (await cellar.pause(holding.run)).changed
    assert (await cellar.run(holding.run)).status == S.PENDING


async def test_quarantined_while_it_cleans_up_it_still_ends_at_its_limit(cellar: Cellar) -> None:
    run = await cellar.start()
    await cellar.hold(run)
    await cellar.cancel(run)
    cellar.clock.advance(us=LEASE_US + 1)
    await cellar.fire(claim_cap=1)
    record = await cellar.run(run)
    assert (record.status, record.cancel_requested) == (S.PAUSED, True)
    assert record.problem is not None
    cellar.clock.advance(us=CLEANUP_US)
    assert [end.run for end in (await cellar.fire()).ended] == [run]
    assert (await cellar.run(run)).status == S.CANCELLED


# --- the reason, and a clean sheet --------------------------------------------------------------------------------------


async def test_the_reason_is_kept_until_it_is_resumed(cellar: Cellar) -> None:
    run = await cellar.start()
    await cellar.pause(run, "the bank is closed")
    await cellar.pause(run, "another reason")
    assert (await cellar.run(run)).pause_reason == "the bank is closed"
    await cellar.resume(run)
    assert (await cellar.run(run)).pause_reason == ""
    holding = await cellar.hold(run)
    await cellar.pause(run, "look at it first")
    assert (await cellar.run(run)).pause_reason == "look at it first"
    await cellar.do(hand_back(holding))
    assert (await cellar.run(run)).pause_reason == "look at it first"
    await cellar.cancel(run)
    assert (await cellar.run(run)).pause_reason == ""


async def test_who_is_paused_waits_for_nothing_else(cellar: Cellar) -> None:
    last = await cellar.asleep(s=60)
    await cellar.pause(last.run)
    record = await cellar.run(last.run)
    assert (record.status, record.wait_reason, record.wake_at) == (S.PAUSED, None, None)
    other = await cellar.running()
    await cellar.pause(other.run)
    the(Parked, await cellar.do(park(other)))  # nothing to wait for: it is paused all the same
    assert (await cellar.run(other.run)).status == S.PAUSED
    the(Parked, await cellar.do(park(other)))  # said again


async def test_an_end_leaves_no_request(cellar: Cellar) -> None:
    for end in (complete_run, fail_run):
        holding = await cellar.running()
        await cellar.pause(holding.run)
        await cellar.do(end(holding))
        assert not (await cellar.run(holding.run)).pause_requested


async def test_a_start_that_was_to_come_later_still_does(cellar: Cellar) -> None:
    run = await cellar.start(start_at=cellar.now + 60_000_000)
    await cellar.pause(run)
    assert (await cellar.resume(run)).status == S.SLEEPING
    record = await cellar.run(run)
    assert (record.wait_reason, record.wake_at) == (WaitReason.TIME, cellar.now + 60_000_000)
    await cellar.pause(run)
    cellar.clock.advance(s=61)
    assert (await cellar.resume(run)).status == S.PENDING


async def test_the_successor_of_a_run_to_be_paused_is_paused(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.pause(holding.run, "look first")
    new = cellar.ids.run_id(cellar.now)
    assert the(RunClosed, await cellar.do(go_on_as(holding, new))).continued_as == new
    record = await cellar.run(RunKey("default", new))
    assert (record.status, record.pause_reason) == (S.PAUSED, "look first")
    assert await cellar.claim() == []
    await cellar.resume(record.run)
    assert (await cellar.claim_one()).run == record.run


async def test_the_holder_of_a_terminated_run_is_told_how_it_ended(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.done(holding, "a")
    await cellar.terminate(holding.run)
    for end in (complete_run, fail_run):
        assert the(RunClosed, await cellar.do(end(holding))).status == S.CANCELLED
    the(Recorded, await cellar.do(complete(holding, "a")))  # a repeat of what was recorded
    the(LeaseLost, await cellar.do(begin(holding, "b")))
    assert (await cellar.run(holding.run)).output is None
