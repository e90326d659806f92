"""A retry, a sleep or a start that was to come later can be made due now. The history says so, nothing of its past
changes, and a request that comes twice wakes once."""

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.events import EventKind, RunEvent
from kagzi.core.records import RunKey
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.outcomes import (
    Begun,
    DueRetry,
    Fetched,
    NotParked,
    Parked,
    Recorded,
    Refused,
    RetryScheduled,
    RunClosed,
    TimerSet,
)
from kagzi.core.run.wakes import Wake, Woken
from kagzi.core.states import RunStatus, StepStatus
from kagzi.core.times import US_PER_S

from .verbs import (
    StoreHarness,
    begin,
    by_id,
    complete,
    complete_run,
    fail,
    fail_run,
    fetch,
    finish,
    leased,
    notified_of_result,
    park,
    refused,
    sleep,
    the,
    wait_signal,
    woken_by_result,
)

DAY_S = 86_400
HOUR = RetryPolicy(maximum_attempts=9, initial_interval_ms=3_600_000, maximum_interval_ms=3_600_000, jitter=0.0)


async def wake(harness: StoreHarness, run: RunKey, step_id: str = "", request_id: str = "") -> Woken | Refused | None:
    request_id = request_id or harness.ids.token()
    woken, harness.effects = await harness.store.wake_run(run, Wake(step_id, request_id), harness.now)
    return woken


async def events(harness: StoreHarness, run: RunKey) -> list[RunEvent]:
    page = await harness.store.events_of(run, 0, 1_000)
    assert page is not None
    seqs = [event.seq for event in page.events]
    assert seqs == sorted(set(seqs)), "one number, one event"
    return list(page.events)


def kinds_of(some: list[RunEvent]) -> list[tuple[EventKind, int | None]]:
    return [(event.kind, event.until) for event in some]


async def test_a_sleep_ends_at_once_and_its_history_says_when_it_was_to_end(harness: StoreHarness) -> None:
    holding = await harness.asleep(s=DAY_S)
    [started] = await events(harness, holding.run)
    planned = started.until
    harness.clock.advance(s=5)
    woken = the(Woken, await wake(harness, holding.run, "nap"))
    assert (woken.woken, woken.step_id, woken.due_at, woken.status) == (True, "nap", planned, RunStatus.PENDING)
    assert harness.effects == woken_by_result(holding.run)

    step = (await harness.steps(holding.run))["nap"]
    assert (step.status, step.finished_at, step.wake_at) == (StepStatus.COMPLETED, harness.now, harness.now)
    assert kinds_of(await events(harness, holding.run)) == [
        (EventKind.SLEEP_STARTED, planned),
        (EventKind.STEP_WOKEN, planned),
        (EventKind.SLEEP_COMPLETED, None),
    ]
    [slept] = (await harness.claim_one()).history.steps  # what a replay, and its clock, go by
    assert (slept.step_id, slept.at, slept.status) == ("nap", harness.now, StepStatus.COMPLETED)
    assert (await harness.fire()).pending == ()


async def test_a_step_begins_its_next_attempt_at_once(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "charge", retry=HOUR)))
    planned = the(RetryScheduled, await harness.do(fail(holding, "charge"))).retry_at
    the(Parked, await harness.do(park(holding, "charge")))
    harness.clock.advance(s=5)
    woken = the(Woken, await wake(harness, holding.run, "charge"))
    assert (woken.woken, woken.due_at, woken.status) == (True, planned, RunStatus.PENDING)
    [event] = [each for each in await events(harness, holding.run) if each.kind is EventKind.STEP_WOKEN]
    assert (event.step_id, event.name, event.attempt, event.at) == ("charge", "charge", 2, harness.now)

    again = leased(await harness.claim_one())
    the(Begun, await harness.do(begin(again, "charge", 2)))
    the(Recorded, await harness.do(complete(again, "charge", attempt=2)))
    step = (await harness.steps(holding.run))["charge"]
    assert [attempt.attempt for attempt in step.attempts] == [1]  # the wake is not an attempt
    assert kinds_of(await events(harness, holding.run)) == [
        (EventKind.STEP_STARTED, None),
        (EventKind.STEP_RETRYING, planned),
        (EventKind.STEP_WOKEN, planned),
        (EventKind.STEP_STARTED, None),
        (EventKind.STEP_COMPLETED, None),
    ]


async def test_a_start_that_was_to_come_later_comes_now(harness: StoreHarness) -> None:
    planned = harness.now + DAY_S * US_PER_S
    run = await harness.start(start_at=planned)
    for _ in range(2):  # a lost answer
        woken = the(Woken, await wake(harness, run, request_id="now"))
        assert (woken.woken, woken.step_id, woken.due_at) == (True, "", planned)
    assert (await harness.run(run)).status is RunStatus.PENDING
    assert kinds_of(await events(harness, run)) == [(EventKind.RUN_WOKEN, planned)]
    assert (await harness.claim_one()).run == run


async def test_so_does_the_next_try_of_a_whole_run(harness: StoreHarness) -> None:
    holding = await harness.running(retry=HOUR)
    closed = the(RunClosed, await harness.do(fail_run(holding)))
    woken = the(Woken, await wake(harness, holding.run))
    assert (woken.woken, woken.due_at, woken.step_id) == (True, closed.retry_at, "")
    assert (await harness.claim_one()).attempt == 2


async def test_a_worker_that_holds_the_run_is_told_and_fetches_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(TimerSet, await harness.do(sleep(holding, "nap", s=DAY_S)))
    for step_id in ("charge", "mail"):
        the(Begun, await harness.do(begin(holding, step_id, retry=HOUR)))
        the(RetryScheduled, await harness.do(fail(holding, step_id)))
    the(Begun, await harness.do(begin(holding, "long")))
    waits = ("nap", "charge", "mail")
    nothing = the(Fetched, await harness.do(fetch(holding, *waits, known_seq=1_000)))
    assert (nothing.results, nothing.retries) == ((), ())

    harness.clock.advance(s=5)
    for step_id in waits:
        woken = the(Woken, await wake(harness, holding.run, step_id))
        assert (woken.woken, woken.status) == (True, RunStatus.RUNNING)
        assert harness.effects == notified_of_result(holding)
    fetched = the(Fetched, await harness.do(fetch(holding, *waits, known_seq=1_000)))
    [slept] = fetched.results
    assert (slept.step_id, slept.at, slept.status) == ("nap", harness.now, StepStatus.COMPLETED)
    assert set(fetched.retries) == {DueRetry("charge", 2), DueRetry("mail", 2)}
    the(Begun, await harness.do(begin(holding, "charge", 2)))
    kept = the(NotParked, await harness.do(park(holding, *waits)))
    assert kept.retries == (DueRetry("mail", 2),)


async def test_the_worker_may_also_find_out_by_itself(harness: StoreHarness) -> None:
    """The notice is only a hint: a repeated begin, a finish and a repeated failure see the new time."""
    holding = await harness.running()
    the(TimerSet, await harness.do(sleep(holding, "nap", s=DAY_S)))
    the(Begun, await harness.do(begin(holding, "charge", retry=HOUR)))
    the(RetryScheduled, await harness.do(fail(holding, "charge")))
    for step_id in ("nap", "charge"):
        assert the(Woken, await wake(harness, holding.run, step_id)).woken
    the(Recorded, await harness.do(finish(holding, "nap")))
    assert the(RetryScheduled, await harness.do(fail(holding, "charge"))).retry_at == harness.now


async def test_without_a_step_the_only_one_that_waits_is_meant(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "work")))
    assert the(Woken, await wake(harness, holding.run)).woken is False  # it is awake
    the(TimerSet, await harness.do(sleep(holding, "nap", s=DAY_S)))
    assert the(Woken, await wake(harness, holding.run)).step_id == "nap"
    for step_id in ("one", "two"):
        the(TimerSet, await harness.do(sleep(holding, step_id, s=DAY_S)))
    error = refused(await wake(harness, holding.run), ErrorCode.PRECONDITION_FAILED)
    assert "one, two" in error.message


async def test_a_request_wakes_once_and_what_is_awake_is_left_alone(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "charge", retry=HOUR)))
    for attempt in (2, 3):
        the(RetryScheduled, await harness.do(fail(holding, "charge", attempt=attempt - 1)))
        assert the(Woken, await wake(harness, holding.run, "charge", f"wake-{attempt}")).woken
        the(Begun, await harness.do(begin(holding, "charge", attempt)))
    last = the(RetryScheduled, await harness.do(fail(holding, "charge", attempt=3)))
    seq = (await harness.run(holding.run)).last_seq
    repeated = the(Woken, await wake(harness, holding.run, "charge", "wake-2"))
    assert (repeated.woken, repeated.step_id) == (True, "charge")
    assert (await harness.run(holding.run)).last_seq == seq
    assert (await harness.steps(holding.run))["charge"].retry_at == last.retry_at  # it was another wait
    refused(await wake(harness, holding.run, "other", "wake-2"), ErrorCode.CONFLICT)

    the(Begun, await harness.do(begin(holding, "charge", 4)))
    assert the(Woken, await wake(harness, holding.run, "charge")).woken is False
    the(Recorded, await harness.do(complete(holding, "charge", attempt=4)))
    assert the(Woken, await wake(harness, holding.run, "charge")).woken is False
    assert (await harness.run(holding.run)).last_seq == seq + 2


async def test_what_cannot_be_woken_is_refused_with_words(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(TimerSet, await harness.do(wait_signal(holding, "approved", s=DAY_S)))
    the(TimerSet, await harness.do(sleep(holding, "nap", s=DAY_S)))
    child = await harness.child(holding)

    async def words(step_id: str) -> str:
        return refused(await wake(harness, holding.run, step_id), ErrorCode.PRECONDITION_FAILED).message

    assert "kagzi signal" in await words("approved")
    assert child.run_id in await words("child")
    assert "has no step 'nothing'" in await words("nothing")
    await harness.pause(holding.run)
    assert f"kagzi resume {holding.run.run_id}" in await words("nap")
    the(Parked, await harness.do(park(holding)))
    assert (await harness.run(holding.run)).status is RunStatus.PAUSED
    assert f"kagzi resume {holding.run.run_id}" in await words("nap")
    await harness.terminate(holding.run)
    assert "has ended (cancelled)" in await words("nap")

    other = RunKey("other", holding.run.run_id)
    assert await wake(harness, other, "nap") is None
    assert await wake(harness, RunKey("default", "no-such-run"), "nap") is None


async def test_a_run_that_begins_after_another_is_not_woken(harness: StoreHarness) -> None:
    first = await harness.running(workflow_id="one")
    second = await harness.start("two", start_at=harness.now + DAY_S * US_PER_S)
    error = refused(await wake(harness, second, "nap"), ErrorCode.PRECONDITION_FAILED)
    assert "has no step" in error.message
    the(TimerSet, await harness.do(wait_signal(first)))
    the(Parked, await harness.do(park(first, "approved")))
    error = refused(await wake(harness, first.run), ErrorCode.PRECONDITION_FAILED)
    assert "kagzi explain" in error.message


@pytest.mark.parametrize("step_id", ["", "charge"])
async def test_a_wake_is_fenced_by_nothing_and_fences_nobody(harness: StoreHarness, step_id: str) -> None:
    """The worker goes on under its lease: what it had in flight is recorded."""
    holding = await harness.running()
    the(Begun, await harness.do(begin(holding, "charge", retry=HOUR)))
    the(Begun, await harness.do(begin(holding, "other")))
    the(RetryScheduled, await harness.do(fail(holding, "charge")))
    assert the(Woken, await wake(harness, holding.run, step_id)).woken
    the(Recorded, await harness.do(complete(holding, "other")))
    the(Begun, await harness.do(begin(holding, "charge", 2)))
    the(Recorded, await harness.do(complete(holding, "charge", attempt=2)))
    the(RunClosed, await harness.do(complete_run(holding)))


async def test_it_goes_along_when_a_run_is_forked_or_tried_again(harness: StoreHarness) -> None:
    holding = await harness.asleep(s=DAY_S)
    assert the(Woken, await wake(harness, holding.run, "nap")).woken
    again = leased(await harness.claim_one())
    the(RunClosed, await harness.do(fail_run(again)))
    await harness.fork(holding.run, "")
    assert await harness.retry(holding.run, "nap") is RunStatus.PENDING
    assert EventKind.STEP_WOKEN in [event.kind for event in await events(harness, holding.run)]
    assert "nap" not in by_id((await harness.claim_one()).history.steps)
