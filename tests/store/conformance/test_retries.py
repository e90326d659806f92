"""The server decides about retries, from the policy recorded at begin; failures are results (P6, P11)."""

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import RunLease
from kagzi.core.retry.policy import NO_RETRY, UNLIMITED, RetryPolicy
from kagzi.core.run.outcomes import (
    Begun,
    DueRetry,
    Known,
    NotParked,
    Parked,
    Recorded,
    RetryScheduled,
    RunClosed,
    StepFailed,
)
from kagzi.core.states import RunStatus, StepStatus, WaitReason
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds, LoadedRng

from .places import Place
from .verbs import (
    AT_ONCE,
    BOOM,
    STEADY,
    StoreHarness,
    begin,
    by_id,
    complete,
    fail,
    fail_run,
    leased,
    ms,
    park,
    payload,
    sleep,
    the,
)


async def fail_until_final(
    harness: StoreHarness, holding: RunLease, step_id: str, policy: RetryPolicy | None
) -> StepFailed:
    """Every attempt fails. Returns the final outcome; never executes more often than 20 times."""
    for attempt in range(1, 21):
        begun = the(Begun, await harness.do(begin(holding, step_id, attempt, retry=policy)))
        assert begun.attempt == attempt
        outcome = await harness.do(fail(holding, step_id, attempt=attempt))
        if isinstance(outcome, StepFailed):
            return outcome
        retry = the(RetryScheduled, outcome)
        assert retry.next_attempt == attempt + 1
        harness.clock.set(max(retry.retry_at, harness.now))
    raise AssertionError("no cap")


async def test_a_failure_is_followed_by_a_retry_after_the_recorded_interval(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "charge", retry=STEADY))
    began_at = harness.now
    harness.clock.advance(s=1)
    outcome = the(RetryScheduled, await harness.do(fail(holding, "charge")))
    assert (outcome.at, outcome.next_attempt, outcome.retry_at) == (harness.now, 2, harness.now + ms(10_000))

    step = (await harness.steps(holding.run))["charge"]
    assert (step.status, step.attempt, step.retry_at, step.seq) == (StepStatus.PENDING, 2, outcome.retry_at, 0)
    (archived,) = step.attempts
    assert (archived.attempt, archived.started_at, archived.finished_at) == (1, began_at, harness.now)
    assert (archived.error, archived.worker_id) == (BOOM, "worker-1")


async def test_intervals_grow_by_the_factor(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a", retry=STEADY), fail(holding, "a"))
    harness.clock.advance(s=10)
    _, second = await harness.write(begin(holding, "a", 2), fail(holding, "a", attempt=2))
    assert the(RetryScheduled, second).retry_at == harness.now + ms(20_000)


@pytest.mark.parametrize(
    ("policy", "attempts"), [(STEADY, 3), (AT_ONCE, 3), (None, 3), (RetryPolicy(maximum_attempts=7), 7)]
)
async def test_out_of_retries_the_failure_is_the_result(
    harness: StoreHarness, policy: RetryPolicy | None, attempts: int
) -> None:
    holding = await harness.running()
    final = await fail_until_final(harness, holding, "a", policy)
    assert (final.attempts, final.at) == (attempts, harness.now)
    assert final.error == msgspec.structs.replace(BOOM, exhausted=True)
    step = (await harness.steps(holding.run))["a"]
    assert (step.status, step.attempt, step.seq, step.error) == (StepStatus.FAILED, attempts, final.seq, final.error)
    assert [attempt.attempt for attempt in step.attempts] == list(range(1, attempts))


async def test_a_recorded_failure_is_never_executed_again(harness: StoreHarness) -> None:
    # Once a final failure was not recorded: on replay, caught errors ran the step again.
    old = await harness.running()
    final = await fail_until_final(harness, old, "a", STEADY)
    for attempt in (0, 3):
        known = the(Known, await harness.do(begin(old, "a", attempt))).step
        assert (known.status, known.seq, known.error) == (StepStatus.FAILED, final.seq, final.error)
    new = await harness.take_over(old)
    known = the(Known, await harness.do(begin(new, "a", 0))).step
    assert (known.status, known.error, known.attempt) == (StepStatus.FAILED, final.error, 3)
    page = await harness.store.history(new.run, new.lease, 0)
    assert page is not None
    assert by_id(page.steps)["a"].error == final.error


async def test_a_repeated_failure_answers_the_same(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "a", retry=STEADY))
    first = the(RetryScheduled, await harness.do(fail(holding, "a")))
    before = await harness.steps(holding.run)
    harness.clock.advance(s=1)
    again = the(RetryScheduled, await harness.do(fail(holding, "a")))
    assert (again.next_attempt, again.retry_at) == (first.next_attempt, first.retry_at)
    assert await harness.steps(holding.run) == before, "the failure was counted twice"

    await harness.do(begin(holding, "b", retry=NO_RETRY))
    final = the(StepFailed, await harness.do(fail(holding, "b")))
    harness.clock.advance(s=1)
    assert await harness.do(fail(holding, "b")) == final


async def test_no_retry_means_one_execution(harness: StoreHarness) -> None:
    # Once "no retries" was sent as 0, read as "unset", and became 5 attempts.
    holding = await harness.running()
    final = await fail_until_final(harness, holding, "a", NO_RETRY)
    assert (final.attempts, final.error) == (1, BOOM)


@pytest.mark.parametrize("listed", ["shop.PaymentError", "PaymentError", "ShopError"])
async def test_an_error_listed_by_class_or_base_is_final(harness: StoreHarness, listed: str) -> None:
    holding = await harness.running()
    policy = RetryPolicy(maximum_attempts=UNLIMITED, non_retryable_errors=(listed,))
    final = await fail_until_final(harness, holding, "a", policy)
    assert (final.attempts, final.error) == (1, msgspec.structs.replace(BOOM, non_retryable=True))


WRONG = ErrorDetail(type="ValueError", message="no such order", kind=ErrorKind.PERMANENT)


async def test_a_permanent_error_is_final_unless_the_policy_lists_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    listed = msgspec.structs.replace(AT_ONCE, maximum_attempts=2, retry_on_errors=("ValueError",))
    outcomes = await harness.write(
        begin(holding, "a", retry=STEADY),
        fail(holding, "a", WRONG),
        begin(holding, "b"),
        fail(holding, "b", WRONG),
        begin(holding, "c", retry=listed),
        fail(holding, "c", WRONG),
        begin(holding, "c", 2),
        fail(holding, "c", WRONG, attempt=2),
    )
    final, used_up = (
        msgspec.structs.replace(WRONG, non_retryable=True),
        msgspec.structs.replace(WRONG, exhausted=True),
    )
    assert [the(StepFailed, outcomes[index]).error for index in (1, 3, 7)] == [final, final, used_up]
    the(RetryScheduled, outcomes[5])
    steps = await harness.steps(holding.run)
    assert {name: step.error for name, step in steps.items()} == {"a": final, "b": final, "c": used_up}
    assert steps["c"].retry == listed


async def test_a_permanent_error_of_the_whole_run_is_final_unless_its_policy_lists_it(harness: StoreHarness) -> None:
    plain = await harness.running(retry=AT_ONCE)
    listed = await harness.running(retry=msgspec.structs.replace(AT_ONCE, retry_on_errors=("ValueError",)))
    assert the(RunClosed, await harness.do(fail_run(plain, WRONG))).status is RunStatus.FAILED
    assert the(RunClosed, await harness.do(fail_run(listed, WRONG))).status is not RunStatus.FAILED


@pytest.mark.parametrize("listed", ["InvalidArgument", "INVALID_ARGUMENT", "invalid_argument"])
async def test_an_error_listed_by_its_code_is_final(harness: StoreHarness, listed: str) -> None:
    holding = await harness.running()
    coded = ErrorDetail(code=ErrorCode.INVALID_ARGUMENT, message="no amount")
    policy = RetryPolicy(non_retryable_errors=(listed,))
    _, outcome = await harness.write(begin(holding, "a", retry=policy), fail(holding, "a", coded))
    assert the(StepFailed, outcome).error.non_retryable


async def test_an_error_is_not_final_by_its_message(harness: StoreHarness) -> None:
    holding = await harness.running()
    policy = RetryPolicy(non_retryable_errors=("declined", "decl"))
    _, outcome = await harness.write(begin(holding, "a", retry=policy), fail(holding, "a"))
    the(RetryScheduled, outcome)


async def test_an_error_may_forbid_its_retry_or_ask_for_time(harness: StoreHarness) -> None:
    holding = await harness.running()
    never = ErrorDetail(type="kagzi.NonRetryable", message="no", non_retryable=True, kind=ErrorKind.PERMANENT)
    later = ErrorDetail(type="kagzi.RetryAfter", message="busy", retry_after_ms=90_000)
    outcomes = await harness.write(
        begin(holding, "a", retry=STEADY),
        fail(holding, "a", never),
        begin(holding, "b", retry=STEADY),
        fail(holding, "b", later),
    )
    assert the(StepFailed, outcomes[1]).error == never
    assert the(RetryScheduled, outcomes[3]).retry_at == harness.now + ms(90_000)


async def test_the_policy_of_the_first_begin_decides(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.write(begin(old, "a", retry=AT_ONCE), fail(old, "a"), begin(old, "a", 2, retry=NO_RETRY))
    new = await harness.take_over(old)
    outcomes = await harness.write(begin(new, "a", 2, retry=NO_RETRY), fail(new, "a", attempt=2))
    assert the(RetryScheduled, outcomes[1]).next_attempt == 3
    assert (await harness.steps(old.run))["a"].retry == AT_ONCE


async def test_without_a_policy_the_servers_default_decides(harness: StoreHarness) -> None:
    holding = await harness.running()
    _, outcome = await harness.write(begin(holding, "a"), fail(holding, "a"))
    assert the(RetryScheduled, outcome).retry_at == harness.now + ms(1_000)


async def test_the_stores_rng_gives_the_jitter(place: Place, clock: FakeClock, ids: CountingIds) -> None:
    harness = StoreHarness(await place.open(LoadedRng([0.25])), clock, ids)
    holding = await harness.running()
    _, outcome = await harness.write(begin(holding, "a"), fail(holding, "a"))
    assert the(RetryScheduled, outcome).retry_at == harness.now + ms(875)


async def test_a_retry_that_would_miss_the_deadline_is_none(harness: StoreHarness) -> None:
    holding = await harness.running(deadline_at=harness.now + ms(10_000))
    _, outcome = await harness.write(begin(holding, "a", retry=STEADY), fail(holding, "a"))
    assert the(StepFailed, outcome).error.exhausted


async def test_the_next_attempt_without_a_number_waits_for_its_time(harness: StoreHarness) -> None:
    holding = await harness.running()
    _, outcome = await harness.write(begin(holding, "a", retry=STEADY), fail(holding, "a"))
    retry_at = the(RetryScheduled, outcome).retry_at
    waiting = the(Known, await harness.do(begin(holding, "a", 0))).step
    assert (waiting.status, waiting.attempt, waiting.retry_at) == (StepStatus.PENDING, 2, retry_at)
    harness.clock.set(retry_at)
    assert the(Begun, await harness.do(begin(holding, "a", 0))).attempt == 2


async def test_a_worker_that_waited_may_come_a_little_early_with_the_number(harness: StoreHarness) -> None:
    holding = await harness.running()
    _, outcome = await harness.write(begin(holding, "a", retry=STEADY), fail(holding, "a"))
    harness.clock.set(the(RetryScheduled, outcome).retry_at - 1_000)
    begun, recorded = await harness.write(begin(holding, "a", 2), complete(holding, "a", "late but fine", 2))
    assert the(Begun, begun).attempt == 2
    the(Recorded, recorded)
    step = (await harness.steps(holding.run))["a"]
    assert (step.status, step.attempt, step.retry_at) == (StepStatus.COMPLETED, 2, None)


async def test_a_retry_of_a_lost_worker_goes_on_with_the_same_number(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.write(begin(old, "a", retry=AT_ONCE), fail(old, "a"), begin(old, "a", 2))
    new = await harness.take_over(old)
    assert the(Begun, await harness.do(begin(new, "a", 2))).attempt == 2
    the(RetryScheduled, await harness.do(fail(new, "a", attempt=2)))
    attempts = (await harness.steps(old.run))["a"].attempts
    kept = [(attempt.attempt, attempt.worker_id, attempt.lost) for attempt in attempts]
    assert kept == [(1, "worker-1", False), (2, "worker-1", True), (2, "worker-2", False)]


async def test_a_run_that_waits_for_a_retry_parks_until_then(harness: StoreHarness) -> None:
    old = await harness.running()
    _, failed, parked = await harness.write(begin(old, "a", retry=STEADY), fail(old, "a"), park(old, "a"))
    retry_at = the(RetryScheduled, failed).retry_at
    assert the(Parked, parked).wake_at == retry_at
    record = await harness.run(old.run)
    assert (record.status, record.wait_reason, record.wake_at) == (RunStatus.SLEEPING, WaitReason.RETRY, retry_at)

    harness.clock.set(retry_at - 1)
    assert (await harness.fire()).pending == ()
    harness.clock.set(retry_at)
    assert (await harness.fire()).pending == (("default", "hello"),)
    claimed = await harness.claim_one()
    step = by_id(claimed.history.steps)["a"]
    assert (step.status, step.attempt, step.retry_at) == (StepStatus.PENDING, 2, retry_at)
    outcomes = await harness.write(begin(leased(claimed), "a", 2), complete(leased(claimed), "a", "ok", 2))
    the(Recorded, outcomes[1])
    assert (await harness.steps(old.run))["a"].output == payload("ok")


async def test_a_retry_that_is_due_is_not_slept_over(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a", retry=STEADY), fail(holding, "a"), sleep(holding, "nap", s=3_600))
    harness.clock.advance(s=10)
    assert await harness.do(park(holding, "a", "nap")) == NotParked(harness.now, (), retries=(DueRetry("a", 2),))
    assert (await harness.run(holding.run)).status == RunStatus.RUNNING
