"""Figures: in steps, bounded, and what the runs tell looked up once for all who ask."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kagzi.core import limits
from kagzi.core.errors import InvalidArgument, Unavailable
from kagzi.core.states import RunStatus
from kagzi.core.stats import HOUR_US, MINUTE_US, OTHER, STEP_BUCKETS, STEP_TYPES
from kagzi.engine.services.shared import Shared
from kagzi.engine.services.stats import Figures, Stats
from kagzi.store.sqlite import SqliteStore
from kagzi.system import SystemRng
from tests.store.conformance.verbs import StoreHarness
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds


async def test_one_look_answers_all_who_ask_within_its_age() -> None:
    reads = 0
    proceed = asyncio.Event()

    async def read() -> int:
        nonlocal reads
        reads += 1
        await proceed.wait()
        return reads

    shared: Shared[int] = Shared(60.0, keys=2)
    asking = [asyncio.create_task(shared.get("a", read)) for _ in range(5)]
    await asyncio.sleep(0)
    proceed.set()
    assert await asyncio.gather(*asking) == [1] * 5
    assert await shared.get("a", read) == 1
    assert await shared.get("b", read) == 2
    assert await Shared[int](0.0).get("a", read) == 3
    assert await shared.get("c", read) == 4
    assert await shared.get("a", read) == 5, "the oldest was forgotten"


async def test_a_look_that_fails_is_nobody_elses() -> None:
    async def fails() -> int:
        raise Unavailable("away")

    async def works() -> int:
        return 7

    shared: Shared[int] = Shared(60.0)
    with pytest.raises(Unavailable):
        await shared.get("a", fails)
    assert await shared.get("a", works) == 7


@pytest.fixture
async def harness() -> AsyncIterator[StoreHarness]:
    store = SqliteStore(":memory:", rng=SystemRng())
    await store.open()
    yield StoreHarness(store, FakeClock(), CountingIds())
    await store.close()


async def get(stats: Stats, step: str = "", **span: int) -> Figures:
    return await stats.get("default", since=span.get("since"), until=span.get("until"), workflow_type="", step=step)


async def test_what_the_runs_tell_is_looked_up_once_in_a_while(harness: StoreHarness) -> None:
    stats = Stats(harness.store, harness.clock)
    await harness.start_many(3)
    first = await get(stats)
    assert (first.buckets[0].started, first.open_by_status[RunStatus.PENDING]) == (3, 3)
    await harness.start_many(2)
    before = harness.store.statements
    again = await asyncio.gather(*(get(stats, step) for step in ("", "1m", "5m")))
    assert [figures.buckets[0].started for figures in again] == [3, 3, 3], "up to five seconds old"
    assert harness.store.statements - before <= 3 * 2, "the notes, and no look at runs"
    assert [figures.step for figures in again] == ["1m", "1m", "5m"]


async def test_an_answer_is_bounded_in_time_and_types(harness: StoreHarness) -> None:
    stats = Stats(harness.store, harness.clock)
    for number in range(STEP_TYPES + 5):
        await harness.start_many(number + 1, workflow_type=f"type-{number:02}")
    every = await get(stats)
    assert len(every.buckets) == STEP_TYPES + 5
    hour = await get(stats, "1h")
    assert [bucket.workflow_type for bucket in hour.buckets][:2] == [OTHER, "type-05"]
    assert len(hour.buckets) == STEP_TYPES + 1
    assert hour.buckets[0].started == 1 + 2 + 3 + 4 + 5

    end = harness.now - harness.now % HOUR_US + HOUR_US
    await get(stats, "1h", since=end - STEP_BUCKETS * HOUR_US, until=end)
    with pytest.raises(InvalidArgument, match="201 steps of 1h") as refusal:
        await get(stats, "1h", since=end - (STEP_BUCKETS + 1) * HOUR_US, until=end)
    assert refusal.value.field == "since"
    with pytest.raises(InvalidArgument, match="must be one of 1m, 5m, 1h, 1d"):
        await get(stats, "2h")
    await get(stats, since=end - 1_000 * MINUTE_US)  # without a step it is not so narrow


async def test_minutes_and_hours_are_forgotten_in_their_time(harness: StoreHarness) -> None:
    stats = Stats(harness.store, harness.clock)
    await harness.start()
    began = harness.now
    harness.clock.advance(s=7_200)
    while await stats.roll_up(harness.now):
        pass

    async def buckets(step_us: int) -> int:
        since = began - began % HOUR_US
        return len((await harness.store.stats("default", "", since, since + HOUR_US, step_us, 10)).buckets)

    assert (await buckets(MINUTE_US), await buckets(HOUR_US)) == (1, 1)
    await stats.forget(harness.now + limits.STATS_KEPT_US)
    assert (await buckets(MINUTE_US), await buckets(HOUR_US)) == (0, 1)
    await stats.forget(harness.now + limits.STATS_HOURS_KEPT_US)
    assert (await buckets(MINUTE_US), await buckets(HOUR_US)) == (0, 0)
