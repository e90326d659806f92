"""A look says what is ahead, in one statement: the next time something is due, and the types with runs to claim."""

import time

import pytest

from kagzi.core.limits import LOOK_TYPES
from kagzi.store.protocol import TypeKey, WorkerBeat

from .verbs import CLEANUP_US, DAY_US, LEASE_US, Cellar, complete_run, hand_back


async def test_an_empty_store_has_nothing_ahead(cellar: Cellar) -> None:
    horizon = await cellar.look()
    assert (horizon.next_due_at, horizon.pending) == (None, ())


async def test_the_stores_own_clock_is_told(cellar: Cellar) -> None:
    before = time.time_ns() // 1_000
    horizon = await cellar.look()
    after = time.time_ns() // 1_000
    assert before - 1_000_000 <= horizon.store_now <= after + 1_000_000


async def test_a_look_costs_one_statement_and_beats_at_most_one_more(cellar: Cellar) -> None:
    await cellar.register("worker-1")
    await cellar.asleep()
    before = cellar.store.statements
    await cellar.look()
    assert cellar.store.statements - before == 1
    before = cellar.store.statements
    await cellar.store.look([WorkerBeat("worker-1", 1, 0, 0, cellar.now)] * 5, cellar.now)
    assert cellar.store.statements - before <= 2


async def test_the_nearest_of_all_that_is_due(cellar: Cellar) -> None:
    await cellar.start("delayed", start_at=cellar.now + 50 * DAY_US)
    assert (await cellar.look()).next_due_at == cellar.now + 50 * DAY_US
    await cellar.start("deadline", deadline_at=cellar.now + 40 * DAY_US)
    assert (await cellar.look()).next_due_at == cellar.now + 40 * DAY_US
    await cellar.asleep(s=30 * 86_400, workflow_type="sleeper")
    assert (await cellar.look()).next_due_at == cellar.now + 30 * DAY_US
    cancelled = await cellar.running(workflow_type="cancelled")
    assert (await cellar.look()).next_due_at == cellar.now + LEASE_US
    await cellar.cancel(cancelled.run)
    await cellar.do(hand_back(cancelled))
    assert (await cellar.look()).next_due_at == cellar.now + CLEANUP_US
    held = await cellar.running(workflow_type="held")
    assert (await cellar.look()).next_due_at == cellar.now + LEASE_US
    await cellar.do(complete_run(held))
    assert (await cellar.look()).next_due_at == cellar.now + CLEANUP_US


async def test_what_has_ended_is_due_no_more(cellar: Cellar) -> None:
    holding = await cellar.running(deadline_at=cellar.now + DAY_US)
    await cellar.do(complete_run(holding))
    assert (await cellar.look()).next_due_at is None


async def test_a_deadline_before_the_wake_time_comes_first(cellar: Cellar) -> None:
    await cellar.asleep(s=3_600, deadline_at=cellar.now + 60_000_000)
    assert (await cellar.look()).next_due_at == cellar.now + 60_000_000


@pytest.mark.parametrize("count", [1, 30])
async def test_types_with_runs_to_claim(cellar: Cellar, count: int) -> None:
    await cellar.start_many(count, workflow_type="b")
    await cellar.start_many(count, workflow_type="a", namespace="other")
    await cellar.asleep(workflow_type="asleep")
    await cellar.running(workflow_type="running")
    await cellar.start(workflow_type="later", start_at=cellar.now + DAY_US)
    assert sorted((await cellar.look()).pending) == [("default", "b"), ("other", "a")]
    await cellar.claim(workflow_type="b")
    assert (await cellar.look()).pending == (("other", "a"),)


async def test_no_type_waits_behind_others_for_ever(cellar: Cellar) -> None:
    """A look tells so many types; the next one goes on behind them, and the one after the last begins anew."""
    types = [TypeKey(f"tenant-{number % 3}", f"type-{number}") for number in range(LOOK_TYPES + LOOK_TYPES // 2)]
    commands = [cellar.start_command(namespace=key.namespace, workflow_type=key.workflow_type) for key in types]
    for begin in range(0, len(commands), 500):
        await cellar.write(*commands[begin : begin + 500])
    first = (await cellar.look()).pending
    assert len(first) == LOOK_TYPES
    second = (await cellar.look(after=first[-1])).pending
    assert len(second) == len(types) - LOOK_TYPES
    assert {*first, *second} == {*types}
    assert (await cellar.look(after=second[-1])).pending == ()
    before = cellar.store.statements
    await cellar.look(after=first[-1])
    assert cellar.store.statements - before == 1
