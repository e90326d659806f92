"""A run tells how many of its steps wait for a signal and how many are retried, whoever changed them; one that has
ended tells of none. `check_invariants` counts the steps again."""

import pytest

from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.commands import SignalReplacement
from kagzi.core.run.outcomes import NotParked, Parked, RetryScheduled, Started, StepFailed
from kagzi.core.states import RunStatus
from kagzi.store.sql_files import load_migrations
from tests.support.timeouts import LOADED_MACHINE_S

from .invariants import check_invariants
from .test_replacements import problem
from .verbs import (
    AT_ONCE,
    STEADY,
    StoreHarness,
    acknowledge_cancel,
    begin,
    complete,
    complete_run,
    continue_as,
    diverged,
    fail,
    fail_run,
    fetch,
    hand_back,
    park,
    payload,
    race,
    sleep,
    the,
    wait_signal,
)

pytestmark = pytest.mark.timeout(2 * LOADED_MACHINE_S)


async def counts(harness: StoreHarness, run: RunKey) -> tuple[int, int]:
    """(waits, retries), once it is sure that they are what the steps say, and that lists find the run by them."""
    await check_invariants(harness.store)
    record = await harness.run(run)
    by_waiting = {row.run for row in await harness.runs(waiting=True)}
    by_failing = {row.run for row in await harness.runs(failing=True)}
    assert (run in by_waiting) == (record.awaits_signal > 0)
    assert (run in by_failing) == (record.retrying_steps > 0 or record.problem is not None)
    return record.awaits_signal, record.retrying_steps


async def retrying(harness: StoreHarness, step_id: str = "charge", **options: object) -> RunLease:
    holding = await harness.running(**options)
    await harness.do(begin(holding, step_id, retry=STEADY))
    the(RetryScheduled, await harness.do(fail(holding, step_id)))
    return holding


async def some_open_steps(harness: StoreHarness) -> None:
    """Runs with open waits and retries, and one of each that has ended."""
    for ended in (False, True):
        waiting, both = await harness.running(), await retrying(harness)
        await harness.write(wait_signal(waiting), wait_signal(waiting, "paid"), wait_signal(waiting, "bound"))
        await harness.signal(waiting.run, "bound")
        await harness.do(wait_signal(both))
        if ended:
            await harness.write(complete_run(waiting), fail_run(both))


def count_again(package: str) -> str:
    """What the migration that added the columns does with the runs that were there."""
    [migration] = [each for each in load_migrations(package) if each.name == "run_lists"]
    [update] = [part for part in migration.sql.split(";") if part.strip().startswith("UPDATE")]
    return update


async def test_a_step_is_retried_until_it_has_a_result(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "charge", retry=STEADY))
    assert await counts(harness, holding.run) == (0, 0), "it has not failed yet"
    for _ in range(2):
        the(RetryScheduled, await harness.do(fail(holding, "charge")))  # the second time it is a repeat
        assert await counts(harness, holding.run) == (0, 1)
    await harness.do(begin(holding, "charge", 2))
    assert await counts(harness, holding.run) == (0, 1), "that the next attempt runs does not mean that it is well"
    the(RetryScheduled, await harness.do(fail(holding, "charge", attempt=2)))
    await harness.do(begin(holding, "charge", 3))
    for _ in range(2):
        await harness.do(complete(holding, "charge", attempt=3))
        assert await counts(harness, holding.run) == (0, 0)


async def test_a_step_that_fails_for_good_is_not_retried(harness: StoreHarness) -> None:
    holding = await retrying(harness)
    await harness.write(begin(holding, "other", retry=AT_ONCE), fail(holding, "other"))
    assert await counts(harness, holding.run) == (0, 2)
    await harness.write(begin(holding, "charge", 2), fail(holding, "charge", attempt=2), begin(holding, "charge", 3))
    the(StepFailed, await harness.do(fail(holding, "charge", attempt=3)))
    assert await counts(harness, holding.run) == (0, 1)


async def test_results_of_many_retried_steps_come_with_others(harness: StoreHarness) -> None:
    """By the fast path, with plain steps of the same run and the end of another."""
    holdings = [await retrying(harness) for _ in range(3)]
    for holding in holdings:
        await harness.do(begin(holding, "charge", 2))
        await harness.write(begin(holding, "b", retry=AT_ONCE), fail(holding, "b"), begin(holding, "b", 2))
    a, b, c = holdings
    await harness.write(
        complete(a, "charge", attempt=2),
        complete(a, "b", attempt=2),
        begin(a, "plain"),
        complete(a, "plain"),
        complete(b, "charge", attempt=2),
        complete_run(c),
    )
    assert [await counts(harness, each.run) for each in holdings] == [(0, 0), (0, 1), (0, 0)]


async def test_a_lost_worker_is_no_failed_attempt(harness: StoreHarness) -> None:
    first = await harness.running()
    await harness.write(begin(first, "a"), begin(first, "b", retry=STEADY), fail(first, "b"))
    await harness.do(wait_signal(first))
    second = await harness.take_over(first)
    assert await counts(harness, first.run) == (1, 1)
    await harness.do(begin(second, "a"))
    assert await counts(harness, first.run) == (1, 1)
    await harness.do(hand_back(second))
    assert await counts(harness, first.run) == (1, 1)


async def test_a_wait_lasts_until_its_signal_comes(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(wait_signal(holding), wait_signal(holding, step_id="second"), wait_signal(holding, "paid"))
    await harness.do(wait_signal(holding))  # a repeat
    assert await counts(harness, holding.run) == (3, 0)
    the(Parked, await harness.do(park(holding, "approved", "second", "paid")))
    assert await counts(harness, holding.run) == (3, 0)
    for left, request_id in ((2, "r1"), (2, "r1"), (1, "r2")):
        await harness.signal(holding.run, request_id=request_id)
        assert await counts(harness, holding.run) == (left, 0)
    await harness.signal(holding.run, "nobody waits for this")
    assert await counts(harness, holding.run) == (1, 0)
    again = await harness.hold(holding.run)
    await harness.pause(holding.run)
    await harness.signal(holding.run, "paid")
    assert await counts(harness, holding.run) == (0, 0)
    await harness.do(wait_signal(again, "nobody waits for this"))
    assert await counts(harness, holding.run) == (0, 0), "it had come before"


async def test_a_wait_that_is_limited_ends_with_its_time(harness: StoreHarness) -> None:
    by_clock, in_place = await harness.running(), await harness.running()
    for holding in (by_clock, in_place):
        await harness.write(wait_signal(holding, s=5), wait_signal(holding, "paid", s=50), sleep(holding, "nap", s=5))
    the(Parked, await harness.do(park(by_clock, "approved", "paid", "nap")))
    harness.clock.advance(s=6)
    await harness.fire()
    assert await counts(harness, by_clock.run) == (1, 0)
    the(NotParked, await harness.do(park(in_place, "approved", "paid", "nap")))
    assert await counts(harness, in_place.run) == (1, 0)
    harness.clock.advance(s=60)
    await harness.do(fetch(in_place, "paid", known_seq=100))
    assert await counts(harness, in_place.run) == (0, 0)


async def test_what_loses_a_race_is_waited_for_no_longer(harness: StoreHarness) -> None:
    """Of a signal, a step that is retried and a sleep. `wait_reason` says time: it is the nearest."""
    holding = await harness.running()
    await harness.write(wait_signal(holding), sleep(holding, "nap", s=5))
    await harness.write(begin(holding, "charge", retry=STEADY), fail(holding, "charge"))
    the(Parked, await harness.do(park(holding, "approved", "nap", "charge")))
    assert await counts(harness, holding.run) == (1, 1)
    harness.clock.advance(s=6)
    await harness.fire()
    again = await harness.hold(holding.run)
    for _ in range(2):
        await harness.do(race(again, "first", "nap", "approved", "charge"))
        assert await counts(harness, holding.run) == (0, 0)


@pytest.mark.parametrize("how", ["complete", "fail", "cancel", "terminate", "continue", "deadline", "replace"])
async def test_a_run_that_has_ended_tells_of_none(harness: StoreHarness, how: str) -> None:
    options = {"deadline_at": harness.now + 60_000_000} if how == "deadline" else {}
    holding = await retrying(harness, workflow_id="order-1", **options)
    run = holding.run
    await harness.do(wait_signal(holding))
    assert await counts(harness, run) == (1, 1)
    match how:
        case "complete":
            await harness.do(complete_run(holding))
        case "fail":
            await harness.do(fail_run(holding))
        case "cancel":
            await harness.cancel(run)
            assert await counts(harness, run) == (1, 1), "its cleanup goes on"
            await harness.do(acknowledge_cancel(holding))
        case "terminate":
            await harness.terminate(run)
        case "continue":
            new = harness.ids.run_id(harness.now)
            await harness.do(continue_as(holding, new))
            assert await counts(harness, RunKey("default", new)) == (0, 0)
        case "deadline":
            harness.clock.advance(s=61)
            await harness.fire()
        case _:
            await harness.start("order-1", on_conflict="replace")
    assert (await harness.run(run)).status.ended
    assert await counts(harness, run) == (0, 0)


async def test_a_cancelled_run_that_does_not_stop_in_time_tells_of_none(harness: StoreHarness) -> None:
    holding = await retrying(harness)
    await harness.do(wait_signal(holding))
    the(Parked, await harness.do(park(holding, "approved", "charge")))
    await harness.cancel(holding.run)
    assert await counts(harness, holding.run) == (1, 1)
    harness.clock.advance(s=3_600)
    await harness.fire()
    assert (await harness.run(holding.run)).status is RunStatus.CANCELLED
    assert await counts(harness, holding.run) == (0, 0)


async def test_a_run_that_is_tried_again_waits_again(harness: StoreHarness) -> None:
    holding = await retrying(harness)
    await harness.write(wait_signal(holding), wait_signal(holding, "paid"), wait_signal(holding, step_id="late"))
    await harness.signal(holding.run, "paid")
    await harness.do(begin(holding, "last"))
    await harness.do(fail(holding, "last"))
    await harness.do(fail_run(holding))
    assert await counts(harness, holding.run) == (0, 0)
    assert await harness.retry(holding.run) is RunStatus.PENDING
    waits, retries = await counts(harness, holding.run)
    assert (waits, retries) == (2, 2)
    again = await harness.hold(holding.run)
    await harness.do(fail_run(again))
    assert await harness.retry(holding.run, from_step="paid") is RunStatus.PENDING
    await counts(harness, holding.run)


async def test_a_fork_waits_for_what_was_open(harness: StoreHarness) -> None:
    holding = await retrying(harness)
    await harness.write(wait_signal(holding), wait_signal(holding, "paid"))
    await harness.signal(holding.run, "paid")
    await harness.do(begin(holding, "last"))
    for from_step, waits in (("", 1), ("last", 1), ("paid", 1), ("approved", 0)):
        fork = the(Started, await harness.fork(holding.run, from_step))
        assert await counts(harness, RunKey("default", fork.run_id)) == (waits, 0), from_step
    assert await counts(harness, holding.run) == (1, 1)


async def test_a_value_that_is_replaced_ends_the_wait_and_one_that_is_dropped_opens_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(wait_signal(holding))
    await harness.signal(holding.run)
    seq = (await harness.steps(holding.run))["approved"].seq
    await harness.do(diverged(holding, problem=problem(seq)))
    assert await counts(harness, holding.run) == (0, 0)
    dropped = SignalReplacement(name="approved", payload=None, request_id="drop")
    for _ in range(2):
        await harness.store.replace_signal("default", run_id=holding.run.run_id, change=dropped, now=harness.now)
        assert await counts(harness, holding.run) == (1, 0)
    await harness.signal(holding.run)
    again = await harness.hold(holding.run)
    seq = (await harness.steps(holding.run))["approved"].seq
    await harness.do(diverged(again, problem=problem(seq)))
    better = SignalReplacement(name="approved", payload=payload("better"), request_id="replace")
    await harness.store.replace_signal("default", run_id=holding.run.run_id, change=better, now=harness.now)
    assert await counts(harness, holding.run) == (0, 0)
