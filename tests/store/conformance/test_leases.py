"""A lease is set, never added to; it ends when nobody renews it, and only then is the run somebody else's."""

import pytest

from kagzi.core.records import RunLease
from kagzi.core.run.outcomes import Begun, LeaseLost, Recorded
from kagzi.core.states import RunStatus
from kagzi.store.protocol import LeaseTerms

from .verbs import LEASE_US, StoreHarness, begin, complete, hand_back, stale, the


async def lease_end(harness: StoreHarness) -> int | None:
    """With one run in hand and no deadline, the next thing due is the end of its lease."""
    return (await harness.poll()).next_due_at


async def test_an_hour_of_heartbeats_does_not_lengthen_the_lease(harness: StoreHarness) -> None:
    # Once every heartbeat added 45 s to a lease still in the future: a crash was noticed 3.5 h late.
    holding = await harness.running()
    for _ in range(720):
        harness.clock.advance(s=5)
        await harness.renew(holding)
    for _ in range(10):
        await harness.renew(holding)
    until = harness.now + LEASE_US
    assert await lease_end(harness) == until
    harness.clock.set(until - 1)
    assert (await harness.fire()).lost == ()
    harness.clock.set(until)
    assert (await harness.fire()).lost == (holding,)


async def test_a_lease_expires_only_when_requested(harness: StoreHarness) -> None:
    # After a store outage nobody ends leases for a while, so that live holders can renew theirs.
    holding = await harness.running()
    harness.clock.advance(us=LEASE_US + 1)
    fired = await harness.fire(end_leases=False)
    assert (fired.lost, fired.pending) == ((), ())
    assert (await harness.run(holding.run)).status == RunStatus.RUNNING
    assert (await harness.renew(holding)).lost == ()
    assert (await harness.fire()).lost == ()


async def test_a_lost_lease_is_counted_and_the_run_is_pending(harness: StoreHarness) -> None:
    holding = await harness.running()
    harness.clock.advance(us=LEASE_US)
    fired = await harness.fire()
    assert (fired.lost, fired.pending, fired.ended) == ((holding,), (("default", "hello"),), ())
    record = await harness.run(holding.run)
    assert (record.status, record.lost_leases, record.worker_id) == (RunStatus.PENDING, 1, None)
    assert (await harness.renew(holding)).lost == (holding,)


async def test_a_lease_that_ran_out_is_good_until_it_is_taken(harness: StoreHarness) -> None:
    holding = await harness.running()
    harness.clock.advance(us=2 * LEASE_US)
    the(Begun, await harness.do(begin(holding, "a")))
    assert (await harness.fire()).lost == (), "the accepted write renewed it"


async def test_an_accepted_write_renews_a_lease_of_which_half_is_gone(harness: StoreHarness) -> None:
    holding = await harness.running()
    began = harness.now
    harness.clock.advance(us=LEASE_US // 2 - 1)
    await harness.do(begin(holding, "a"))
    assert await lease_end(harness) == began + LEASE_US, "more than half is left"
    harness.clock.advance(us=10)
    await harness.do(complete(holding, "a"))
    assert await lease_end(harness) == harness.now + LEASE_US


async def test_the_terms_of_the_write_decide(harness: StoreHarness) -> None:
    holding = await harness.running()
    until = harness.now + 3 * LEASE_US
    await harness.write(begin(holding, "a"), terms=LeaseTerms(until=until, renew_before=harness.now + LEASE_US + 1))
    assert await lease_end(harness) == until


async def test_a_refused_write_renews_nothing(harness: StoreHarness) -> None:
    holding = await harness.running()
    began = harness.now
    harness.clock.advance(us=LEASE_US - 1)
    await harness.write(begin(stale(holding), "a"))
    assert await lease_end(harness) == began + LEASE_US


async def test_many_are_renewed_at_once_and_the_lost_are_named(harness: StoreHarness) -> None:
    runs = await harness.start_many(20)
    leases = [RunLease(one.run, one.lease) for one in await harness.claim()]
    assert len(leases) == len(runs)
    await harness.store.release(leases[:3], harness.now)
    harness.clock.advance(s=10)
    renewal = await harness.renew(*leases)
    assert set(renewal.lost) == set(leases[:3])
    harness.clock.advance(s=10)
    assert (await harness.fire()).lost == ()
    assert (await harness.renew()).lost == ()


async def test_a_closed_session_cuts_its_leases_to_the_grace(harness: StoreHarness) -> None:
    holding = await harness.running()
    grace = harness.now + 3_000_000
    await harness.store.shorten_leases([holding], grace)
    assert await lease_end(harness) == grace
    harness.clock.set(grace)
    assert (await harness.fire()).lost == (holding,)


async def test_shortening_never_lengthens_a_lease(harness: StoreHarness) -> None:
    holding = await harness.running()
    until = harness.now + LEASE_US
    await harness.store.shorten_leases([holding], until + 1)
    assert await lease_end(harness) == until


async def test_a_holder_that_reconnects_within_the_grace_keeps_its_run(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.store.shorten_leases([holding], harness.now + 3_000_000)
    harness.clock.advance(s=2)
    assert (await harness.renew(holding)).lost == ()
    harness.clock.advance(s=5)
    assert (await harness.fire()).lost == ()
    the(Begun, await harness.do(begin(holding, "a")))


@pytest.mark.parametrize("way", ["verb", "command"])
async def test_a_run_handed_back_is_pending_at_once_and_uncounted(harness: StoreHarness, way: str) -> None:
    holding = await harness.running()
    await harness.done(holding, "a", "kept")
    harness.clock.advance(us=5)
    if way == "verb":
        effects = await harness.store.release([holding], harness.now)
        assert effects.pending == effects.released == (("default", "hello"),)
    else:
        await harness.do(hand_back(holding))
    record = await harness.run(holding.run)
    assert (record.status, record.lost_leases, record.attempt, record.worker_id) == (RunStatus.PENDING, 0, 1, None)
    claimed = await harness.claim_one()
    assert (claimed.run, claimed.lease.counter) == (holding.run, 2)
    assert [step.step_id for step in claimed.history.steps] == ["a"]


async def test_every_type_of_released_runs_is_returned_once(harness: StoreHarness) -> None:
    holdings = [await harness.running(workflow_type=name) for name in ("a", "b", "a")]
    woken = (await harness.store.release(holdings, harness.now)).pending
    assert sorted(woken) == [("default", "a"), ("default", "b")]


async def test_a_step_survives_the_loss_of_its_workers_lease(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.done(old, "a", "done")
    new = await harness.take_over(old)
    newer = await harness.take_over(new)
    assert newer.lease.counter == 3
    the(Recorded, (await harness.write(begin(newer, "b"), complete(newer, "b")))[1])
    assert set(await harness.steps(old.run)) == {"a", "b"}


async def test_the_leases_of_a_worker_that_died_end_at_once_and_are_counted(harness: StoreHarness) -> None:
    """Also where no lease may end, because live holders are to get the chance to renew theirs."""
    await harness.register("worker-1")
    holding = await harness.running()
    record = await harness.run(holding.run)
    assert record.worker_id is not None
    other = await harness.store.worker_died("elsewhere", record.worker_id, harness.now)
    assert other == 0  # of another namespace
    assert await harness.store.worker_died("default", "nobody", harness.now) == 0
    assert (await harness.fire(end_leases=False)).lost == ()
    assert await harness.store.worker_died("default", record.worker_id, harness.now) == 1
    assert (await harness.poll()).next_due_at == 0
    fired = await harness.fire(end_leases=False)
    assert (fired.lost, fired.pending) == ((holding,), (("default", "hello"),))
    record = await harness.run(holding.run)
    assert (record.status, record.lost_leases) == (RunStatus.PENDING, 1)
    the(LeaseLost, await harness.do(complete(holding, "a")))  # whatever it may still say
    assert await harness.store.worker_died("default", "worker-1", harness.now) == 0
