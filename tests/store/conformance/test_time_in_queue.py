"""How long a run waits for workers: when its first wait began, the sum of those that are over, and the one under
way."""

import pytest

from kagzi.core.records import Lease, RunKey, RunLease
from kagzi.core.times import US_PER_S
from kagzi.core.workflow_types.queues import TypeLimits

from .verbs import StoreHarness, leased


async def waits_of(harness: StoreHarness, run: RunKey) -> tuple[int | None, float, int | None]:
    """As get and list show them: `queued_at`, `queued_us` in seconds, `ready_at`."""
    record = await harness.run(run)
    [listed] = [each for each in await harness.runs() if each.run == run]
    shown = (record.queued_at, record.queued_us / US_PER_S, record.ready_at)
    assert shown == (listed.queued_at, listed.queued_us / US_PER_S, listed.ready_at)
    return shown


def later(harness: StoreHarness, s: float) -> int:
    harness.clock.advance(us=int(s * US_PER_S))
    return harness.now


@pytest.mark.parametrize("limits", [None, TypeLimits(max_running=5)], ids=["unlimited", "limited"])
async def test_waits_for_workers_add_up(harness: StoreHarness, limits: TypeLimits | None) -> None:
    if limits is not None:
        await harness.store.put_type_limits("default", "hello", limits, harness.now)
    created = harness.now
    run = await harness.start()
    later(harness, 149)
    assert await waits_of(harness, run) == (None, 0, created)
    first = await harness.claim_one()
    assert await waits_of(harness, run) == (created, 149, None)
    later(harness, 10)
    released = harness.now
    await harness.store.release([leased(first)], released)
    assert await waits_of(harness, run) == (created, 149, released)
    later(harness, 2.5)
    await harness.claim_one()
    assert await waits_of(harness, run) == (created, 151.5, None)


async def test_a_delayed_start_waits_from_when_it_is_due(harness: StoreHarness) -> None:
    run = await harness.start(start_at=harness.now + 60 * US_PER_S)
    due = later(harness, 60)
    await harness.fire()
    later(harness, 3)
    await harness.claim_one()
    assert await waits_of(harness, run) == (due, 3, None)


async def test_a_run_that_a_worker_gets_at_once_has_not_waited(harness: StoreHarness) -> None:
    run = await harness.start(assignment=harness.assignment())
    assert await waits_of(harness, run) == (None, 0, None)


@pytest.mark.parametrize("verb", ["pause", "terminate", "cancel"])
async def test_a_wait_also_ends_without_a_worker(harness: StoreHarness, verb: str) -> None:
    run = await harness.start()
    later(harness, 5)
    await getattr(harness, verb)(run)
    later(harness, 5)
    assert await waits_of(harness, run) == (None, 5, None)


async def test_a_deadline_ends_the_wait(harness: StoreHarness) -> None:
    run = await harness.start(deadline_at=harness.now + 7 * US_PER_S)
    later(harness, 7)
    await harness.fire()
    assert await waits_of(harness, run) == (None, 7, None)


async def test_a_wait_after_a_start_without_one_is_not_the_first_wait(harness: StoreHarness) -> None:
    assignment = harness.assignment()
    run = await harness.start(assignment=assignment)
    record = await harness.run(run)
    assert record.claims == 1
    holding = RunLease(run, Lease(record.claims, assignment.nonce))
    later(harness, 1)
    released = harness.now
    await harness.store.release([holding], released)
    later(harness, 4)
    await harness.claim_one()
    assert await waits_of(harness, run) == (None, 4, None)
