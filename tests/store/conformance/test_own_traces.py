"""From which claim on each has a trace of its own; and the context of a run that continues another."""

import pytest

from kagzi.core.records import ClaimedRun, Payload
from kagzi.core.schedules.scheduled_time import split_scheduled_time, with_scheduled_time
from kagzi.core.traces.ids import OWN_TRACE_SEQ
from kagzi.core.workflow_types.queues import TypeLimits

from .verbs import LEASE_US, StoreHarness, begin, complete, continue_as, hand_back, leased

HOUR_US = 3_600_000_000


async def claim(harness: StoreHarness) -> ClaimedRun:
    """As an engine does whose `trace_max_age` is an hour."""
    now = harness.now
    (claimed,) = (await harness.store.claim([harness.want()], 5, now, now + LEASE_US, old_before=now - HOUR_US)).runs
    return claimed


@pytest.mark.parametrize("limited", [False, True])
async def test_claims_of_an_old_run_are_noted_from_the_first_on(harness: StoreHarness, limited: bool) -> None:
    if limited:
        await harness.store.put_type_limits("default", "hello", TypeLimits(max_running=5), harness.now)
    run = await harness.start()
    noted: list[int] = []
    for _ in range(4):
        claimed = await claim(harness)
        noted.append(claimed.own_traces_from)
        assert (await harness.run(run)).own_traces_from == claimed.own_traces_from
        await harness.write(hand_back(leased(claimed)))
        harness.clock.advance(us=HOUR_US // 2)
    assert noted == [0, 0, 0, 4], "older than an hour, not as old"


async def test_claims_of_a_long_run_are_noted_too(harness: StoreHarness) -> None:
    await harness.start()
    first = await claim(harness)
    assert first.own_traces_from == 0
    steps = [f"more {number}" for number in range(OWN_TRACE_SEQ // 2)]
    for place in range(0, len(steps), 100):
        part = steps[place : place + 100]
        await harness.write(
            *(each for step in part for each in (begin(leased(first), step), complete(leased(first), step)))
        )
    await harness.write(hand_back(leased(first)))
    assert (await claim(harness)).own_traces_from == 2


@pytest.mark.parametrize("context", [None, Payload(b'{"a": 1}', {"k": "v"})])
@pytest.mark.parametrize("before", [None, Payload(b'{"b": 2}')])
@pytest.mark.parametrize("scheduled", [False, True])
async def test_a_successor_has_the_context_that_was_said_or_that_of_the_run(
    harness: StoreHarness, context: Payload | None, before: Payload | None, scheduled: bool
) -> None:
    at = harness.now if scheduled else None
    run = await harness.start(context=with_scheduled_time(before, at))
    new = harness.ids.run_id(harness.now)
    await harness.write(continue_as(await harness.hold(run), new, context=context))
    claimed = await harness.claim_one()
    assert claimed.run.run_id == new
    assert split_scheduled_time(claimed.context) == (before if context is None else context, at)
