"""An attempt whose worker is lost stays visible: when its lease ends it is kept, with the worker and the time, and has
its event."""

from kagzi.core.events import EventKind
from kagzi.core.limits import LOST_ATTEMPT_NUMBERS
from kagzi.core.records import RunKey, StepRecord
from kagzi.core.run.outcomes import Begun, LeaseLost, Recorded, RetryScheduled

from .verbs import LEASE_US, StoreHarness, begin, complete, fail, hand_back, the


async def step_of(harness: StoreHarness, run: RunKey, step_id: str) -> StepRecord:
    step = await harness.store.get_step(run, step_id)
    assert step is not None
    rows = await harness.store.list_steps(run, name=None, after_begun_seq=0, limit=100, payloads=False)
    assert rows is not None
    assert [each.attempts for each in rows.rows if each.step_id == step_id] == [step.attempts]
    return step


async def events_of_step(harness: StoreHarness, run: RunKey, step_id: str) -> list[tuple[str, int]]:
    page = await harness.store.events_of(run, 0, 1_000)
    assert page is not None
    seqs = [event.seq for event in page.events]
    assert seqs == sorted(set(seqs)), "one number, one event"
    assert max(seqs) <= page.mark.seq
    return [(event.kind.value, event.attempt) for event in page.events if event.step_id == step_id]


async def test_it_is_kept_when_its_lease_expires_and_does_not_count(harness: StoreHarness) -> None:
    """It was overwritten by the next begin: the step was started twice, and nothing said why."""
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "charge")))
    the(Begun, await harness.do(begin(holding, "done")))
    the(Recorded, await harness.do(complete(holding, "done")))
    harness.clock.advance(us=LEASE_US)
    lost_at = harness.now
    assert (await harness.fire()).lost == (holding,)

    step = await step_of(harness, holding.run, "charge")
    [lost] = step.attempts
    assert (lost.attempt, lost.worker_id, lost.finished_at, lost.lost) == (1, "worker-1", lost_at, True)
    assert step.attempt == 1  # a lost worker is not a failed attempt
    assert await events_of_step(harness, holding.run, "charge") == [("step_started", 1), ("step_lost", 1)]
    assert await events_of_step(harness, holding.run, "done") == [("step_started", 1), ("step_completed", 1)]

    again = await harness.hold(holding.run, worker_id="worker-2")
    the(Begun, await harness.do(begin(again, "charge")))
    the(RetryScheduled, await harness.do(fail(again, "charge")))
    harness.clock.advance(s=120)
    the(Begun, await harness.do(begin(again, "charge", attempt=2)))
    the(Recorded, await harness.do(complete(again, "charge", attempt=2)))
    assert await events_of_step(harness, holding.run, "charge") == [
        ("step_started", 1),
        ("step_lost", 1),
        ("step_started", 1),
        ("step_retrying", 1),
        ("step_started", 2),
        ("step_completed", 2),
    ]
    step = await step_of(harness, holding.run, "charge")
    assert [(each.attempt, each.lost) for each in step.attempts] == [(1, True), (1, False)]


async def test_every_attempt_says_under_which_claim_it_was_begun(harness: StoreHarness) -> None:
    """Lost and repeated, they have the same number: traces tell them apart by the claim."""
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "charge")))
    harness.clock.advance(us=LEASE_US)
    await harness.fire()
    again = await harness.hold(holding.run, worker_id="worker-2")
    the(Begun, await harness.do(begin(again, "charge")))
    the(RetryScheduled, await harness.do(fail(again, "charge")))
    harness.clock.advance(s=120)
    the(Begun, await harness.do(begin(again, "charge", attempt=2)))
    the(Recorded, await harness.do(complete(again, "charge", attempt=2)))
    step = await step_of(harness, holding.run, "charge")
    first, second = holding.lease.counter, again.lease.counter
    assert first < second
    assert [each.claim for each in step.attempts] == [first, second]
    assert step.claim == second
    run = await harness.store.get_run(holding.run.namespace, run_id=holding.run.run_id)
    assert run is not None
    assert run.claims == second


async def test_its_event_says_when_and_until_nothing(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "charge")))
    harness.clock.advance(us=LEASE_US)
    await harness.fire()
    page = await harness.store.events_of(holding.run, 0, 100)
    assert page is not None
    event = page.events[-1]
    assert (event.kind, event.at, event.until) == (EventKind.STEP_LOST, harness.now, None)
    assert event.error is not None
    assert "worker was lost" in event.error.message


async def test_what_may_run_once_and_what_was_handed_back_are_not_lost(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "once", once=True)))
    the(Begun, await harness.do(begin(holding, "charge")))
    await harness.do(hand_back(holding))
    again = await harness.hold(holding.run)
    harness.clock.advance(us=LEASE_US)
    assert (await harness.fire()).lost == (again,)  # it had begun nothing
    for step_id in ("once", "charge"):
        assert (await step_of(harness, holding.run, step_id)).attempts == ()


async def test_its_holder_gets_no_answer_from_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "charge")))
    harness.clock.advance(us=LEASE_US)
    await harness.fire()
    for command in (begin(holding, "charge"), fail(holding, "charge"), complete(holding, "charge")):
        the(LeaseLost, await harness.do(command))
    again = await harness.hold(holding.run, worker_id="worker-2")
    for command in (begin(holding, "charge"), begin(holding, "charge", attempt=0), fail(holding, "charge")):
        the(LeaseLost, await harness.do(command))
    the(Begun, await harness.do(begin(again, "charge")))


async def test_holder_after_holder_each_attempt_is_reported(harness: StoreHarness) -> None:
    holding = await harness.running()
    for _ in range(3):
        for step_id in ("a", "b"):
            the(Begun, await harness.do(begin(holding, step_id)))
        harness.clock.advance(us=LEASE_US)
        assert (await harness.fire()).lost == (holding,)
        holding = await harness.hold(holding.run)
    for step_id in ("a", "b"):
        assert await events_of_step(harness, holding.run, step_id) == [("step_started", 1), ("step_lost", 1)] * 3
        assert len((await step_of(harness, holding.run, step_id)).attempts) == 3


async def test_of_a_long_history_the_last_numbers_are_searched(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "early")))
    for first in range(0, LOST_ATTEMPT_NUMBERS // 2, 50):
        names = [f"s{number}" for number in range(first, first + 50)]
        await harness.write(*(command for name in names for command in (begin(holding, name), complete(holding, name))))
    the(Begun, await harness.do(begin(holding, "late")))
    harness.clock.advance(us=LEASE_US)
    await harness.fire()
    for step_id, count in (("early", 0), ("late", 1)):
        step = await harness.store.get_step(holding.run, step_id)
        assert step is not None
        assert len(step.attempts) == count, step_id


async def test_who_reports_it_without_beginning_it_again_leaves_both_records(harness: StoreHarness) -> None:
    """The next holder takes the attempt over and says how it ended: that is an attempt of its own, beside the lost
    one."""
    old = await harness.running()
    the(Begun, await harness.do(begin(old, "charge")))
    new = await harness.take_over(old)
    the(RetryScheduled, await harness.do(fail(new, "charge")))
    step = await step_of(harness, old.run, "charge")
    assert [(each.attempt, each.lost, each.worker_id) for each in step.attempts] == [
        (1, True, "worker-1"),
        (1, False, "worker-2"),
    ]
    assert await events_of_step(harness, old.run, "charge") == [
        ("step_started", 1),
        ("step_lost", 1),
        ("step_started", 1),
        ("step_retrying", 1),
    ]
