"""A look says what is ahead, in one statement: the next time something is due, and the types with runs to claim."""

import time

import pytest

from kagzi.core.limits import POLL_TYPES
from kagzi.store.protocol import Heartbeat, TypeKey

from .verbs import CLEANUP_US, DAY_US, LEASE_US, StoreHarness, complete_run, hand_back


async def test_an_empty_store_has_nothing_ahead(harness: StoreHarness) -> None:
    polled = await harness.poll()
    assert (polled.next_due_at, polled.pending) == (None, ())


async def test_the_stores_own_clock_is_returned(harness: StoreHarness) -> None:
    before = time.time_ns() // 1_000
    polled = await harness.poll()
    after = time.time_ns() // 1_000
    assert before - 1_000_000 <= polled.store_now <= after + 1_000_000


async def test_a_poll_costs_one_statement_and_heartbeats_at_most_one_more(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    await harness.asleep()
    before = harness.store.statements
    await harness.poll()
    assert harness.store.statements - before == 1
    before = harness.store.statements
    await harness.store.poll([Heartbeat("worker-1", 1, 0, 0, harness.now)] * 5, harness.now)
    assert harness.store.statements - before <= 2


async def test_the_nearest_of_all_that_is_due(harness: StoreHarness) -> None:
    await harness.start("delayed", start_at=harness.now + 50 * DAY_US)
    assert (await harness.poll()).next_due_at == harness.now + 50 * DAY_US
    await harness.start("deadline", deadline_at=harness.now + 40 * DAY_US)
    assert (await harness.poll()).next_due_at == harness.now + 40 * DAY_US
    await harness.asleep(s=30 * 86_400, workflow_type="sleeper")
    assert (await harness.poll()).next_due_at == harness.now + 30 * DAY_US
    cancelled = await harness.running(workflow_type="cancelled")
    assert (await harness.poll()).next_due_at == harness.now + LEASE_US
    await harness.cancel(cancelled.run)
    await harness.do(hand_back(cancelled))
    assert (await harness.poll()).next_due_at == harness.now + CLEANUP_US
    leased = await harness.running(workflow_type="held")
    assert (await harness.poll()).next_due_at == harness.now + LEASE_US
    await harness.do(complete_run(leased))
    assert (await harness.poll()).next_due_at == harness.now + CLEANUP_US


async def test_what_has_ended_is_due_no_more(harness: StoreHarness) -> None:
    holding = await harness.running(deadline_at=harness.now + DAY_US)
    await harness.do(complete_run(holding))
    assert (await harness.poll()).next_due_at is None


async def test_a_deadline_before_the_wake_time_comes_first(harness: StoreHarness) -> None:
    await harness.asleep(s=3_600, deadline_at=harness.now + 60_000_000)
    assert (await harness.poll()).next_due_at == harness.now + 60_000_000


@pytest.mark.parametrize("count", [1, 30])
async def test_types_with_runs_to_claim(harness: StoreHarness, count: int) -> None:
    await harness.start_many(count, workflow_type="b")
    await harness.start_many(count, workflow_type="a", namespace="other")
    await harness.asleep(workflow_type="asleep")
    await harness.running(workflow_type="running")
    await harness.start(workflow_type="later", start_at=harness.now + DAY_US)
    assert sorted((await harness.poll()).pending) == [("default", "b"), ("other", "a")]
    await harness.claim(workflow_type="b")
    assert (await harness.poll()).pending == (("other", "a"),)


async def test_no_type_waits_behind_others_for_ever(harness: StoreHarness) -> None:
    """A look tells so many types; the next one goes on behind them, and the one after the last begins anew."""
    types = [TypeKey(f"tenant-{number % 3}", f"type-{number}") for number in range(POLL_TYPES + POLL_TYPES // 2)]
    commands = [harness.start_command(namespace=key.namespace, workflow_type=key.workflow_type) for key in types]
    for begin in range(0, len(commands), 500):
        await harness.write(*commands[begin : begin + 500])
    first = (await harness.poll()).pending
    assert len(first) == POLL_TYPES
    second = (await harness.poll(after=first[-1])).pending
    assert len(second) == len(types) - POLL_TYPES
    assert {*first, *second} == {*types}
    assert (await harness.poll(after=second[-1])).pending == ()
    before = harness.store.statements
    await harness.poll(after=first[-1])
    assert harness.store.statements - before == 1
