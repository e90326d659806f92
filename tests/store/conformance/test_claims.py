"""A claim hands a run to one worker (P3), the right one first, with all that is needed to go on."""

import asyncio

import pytest

from kagzi.core import limits
from kagzi.core.records import NamespaceRecord, Payload, RunKey
from kagzi.core.retry.policy import NO_RETRY
from kagzi.core.run.outcomes import Begun, Parked, RunClosed, StepFailed
from kagzi.core.states import RunStatus, StepKind, StepStatus

from .verbs import (
    DAY_US,
    LEASE_US,
    STEADY,
    StoreHarness,
    beat,
    begin,
    by_id,
    complete,
    complete_run,
    fail,
    hand_back,
    leased,
    ms,
    park,
    payload,
    sleep,
    stale,
    the,
)


async def test_a_claim_brings_the_run_and_the_proof_of_holding_it(harness: StoreHarness) -> None:
    run = await harness.start(
        "order-1",
        input=payload("in"),
        context=Payload(b"ctx", {"k": "v"}),
        labels={"team": "a"},
        deadline_at=harness.now + DAY_US,
    )
    created_at = harness.now
    harness.clock.advance(us=7)
    nonce = (1 << 63) - 1
    (claimed,) = (
        await harness.store.claim([harness.want(versions=("5", "4"))], nonce, harness.now, harness.now + LEASE_US)
    ).runs
    assert (claimed.run, claimed.workflow_id, claimed.workflow_type) == (run, "order-1", "hello")
    assert (claimed.lease.counter, claimed.lease.nonce, claimed.worker_id) == (1, nonce, "worker-1")
    assert (claimed.version, claimed.attempt, claimed.last_seq) == ("5", 1, 0)
    assert (claimed.input, claimed.context) == (payload("in"), Payload(b"ctx", {"k": "v"}))
    assert (claimed.labels, claimed.deadline_at) == ({"team": "a"}, created_at + DAY_US)
    assert (claimed.created_at, claimed.claimed_at) == (created_at, harness.now)
    assert (claimed.cancel_requested, claimed.cancel_reason, claimed.parent_run_id) == (False, "", None)
    assert (claimed.history.steps, claimed.history.has_more) == ((), False)
    record = await harness.run(run)
    assert (record.status, record.worker_id, record.version) == (RunStatus.RUNNING, "worker-1", "5")
    assert record.started_at == harness.now


async def test_every_claim_raises_the_counter_and_brings_its_own_nonce(harness: StoreHarness) -> None:
    run = await harness.start()
    seen = []
    for counter in range(1, 5):
        claimed = await harness.claim_one()
        assert (claimed.run, claimed.lease.counter) == (run, counter)
        seen.append(claimed.lease.nonce)
        await harness.do(hand_back(leased(claimed)))
        harness.clock.advance(s=1)
    assert len(set(seen)) == 4
    first_claim = harness.now - 4_000_000
    assert (await harness.run(run)).started_at == first_claim


async def test_many_claimers_never_share_a_run(harness: StoreHarness, second_harness: StoreHarness) -> None:
    runs = set(await harness.start_many(120))
    taken: list[RunKey] = []
    for _ in range(20):
        rounds = await asyncio.gather(
            *((harness, second_harness)[n % 2].claim(limit=7, worker_id=f"worker-{n}") for n in range(8))
        )
        for number, claimed in enumerate(rounds):
            assert len(claimed) <= 7
            assert {one.worker_id for one in claimed} <= {f"worker-{number}"}
            taken.extend(one.run for one in claimed)
        if len(taken) >= len(runs):
            break
    assert len(taken) == len(set(taken)), "a run was handed out twice"
    assert set(taken) == runs


async def test_the_highest_priority_goes_first_then_the_longest_ready(harness: StoreHarness) -> None:
    order = {}
    for name, priority in [("low", -5), ("first", 0), ("second", 0), ("high", 9), ("third", 0)]:
        order[await harness.start(name, priority=priority)] = name
        harness.clock.advance(us=1)
    claimed = [order[(await harness.claim_one()).run] for _ in order]
    assert claimed == ["high", "first", "second", "third", "low"]


async def test_ready_counts_from_when_a_run_became_pending_not_from_when_it_was_made(harness: StoreHarness) -> None:
    old = await harness.running(workflow_id="old")
    harness.clock.advance(s=1)
    young = await harness.start("young")
    harness.clock.advance(s=1)
    await harness.do(hand_back(old))
    assert [(await harness.claim_one()).run for _ in range(2)] == [young, old.run]


async def test_a_pinned_run_goes_only_to_a_worker_that_has_its_version(harness: StoreHarness) -> None:
    run = await harness.start(version="2")
    assert await harness.claim(versions=("1", "3")) == []
    claimed = await harness.claim_one(versions=("3", "2"))
    assert (claimed.run, claimed.version) == (run, "2")


async def test_an_unpinned_run_is_pinned_to_the_first_version_and_stays_so(harness: StoreHarness) -> None:
    run = await harness.start()
    claimed = await harness.claim_one(versions=("2", "1"))
    assert claimed.version == "2"
    await harness.do(hand_back(leased(claimed)))
    assert (await harness.run(run)).version == "2"
    assert await harness.claim(versions=("1",)) == []
    assert (await harness.claim_one(versions=("1", "2"))).version == "2"


async def test_a_run_past_its_deadline_is_not_handed_out(harness: StoreHarness) -> None:
    await harness.start("late", deadline_at=harness.now + 1_000)
    in_time = await harness.start("in time", deadline_at=harness.now + 1_001)
    harness.clock.advance(us=1_000)
    assert [one.run for one in await harness.claim()] == [in_time]


async def test_nobody_gets_more_than_his_free_slots(harness: StoreHarness) -> None:
    await harness.start_many(10, workflow_type="a")
    await harness.start_many(2, workflow_type="b")
    claimed = await harness.claim(
        harness.want("a", limit=2, worker_id="one"),
        harness.want("a", limit=3, worker_id="two"),
        harness.want("b", limit=5, worker_id="two"),
        harness.want("c", limit=5, worker_id="two"),
        harness.want("a", limit=0, worker_id="three"),
    )
    got = sorted((one.worker_id, one.workflow_type) for one in claimed)
    assert got == [("one", "a")] * 2 + [("two", "a")] * 3 + [("two", "b")] * 2


async def test_a_worker_is_offered_all_of_its_types(harness: StoreHarness) -> None:
    # Once a worker polled only its first type; runs of its others never started.
    types = [f"type-{n}" for n in range(12)]
    for workflow_type in types:
        await harness.start(workflow_type=workflow_type)
    claimed = await harness.claim(*(harness.want(workflow_type) for workflow_type in types))
    assert sorted(one.workflow_type for one in claimed) == sorted(types)


async def test_nobody_gets_what_he_did_not_ask_for(harness: StoreHarness) -> None:
    await harness.start(workflow_type="other")
    await harness.start(namespace="elsewhere")
    await harness.start(start_at=harness.now + 1)
    assert await harness.claim() == []
    assert list((await harness.claimed()).runs) == []


async def test_running_runs_are_limited_per_namespace(harness: StoreHarness) -> None:
    await harness.store.put_namespace(NamespaceRecord(namespace="small", running_runs_limit=2), harness.now)
    await harness.start_many(3, workflow_type="a", namespace="small")
    await harness.start_many(3, workflow_type="b", namespace="small")
    await harness.start_many(5)
    wants = [harness.want("a", namespace="small"), harness.want("b", namespace="small"), harness.want()]
    claimed = await harness.claim(*wants)
    assert sum(one.run.namespace == "small" for one in claimed) == 2
    assert sum(one.run.namespace == "default" for one in claimed) == 5
    assert await harness.claim(*wants) == []
    ended = next(one for one in claimed if one.run.namespace == "small")
    the(RunClosed, await harness.do(complete_run(leased(ended))))
    assert len(await harness.claim(*wants)) == 1


async def test_the_history_comes_with_the_claim(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.done(old, "charge", "42")
    final = await harness.write(begin(old, "ship", retry=NO_RETRY), fail(old, "ship"))
    retried = await harness.write(begin(old, "mail", retry=STEADY), fail(old, "mail"))
    open_step, timer = await harness.write(begin(old, "print"), sleep(old, "nap", s=3_600))
    failed_at = harness.now
    new = await harness.take_over(old)
    await harness.do(hand_back(new))
    claimed = await harness.claim_one()

    assert claimed.lease.counter == 3
    steps = by_id(claimed.history.steps)
    assert list(steps) == ["charge", "ship", "mail", "print", "nap"], "in the order in which they were begun"
    assert not claimed.history.has_more
    charge, ship, mail, printing, nap = steps.values()

    assert (charge.kind, charge.status, charge.output) == (StepKind.FUNCTION, StepStatus.COMPLETED, payload("42"))
    assert 0 < charge.begun_seq < charge.seq <= claimed.last_seq
    assert charge.at == failed_at
    assert (ship.status, ship.attempt) == (StepStatus.FAILED, 1)
    assert ship.error == the(StepFailed, final[1]).error
    assert ship.seq > charge.seq
    assert (mail.status, mail.attempt, mail.seq) == (StepStatus.PENDING, 2, 0)
    assert mail.retry_at == retried[1].retry_at == failed_at + ms(10_000)  # type: ignore[union-attr]
    assert (printing.status, printing.attempt, printing.seq) == (StepStatus.RUNNING, 1, 0)
    assert printing.begun_seq == the(Begun, open_step).seq
    assert (nap.kind, nap.status, nap.wake_at) == (StepKind.SLEEP, StepStatus.RUNNING, failed_at + 3_600_000_000)
    assert nap.begun_seq == timer.seq  # type: ignore[union-attr]


async def test_a_result_recorded_just_before_the_lease_was_lost_is_in_the_next_history(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    # A claim that locks the new row but reads an old snapshot hands out a history without the last result.
    for round_number in range(15):
        holding = await harness.running(workflow_id=f"run-{round_number}")
        await harness.do(begin(holding, "charge"))
        both = complete(holding, "charge"), hand_back(holding)
        (recorded, _), *claims = await asyncio.gather(
            harness.write(*both), *(second_harness.claim(limit=1) for _ in range(4))
        )
        claimed = [one for batch in claims for one in batch] or await second_harness.claim(limit=1)
        (one,) = claimed
        assert by_id(one.history.steps)["charge"].status == StepStatus.COMPLETED
        assert by_id(one.history.steps)["charge"].seq == recorded.seq  # type: ignore[union-attr]
        await second_harness.do(complete_run(leased(one)))


async def test_a_claim_reports_a_cancellation(harness: StoreHarness) -> None:
    sleeper = await harness.asleep()
    await harness.cancel(sleeper.run, "changed my mind")
    claimed = await harness.claim_one()
    assert (claimed.run, claimed.cancel_requested, claimed.cancel_reason) == (sleeper.run, True, "changed my mind")


@pytest.mark.parametrize("step_bytes", [100_000, limits.HISTORY_PAGE_BYTES + 1])
async def test_a_long_history_comes_in_pages(harness: StoreHarness, step_bytes: int) -> None:
    holding = await harness.running()
    names = [f"step-{n}" for n in range(7)]
    for name in names:
        await harness.done(holding, name, "x" * step_bytes)
    await harness.do(hand_back(holding))
    claimed = await harness.claim_one()

    page, seen, pages = claimed.history, [], 0
    while True:
        pages += 1
        assert page.steps, "a page holds at least one step"
        size = sum(len(step.output.data) for step in page.steps if step.output)
        assert size <= limits.HISTORY_PAGE_BYTES or len(page.steps) == 1
        seen.extend(page.steps)
        if not page.has_more:
            break
        assert page.next_after == page.steps[-1].begun_seq
        following = await harness.store.history(claimed.run, claimed.lease, page.next_after)
        assert following is not None
        page = following
    assert [step.step_id for step in seen] == names
    assert pages >= 3
    assert claimed.last_seq >= max(step.seq for step in seen)


async def test_a_history_of_many_small_steps_is_whole(harness: StoreHarness) -> None:
    holding = await harness.running()
    names = [f"step-{n}" for n in range(500)]
    await harness.write(*(command for name in names for command in (begin(holding, name), complete(holding, name))))
    await harness.do(hand_back(holding))
    claimed = await harness.claim_one()
    steps = list(claimed.history.steps)
    while claimed.history.has_more and len(steps) < 500:
        page = await harness.store.history(claimed.run, claimed.lease, steps[-1].begun_seq)
        assert page is not None
        steps.extend(page.steps)
    assert [step.step_id for step in steps] == names


async def test_what_is_known_of_a_history_comes_without_payloads(harness: StoreHarness) -> None:
    holding = await harness.running()
    large = "x" * (limits.HISTORY_PAGE_BYTES + 1)
    known = [await harness.done(holding, f"known-{n}", large) for n in range(4)]
    await harness.write(begin(holding, "failed", retry=NO_RETRY), fail(holding, "failed"))
    new = await harness.done(holding, "new", "small")
    await harness.write(begin(holding, "open"), beat(holding, "open", "half"))

    page = await harness.store.history(holding.run, holding.lease, 0, new.seq - 1)
    assert page is not None
    assert not page.has_more, "a page is as full as what it holds is large"
    steps = by_id(page.steps)
    assert [steps[f"known-{n}"].seq for n in range(4)] == [recorded.seq for recorded in known]
    for step_id in (*(f"known-{n}" for n in range(4)), "failed"):
        step = steps[step_id]
        assert (step.output, step.error, step.details) == (None, None, None)
        assert step.seq
        assert step.at
    assert steps["failed"].status is StepStatus.FAILED
    assert steps["new"].output == payload("small")
    assert steps["open"].details == payload("half"), "what has no result is never known"

    after = await harness.store.history(holding.run, holding.lease, steps["known-2"].begun_seq, new.seq - 1)
    assert after is not None
    assert [step.step_id for step in after.steps] == ["known-3", "failed", "new", "open"]
    all_known = await harness.store.history(holding.run, holding.lease, 0, (1 << 63) - 1)
    assert all_known is not None
    assert by_id(all_known.steps)["new"].output is None


async def test_history_is_for_the_holder_only(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    store = harness.store
    page = await store.history(holding.run, holding.lease, 0)
    assert page is not None
    assert [step.step_id for step in page.steps] == ["a"]
    assert await store.history(holding.run, stale(holding).lease, 0) is None
    assert await store.history(RunKey("elsewhere", holding.run.run_id), holding.lease, 0) is None
    await harness.do(complete_run(holding))
    assert await store.history(holding.run, holding.lease, 0) is None


async def test_a_parked_run_cannot_be_claimed(harness: StoreHarness) -> None:
    holding = await harness.running()
    _, parked = await harness.write(sleep(holding, "nap", s=60), park(holding, "nap"))
    the(Parked, parked)
    assert await harness.claim() == []


async def test_an_ended_run_cannot_be_claimed(harness: StoreHarness) -> None:
    await harness.do(complete_run(await harness.running()))
    failed = await harness.running()
    await harness.write(begin(failed, "a"), complete_run(failed))
    assert await harness.claim() == []


async def test_attempts_count_failures_of_the_function_not_claims(harness: StoreHarness) -> None:
    holding = await harness.running()
    for _ in range(3):
        holding = await harness.take_over(holding)
    record = await harness.run(holding.run)
    assert (record.attempt, record.lost_leases) == (1, 3)
