"""What happened, minute by minute: the same whether it is told by the runs or was noted before they went."""

import asyncio

from kagzi.core.states import RunStatus
from kagzi.core.stats import (
    CLASSES,
    DAY_US,
    HOUR_US,
    MINUTE_US,
    STEPS,
    StatsBucket,
    hour_of,
    merge_by,
    minute_of,
    with_live,
)
from kagzi.core.times import Timestamp
from tests.support.duration_classes import class_of

from .verbs import StoreHarness, complete_run, fail_run, leased

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


async def span(  # noqa: PLR0917  a span, and of what
    harness: StoreHarness,
    since: Timestamp,
    until: Timestamp,
    step_us: int = MINUTE_US,
    workflow_type: str = "",
    namespace: str = "default",
) -> list[StatsBucket]:
    """As the engine puts it together."""
    noted = await harness.store.stats(namespace, workflow_type, since, until, step_us, 1_000)
    live = await harness.store.live_stats(namespace, since, minute_of(harness.now) + MINUTE_US)
    return with_live(noted, live, since, until, step_us, workflow_type)


async def stats(harness: StoreHarness, workflow_type: str = "", *, namespace: str = "default") -> list[StatsBucket]:
    end = minute_of(harness.now) + MINUTE_US
    return await span(harness, end - 60 * MINUTE_US, end, MINUTE_US, workflow_type, namespace)


def took(*seconds: float) -> tuple[int, ...]:
    classes = [class_of(round(each * 1_000_000)) for each in seconds]
    return tuple(classes.count(place) for place in range(CLASSES))


async def roll_up(harness: StoreHarness) -> None:
    for _ in range(1_000):
        if not await harness.store.roll_up(harness.now):
            return
    raise AssertionError("there is always more")


async def a_busy_hour(harness: StoreHarness) -> list[StatsBucket]:
    """Runs of two types over some minutes; what is to be told of them."""
    harness.clock.set(minute_of(harness.now) + 1_000_000)
    first = minute_of(harness.now)
    await harness.start_many(20, workflow_type="ship")
    await harness.start_many(2, workflow_type="bill")
    await harness.start_many(3, namespace="elsewhere", workflow_type="ship")
    claimed = await harness.claim(workflow_type="ship", limit=20)
    begun = harness.now
    for n, one in enumerate(claimed):
        harness.clock.set(begun + (n + 1) * 1_000_000)
        await harness.do(complete_run(leased(one)) if n % 4 else fail_run(leased(one)))
    harness.clock.set(first + MINUTE_US + 5)
    pending = (await harness.runs(workflow_types=("bill",)))[0]
    await harness.terminate(pending.run)
    return [
        StatsBucket(minute=first, workflow_type="bill", started=2),
        StatsBucket(
            minute=first,
            workflow_type="ship",
            started=20,
            completed=15,
            failed=5,
            p50_us=10_000_000,
            p95_us=19_000_000,
            took=took(*range(1, 21)),
        ),
        StatsBucket(minute=first + MINUTE_US, workflow_type="bill", cancelled=1),
    ]


async def test_as_the_runs_show_and_as_it_was_noted(harness: StoreHarness) -> None:
    expected = await a_busy_hour(harness)
    assert await stats(harness) == expected
    assert await stats(harness, "bill") == [bucket for bucket in expected if bucket.workflow_type == "bill"]
    await roll_up(harness)
    assert await stats(harness) == expected, "one minute is noted, the other is not over yet"
    harness.clock.advance(s=60)
    await roll_up(harness)
    assert await stats(harness) == expected
    assert [bucket.started for bucket in await stats(harness, namespace="elsewhere")] == [3]


async def test_it_stays_when_the_runs_are_gone(harness: StoreHarness) -> None:
    expected = await a_busy_hour(harness)
    harness.clock.advance(s=60)
    await roll_up(harness)
    assert (await harness.store.purge_runs("default", ENDED, after=0, until=harness.now, limit=100)).runs == 21
    assert await stats(harness) == expected
    for _ in range(3):
        harness.clock.advance(s=60)
        await roll_up(harness)
    assert await stats(harness) == expected, "minutes that are counted again only grow"


async def test_what_is_written_late_is_counted_all_the_same(harness: StoreHarness) -> None:
    """Servers note minutes while others still write into them."""
    harness.clock.set(minute_of(harness.now) + 59_999_999)
    late = harness.now
    await harness.start()
    harness.clock.advance(us=1)
    await roll_up(harness)
    here = harness.now
    harness.clock.set(late)
    await harness.start()
    harness.clock.set(here + MINUTE_US)
    await roll_up(harness)
    assert [bucket.started for bucket in await stats(harness)] == [2]


async def test_servers_that_note_the_same_minutes_count_them_once(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    expected = await a_busy_hour(harness)
    harness.clock.advance(s=61)
    await asyncio.gather(*(roll_up(one) for one in (harness, second_harness, harness, second_harness)))
    assert await stats(second_harness) == expected


async def test_hours_without_a_server_are_caught_up_with_in_bits(harness: StoreHarness) -> None:
    await harness.start()
    first = minute_of(harness.now)
    harness.clock.advance(s=3 * 3600)
    assert await harness.store.roll_up(harness.now), "not all at once"
    await roll_up(harness)
    assert not await harness.store.roll_up(harness.now)
    noted = await harness.store.stats("default", "", first, first + MINUTE_US, MINUTE_US, 10)
    assert [bucket.started for bucket in noted.buckets] == [1]


async def test_no_more_than_requested_and_the_old_is_forgotten(harness: StoreHarness) -> None:
    for _ in range(5):
        await harness.start()
        harness.clock.advance(s=60)
    end = minute_of(harness.now)
    await roll_up(harness)
    begin = end - 10 * MINUTE_US
    first = (await harness.store.stats("default", "", begin, end, MINUTE_US, 2)).buckets
    assert len(first) == 2
    await harness.store.purge_stats(first[1].minute, 0, 1_000)
    left = (await harness.store.stats("default", "", begin, end, MINUTE_US, 10)).buckets
    assert left[0].minute == first[1].minute


# --- longer steps -----------------------------------------------------------------------------------------------------


async def some_hours(harness: StoreHarness, hours: int = 4) -> Timestamp:
    """Runs that took ever longer, one every ten minutes or so. Returns when the first hour began."""
    begin = hour_of(harness.now) + HOUR_US
    harness.clock.set(begin)
    number = 0
    while harness.now < begin + hours * HOUR_US:
        number += 1
        workflow_type = ("ship", "bill")[number % 2]
        await harness.start(workflow_type=workflow_type)
        holding = leased(await harness.claim_one(workflow_type=workflow_type))
        harness.clock.advance(s=2.0**number / 1_000)
        await harness.do(complete_run(holding) if number % 3 else fail_run(holding))
        harness.clock.advance(s=600 - harness.now % (600 * 1_000_000) / 1_000_000)
        await roll_up(harness)
    return begin


async def test_every_step_is_the_sum_of_its_minutes(harness: StoreHarness) -> None:
    begin = await some_hours(harness)
    begin -= begin % DAY_US
    end = begin + 2 * DAY_US
    minutes = await span(harness, begin, end)
    assert sum(bucket.started for bucket in minutes) >= 15
    for step_us in STEPS.values():
        assert await span(harness, begin, end, step_us) == merge_by(minutes, step_us)
        assert await span(harness, begin, end, step_us, "ship") == [
            bucket for bucket in merge_by(minutes, step_us) if bucket.workflow_type == "ship"
        ]


async def test_hours_stay_when_runs_and_minutes_are_gone(harness: StoreHarness) -> None:
    begin = await some_hours(harness)
    end = hour_of(harness.now) + HOUR_US
    hours = await span(harness, begin, end, HOUR_US)
    over = [bucket for bucket in hours if bucket.minute < hour_of(harness.now)]
    assert len(over) == 8
    await harness.store.purge_runs("default", ENDED, after=0, until=harness.now, limit=1_000)
    await harness.store.purge_stats(hour_of(harness.now), 0, 10_000)
    for _ in range(3):
        harness.clock.advance(s=60)
        await roll_up(harness)
    assert [bucket for bucket in await span(harness, begin, end, HOUR_US) if bucket in over] == over
    await harness.store.purge_stats(0, begin + HOUR_US, 10_000)
    left = await span(harness, begin, end, HOUR_US)
    assert min(bucket.minute for bucket in left) == begin + HOUR_US


async def test_an_hour_is_counted_once_by_several_servers_and_late_minutes_count(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    begin = hour_of(harness.now) + HOUR_US
    harness.clock.set(begin + HOUR_US - 1)
    await harness.start()
    harness.clock.advance(us=1)
    await asyncio.gather(*(roll_up(one) for one in (harness, second_harness, harness)))
    here = harness.now
    harness.clock.set(here - 1)
    await harness.start()  # written late, into an hour that is summed up
    for minutes in (1, 2, 30):
        harness.clock.set(here + minutes * MINUTE_US)
        await asyncio.gather(*(roll_up(one) for one in (harness, second_harness)))
    [hour] = await span(harness, begin, begin + HOUR_US, HOUR_US)
    assert hour.started == 2


async def test_the_hour_that_was_left_is_summed_up_after_days_without_a_server(harness: StoreHarness) -> None:
    begin = hour_of(harness.now) + HOUR_US
    harness.clock.set(begin + 30 * MINUTE_US)
    await harness.start()
    harness.clock.advance(s=60)
    await roll_up(harness)
    harness.clock.advance(s=3 * 86_400)
    await roll_up(harness)
    [hour] = await span(harness, begin, begin + HOUR_US, HOUR_US)
    assert hour.started == 1
