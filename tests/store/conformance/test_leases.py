"""A lease is set, never added to; it ends when nobody renews it, and only then is the run somebody else's."""

import pytest

from kagzi.core.records import Held
from kagzi.core.run.outcomes import Begun, LeaseLost, Recorded
from kagzi.core.states import RunStatus
from kagzi.store.protocol import LeaseTerms

from .verbs import LEASE_US, Cellar, begin, complete, hand_back, stale, the


async def lease_end(cellar: Cellar) -> int | None:
    """With one run in hand and no deadline, the next thing due is the end of its lease."""
    return (await cellar.look()).next_due_at


async def test_an_hour_of_heartbeats_does_not_lengthen_the_lease(cellar: Cellar) -> None:
    # Once every heartbeat added 45 s to a lease still in the future: a crash was noticed 3.5 h late.
    holding = await cellar.running()
    for _ in range(720):
        cellar.clock.advance(s=5)
        await cellar.renew(holding)
    for _ in range(10):
        await cellar.renew(holding)
    until = cellar.now + LEASE_US
    assert await lease_end(cellar) == until
    cellar.clock.set(until - 1)
    assert (await cellar.fire()).lost == ()
    cellar.clock.set(until)
    assert (await cellar.fire()).lost == (holding,)


async def test_a_lease_ends_only_where_that_is_asked_for(cellar: Cellar) -> None:
    # After a store outage nobody ends leases for a while, so that live holders can renew theirs.
    holding = await cellar.running()
    cellar.clock.advance(us=LEASE_US + 1)
    fired = await cellar.fire(end_leases=False)
    assert (fired.lost, fired.woken) == ((), ())
    assert (await cellar.run(holding.run)).status == RunStatus.RUNNING
    assert (await cellar.renew(holding)).lost == ()
    assert (await cellar.fire()).lost == ()


async def test_a_lost_lease_is_counted_and_the_run_is_pending(cellar: Cellar) -> None:
    holding = await cellar.running()
    cellar.clock.advance(us=LEASE_US)
    fired = await cellar.fire()
    assert (fired.lost, fired.woken, fired.ended) == ((holding,), (("default", "hello"),), ())
    record = await cellar.run(holding.run)
    assert (record.status, record.lost_leases, record.worker_id) == (RunStatus.PENDING, 1, None)
    assert (await cellar.renew(holding)).lost == (holding,)


async def test_a_lease_that_ran_out_is_good_until_it_is_taken(cellar: Cellar) -> None:
    holding = await cellar.running()
    cellar.clock.advance(us=2 * LEASE_US)
    the(Begun, await cellar.do(begin(holding, "a")))
    assert (await cellar.fire()).lost == (), "the accepted write renewed it"


async def test_an_accepted_write_renews_a_lease_of_which_half_is_gone(cellar: Cellar) -> None:
    holding = await cellar.running()
    began = cellar.now
    cellar.clock.advance(us=LEASE_US // 2 - 1)
    await cellar.do(begin(holding, "a"))
    assert await lease_end(cellar) == began + LEASE_US, "more than half is left"
    cellar.clock.advance(us=10)
    await cellar.do(complete(holding, "a"))
    assert await lease_end(cellar) == cellar.now + LEASE_US


async def test_the_terms_of_the_write_decide(cellar: Cellar) -> None:
    holding = await cellar.running()
    until = cellar.now + 3 * LEASE_US
    await cellar.write(begin(holding, "a"), terms=LeaseTerms(until=until, renew_before=cellar.now + LEASE_US + 1))
    assert await lease_end(cellar) == until


async def test_a_refused_write_renews_nothing(cellar: Cellar) -> None:
    holding = await cellar.running()
    began = cellar.now
    cellar.clock.advance(us=LEASE_US - 1)
    await cellar.write(begin(stale(holding), "a"))
    assert await lease_end(cellar) == began + LEASE_US


async def test_many_are_renewed_at_once_and_the_lost_are_named(cellar: Cellar) -> None:
    runs = await cellar.start_many(20)
    held_runs = [Held(one.run, one.lease) for one in await cellar.claim()]
    assert len(held_runs) == len(runs)
    await cellar.store.release(held_runs[:3], cellar.now)
    cellar.clock.advance(s=10)
    renewal = await cellar.renew(*held_runs)
    assert set(renewal.lost) == set(held_runs[:3])
    cellar.clock.advance(s=10)
    assert (await cellar.fire()).lost == ()
    assert (await cellar.renew()).lost == ()


async def test_a_closed_session_cuts_its_leases_to_the_grace(cellar: Cellar) -> None:
    holding = await cellar.running()
    grace = cellar.now + 3_000_000
    await cellar.store.cut([holding], grace)
    assert await lease_end(cellar) == grace
    cellar.clock.set(grace)
    assert (await cellar.fire()).lost == (holding,)


async def test_a_cut_never_lengthens_a_lease(cellar: Cellar) -> None:
    holding = await cellar.running()
    until = cellar.now + LEASE_US
    await cellar.store.cut([holding], until + 1)
    assert await lease_end(cellar) == until


async def test_a_holder_that_reconnects_within_the_grace_keeps_its_run(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.store.cut([holding], cellar.now + 3_000_000)
    cellar.clock.advance(s=2)
    assert (await cellar.renew(holding)).lost == ()
    cellar.clock.advance(s=5)
    assert (await cellar.fire()).lost == ()
    the(Begun, await cellar.do(begin(holding, "a")))


@pytest.mark.parametrize("way", ["verb", "command"])
async def test_a_run_handed_back_is_pending_at_once_and_uncounted(cellar: Cellar, way: str) -> None:
    holding = await cellar.running()
    await cellar.done(holding, "a", "kept")
    cellar.clock.advance(us=5)
    if way == "verb":
        assert list(await cellar.store.release([holding], cellar.now)) == [("default", "hello")]
    else:
        await cellar.do(hand_back(holding))
    record = await cellar.run(holding.run)
    assert (record.status, record.lost_leases, record.attempt, record.worker_id) == (RunStatus.PENDING, 0, 1, None)
    claimed = await cellar.claim_one()
    assert (claimed.run, claimed.lease.counter) == (holding.run, 2)
    assert [step.step_id for step in claimed.history.steps] == ["a"]


async def test_every_type_that_was_handed_back_is_told_once(cellar: Cellar) -> None:
    holdings = [await cellar.running(workflow_type=name) for name in ("a", "b", "a")]
    woken = await cellar.store.release(holdings, cellar.now)
    assert sorted(woken) == [("default", "a"), ("default", "b")]


async def test_a_step_survives_the_loss_of_its_workers_lease(cellar: Cellar) -> None:
    old = await cellar.running()
    await cellar.done(old, "a", "done")
    new = await cellar.take_over(old)
    newer = await cellar.take_over(new)
    assert newer.lease.counter == 3
    the(Recorded, (await cellar.write(begin(newer, "b"), complete(newer, "b")))[1])
    assert set(await cellar.steps(old.run)) == {"a", "b"}


async def test_the_leases_of_a_worker_that_died_end_at_once_and_are_counted(cellar: Cellar) -> None:
    """Also where no lease may end, because live holders are to get the chance to renew theirs."""
    await cellar.register("worker-1")
    holding = await cellar.running()
    record = await cellar.run(holding.run)
    assert record.worker_id is not None
    other = await cellar.store.worker_died("elsewhere", record.worker_id, cellar.now)
    assert other == 0  # of another namespace
    assert await cellar.store.worker_died("default", "nobody", cellar.now) == 0
    assert (await cellar.fire(end_leases=False)).lost == ()
    assert await cellar.store.worker_died("default", record.worker_id, cellar.now) == 1
    assert (await cellar.look()).next_due_at == 0
    fired = await cellar.fire(end_leases=False)
    assert (fired.lost, fired.woken) == ((holding,), (("default", "hello"),))
    record = await cellar.run(holding.run)
    assert (record.status, record.lost_leases) == (RunStatus.PENDING, 1)
    the(LeaseLost, await cellar.do(complete(holding, "a")))  # whatever it may still say
    assert await cellar.store.worker_died("default", "worker-1", cellar.now) == 0
