"""Steps that run for longer than they may are found when their holder's lease is renewed; and what the code has given
up wakes nobody."""

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import RunLease
from kagzi.core.run.outcomes import NotParked, Parked, Recorded, RetryScheduled, StepFailed, TimerSet
from kagzi.core.states import RunStatus, StepStatus
from kagzi.store.protocol import Overdue

from .invariants import check_invariants
from .verbs import (
    AT_ONCE,
    LEASE_US,
    StoreHarness,
    begin,
    complete,
    fail,
    park,
    race,
    refused,
    sleep,
    the,
    wait_signal,
)

GRACE_US = 3_000_000
LATE = ErrorDetail(code=ErrorCode.TIMEOUT, kind=ErrorKind.TIMEOUT, type="TimeoutError", message="too late")


async def overdue(harness: StoreHarness, *holding: RunLease) -> set[tuple[RunLease, str, int]]:
    renewal = await harness.store.renew(holding, harness.now, harness.now + LEASE_US, grace_us=GRACE_US)
    assert renewal.lost == ()
    assert all(isinstance(each, Overdue) and each.timeout_ms > 0 for each in renewal.overdue)
    return {(each.leased, each.step_id, each.attempt) for each in renewal.overdue}


async def test_overdue_one_grace_after_its_timeout_and_not_before(harness: StoreHarness) -> None:
    one, other = await harness.running(), await harness.running()
    await harness.write(
        begin(one, "slow", timeout_ms=2_000), begin(one, "free"), begin(other, "slow", timeout_ms=9_000)
    )
    harness.clock.advance(us=2_000_000 + GRACE_US - 1)
    assert await overdue(harness, one, other) == set()
    harness.clock.advance(us=1)
    assert await overdue(harness, one, other) == {(one, "slow", 1)}
    assert await overdue(harness, other) == set()
    await check_invariants(harness.store)


async def test_what_has_a_result_is_not_overdue(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "at once", timeout_ms=1), complete(holding, "at once"))
    await harness.do(begin(holding, "later", timeout_ms=1))
    await harness.do(begin(holding, "lost", timeout_ms=1))
    await harness.do(begin(holding, "failed", timeout_ms=1, retry=AT_ONCE))
    the(Recorded, await harness.do(complete(holding, "later")))
    the(RetryScheduled, await harness.do(fail(holding, "failed")))
    the(Recorded, await harness.do(race(holding, "race", "later", "lost")))
    harness.clock.advance(s=10)
    assert await overdue(harness, holding) == set()
    assert (await harness.run(holding.run)).waits == ()
    await check_invariants(harness.store)


async def test_every_attempt_has_its_own_time(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "slow", timeout_ms=2_000, retry=AT_ONCE))
    harness.clock.advance(s=5)
    assert await overdue(harness, holding) == {(holding, "slow", 1)}
    the(RetryScheduled, await harness.do(fail(holding, "slow", LATE)))
    refused(await harness.do(complete(holding, "slow")), ErrorCode.PRECONDITION_FAILED)  # its worker is too late
    the(RetryScheduled, await harness.do(fail(holding, "slow")))  # or says the same
    await harness.do(begin(holding, "slow", 2, timeout_ms=2_000))
    assert await overdue(harness, holding) == set()
    harness.clock.advance(s=5)
    assert await overdue(harness, holding) == {(holding, "slow", 2)}
    the(RetryScheduled, await harness.do(fail(holding, "slow", LATE, 2)))
    await harness.do(begin(holding, "slow", 3))
    assert the(StepFailed, await harness.do(fail(holding, "slow", LATE, 3))).attempts == 3
    step = (await harness.steps(holding.run))["slow"]
    assert (step.status, [attempt.error.kind for attempt in step.attempts]) == (
        StepStatus.FAILED,
        [ErrorKind.TIMEOUT, ErrorKind.TIMEOUT],
    )


async def test_a_new_holder_has_time_of_its_own(harness: StoreHarness) -> None:
    first = await harness.running()
    await harness.do(begin(first, "slow", timeout_ms=2_000))
    second = await harness.take_over(first)
    assert await overdue(harness, second) == set()  # nobody runs it
    await harness.do(begin(second, "slow", timeout_ms=2_000))
    assert await overdue(harness, second) == set()
    harness.clock.advance(s=5)
    assert await overdue(harness, second) == {(second, "slow", 1)}


async def test_an_attempt_has_the_timeout_that_the_code_has_when_it_begins(harness: StoreHarness) -> None:
    first = await harness.running()
    await harness.write(begin(first, "longer", timeout_ms=2_000), begin(first, "none", timeout_ms=2_000))
    await harness.do(begin(first, "retried", timeout_ms=2_000, retry=AT_ONCE))
    second = await harness.take_over(first)
    await harness.write(begin(second, "longer", timeout_ms=60_000), begin(second, "none"))
    await harness.do(begin(second, "retried", timeout_ms=2_000))
    the(RetryScheduled, await harness.do(fail(second, "retried")))
    await harness.do(begin(second, "retried", 2, timeout_ms=60_000))
    harness.clock.advance(s=30)
    assert await overdue(harness, second) == set()
    harness.clock.advance(s=60)
    assert await overdue(harness, second) == {(second, "longer", 1), (second, "retried", 2)}
    await check_invariants(harness.store)


async def test_a_step_with_a_timeout_is_no_wait(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "slow", timeout_ms=60_000))
    refused(await harness.do(park(holding)), ErrorCode.PRECONDITION_FAILED)
    the(TimerSet, await harness.do(sleep(holding, "nap", s=600)))
    parked = the(Parked, await harness.do(park(holding, "nap")))
    assert parked.wake_at == harness.now + 600_000_000
    assert (await harness.run(holding.run)).waits == ("nap",)


# --- what the code has given up ---------------------------------------------------------------------------------------


async def test_only_the_waits_that_are_named_wake_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(TimerSet, await harness.do(sleep(holding, "given up", s=10)))
    the(TimerSet, await harness.do(sleep(holding, "nap", s=60)))
    parked = the(Parked, await harness.do(park(holding, "nap")))
    assert parked.wake_at == harness.now + 60_000_000
    harness.clock.advance(s=30)
    assert (await harness.fire()).pending == ()
    assert (await harness.run(holding.run)).status == RunStatus.SLEEPING
    harness.clock.advance(s=30)
    assert list((await harness.fire()).pending) == [("default", "hello")]


async def test_a_wait_that_is_due_and_not_named_does_not_keep_it_from_parking(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(TimerSet, await harness.do(sleep(holding, "given up", s=1)))
    the(TimerSet, await harness.do(wait_signal(holding, "other", s=1)))
    the(TimerSet, await harness.do(wait_signal(holding)))
    harness.clock.advance(s=5)
    assert the(Parked, await harness.do(park(holding, "approved"))).wake_at is None
    assert (await harness.signal(holding.run)).delivered
    holding = await harness.hold(holding.run)


async def test_who_names_nothing_waits_for_everything(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(TimerSet, await harness.do(sleep(holding, "nap", s=10)))
    the(TimerSet, await harness.do(sleep(holding, "longer", s=60)))
    harness.clock.advance(s=10)
    come = the(NotParked, await harness.do(park(holding)))
    assert [step.step_id for step in come.results] == ["nap"]
    assert the(Parked, await harness.do(park(holding))).wake_at == harness.now + 50_000_000
