"""Steps that run for longer than they may are found when their holder's lease is renewed; and what the code has given up wakes nobody."""

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import Held
from kagzi.core.run.outcomes import NotParked, Parked, Recorded, RetryScheduled, StepFailed, TimerSet
from kagzi.core.states import RunStatus, StepStatus
from kagzi.store.protocol import Overdue

from .invariants import check_invariants
from .verbs import (
    AT_ONCE,
    LEASE_US,
    Cellar,
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


async def overdue(cellar: Cellar, *holding: Held) -> set[tuple[Held, str, int]]:
    renewal = await cellar.store.renew(holding, cellar.now, cellar.now + LEASE_US, grace_us=GRACE_US)
    assert renewal.lost == ()
    assert all(isinstance(each, Overdue) and each.timeout_ms > 0 for each in renewal.overdue)
    return {(each.held, each.step_id, each.attempt) for each in renewal.overdue}


async def test_found_one_grace_after_its_timeout_and_not_before(cellar: Cellar) -> None:
    one, other = await cellar.running(), await cellar.running()
    await cellar.write(begin(one, "slow", timeout_ms=2_000), begin(one, "free"), begin(other, "slow", timeout_ms=9_000))
    cellar.clock.advance(us=2_000_000 + GRACE_US - 1)
    assert await overdue(cellar, one, other) == set()
    cellar.clock.advance(us=1)
    assert await overdue(cellar, one, other) == {(one, "slow", 1)}
    assert await overdue(cellar, other) == set()
    await check_invariants(cellar.store)


async def test_what_has_a_result_is_not_overdue(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.write(begin(holding, "at once", timeout_ms=1), complete(holding, "at once"))
    await cellar.do(begin(holding, "later", timeout_ms=1))
    await cellar.do(begin(holding, "lost", timeout_ms=1))
    await cellar.do(begin(holding, "failed", timeout_ms=1, retry=AT_ONCE))
    the(Recorded, await cellar.do(complete(holding, "later")))
    the(RetryScheduled, await cellar.do(fail(holding, "failed")))
    the(Recorded, await cellar.do(race(holding, "race", "later", "lost")))
    cellar.clock.advance(s=10)
    assert await overdue(cellar, holding) == set()
    assert (await cellar.run(holding.run)).waits == ()
    await check_invariants(cellar.store)


async def test_every_attempt_has_its_own_time(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(begin(holding, "slow", timeout_ms=2_000, retry=AT_ONCE))
    cellar.clock.advance(s=5)
    assert await overdue(cellar, holding) == {(holding, "slow", 1)}
    the(RetryScheduled, await cellar.do(fail(holding, "slow", LATE)))
    refused(await cellar.do(complete(holding, "slow")), ErrorCode.PRECONDITION_FAILED)  # its worker is too late
    the(RetryScheduled, await cellar.do(fail(holding, "slow")))  # or says the same
    await cellar.do(begin(holding, "slow", 2))
    assert await overdue(cellar, holding) == set()
    cellar.clock.advance(s=5)
    assert await overdue(cellar, holding) == {(holding, "slow", 2)}
    the(RetryScheduled, await cellar.do(fail(holding, "slow", LATE, 2)))
    await cellar.do(begin(holding, "slow", 3))
    assert the(StepFailed, await cellar.do(fail(holding, "slow", LATE, 3))).attempts == 3
    step = (await cellar.steps(holding.run))["slow"]
    assert (step.status, [attempt.error.kind for attempt in step.attempts]) == (
        StepStatus.FAILED,
        [ErrorKind.TIMEOUT, ErrorKind.TIMEOUT],
    )


async def test_a_new_holder_has_time_of_its_own(cellar: Cellar) -> None:
    first = await cellar.running()
    await cellar.do(begin(first, "slow", timeout_ms=2_000))
    second = await cellar.take_over(first)
    assert await overdue(cellar, second) == set()  # nobody runs it
    await cellar.do(begin(second, "slow"))
    assert await overdue(cellar, second) == set()
    cellar.clock.advance(s=5)
    assert await overdue(cellar, second) == {(second, "slow", 1)}


async def test_a_step_with_a_timeout_is_no_wait(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.write(begin(holding, "slow", timeout_ms=60_000))
    refused(await cellar.do(park(holding)), ErrorCode.PRECONDITION_FAILED)
    the(TimerSet, await cellar.do(sleep(holding, "nap", s=600)))
    parked = the(Parked, await cellar.do(park(holding, "nap")))
    assert parked.wake_at == cellar.now + 600_000_000
    assert (await cellar.run(holding.run)).waits == ("nap",)


# --- what the code has given up -----------------------------------------------------------------------------------------


async def test_only_the_waits_that_are_named_wake_it(cellar: Cellar) -> None:
    holding = await cellar.running()
    the(TimerSet, await cellar.do(sleep(holding, "given up", s=10)))
    the(TimerSet, await cellar.do(sleep(holding, "nap", s=60)))
    parked = the(Parked, await cellar.do(park(holding, "nap")))
    assert parked.wake_at == cellar.now + 60_000_000
    cellar.clock.advance(s=30)
    assert (await cellar.fire()).woken == ()
    assert (await cellar.run(holding.run)).status == RunStatus.SLEEPING
    cellar.clock.advance(s=30)
    assert list((await cellar.fire()).woken) == [("default", "hello")]


async def test_a_wait_that_is_due_and_not_named_does_not_keep_it_from_parking(cellar: Cellar) -> None:
    holding = await cellar.running()
    the(TimerSet, await cellar.do(sleep(holding, "given up", s=1)))
    the(TimerSet, await cellar.do(wait_signal(holding, "other", s=1)))
    the(TimerSet, await cellar.do(wait_signal(holding)))
    cellar.clock.advance(s=5)
    assert the(Parked, await cellar.do(park(holding, "approved"))).wake_at is None
    assert (await cellar.signal(holding.run)).delivered
    holding = await cellar.hold(holding.run)


async def test_who_names_nothing_waits_for_everything(cellar: Cellar) -> None:
    holding = await cellar.running()
    the(TimerSet, await cellar.do(sleep(holding, "nap", s=10)))
    the(TimerSet, await cellar.do(sleep(holding, "longer", s=60)))
    cellar.clock.advance(s=10)
    come = the(NotParked, await cellar.do(park(holding)))
    assert [step.step_id for step in come.results] == ["nap"]
    assert the(Parked, await cellar.do(park(holding))).wake_at == cellar.now + 50_000_000
