"""Pause: what is in flight is recorded, nothing begins, nobody claims; signals and timers take effect on resume."""

import pytest

from kagzi.core.errors import ErrorCode, ErrorKind
from kagzi.core.outcomes import Begun, Known, Parked, Recorded, RunClosed, TimerSet
from kagzi.core.states import RunStatus, StepStatus

from .invariants import check_invariants
from .verbs import (
    DAY_US,
    LEASE_US,
    Cellar,
    begin,
    by_id,
    complete,
    complete_run,
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
    return (await cellar.run(claimed.run)).status


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
