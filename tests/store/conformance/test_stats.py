"""What happened, minute by minute: the same whether it is told by the runs or was noted before they went."""

import asyncio

from kagzi.core.states import RunStatus
from kagzi.core.stats import MINUTE_US, StatsBucket, minute_of

from .verbs import Cellar, complete_run, fail_run, held

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


async def stats(cellar: Cellar, workflow_type: str = "", *, namespace: str = "default") -> list[StatsBucket]:
    end = minute_of(cellar.now) + MINUTE_US
    return list(await cellar.store.stats(namespace, workflow_type, end - 60 * MINUTE_US, end, 1_000))


async def roll_up(cellar: Cellar) -> None:
    for _ in range(1_000):
        if not await cellar.store.roll_up(cellar.now):
            return
    raise AssertionError("there is always more")


async def a_busy_hour(cellar: Cellar) -> list[StatsBucket]:
    """Runs of two types over some minutes; what is to be told of them."""
    cellar.clock.set(minute_of(cellar.now) + 1_000_000)
    first = minute_of(cellar.now)
    await cellar.start_many(20, workflow_type="ship")
    await cellar.start_many(2, workflow_type="bill")
    await cellar.start_many(3, namespace="elsewhere", workflow_type="ship")
    claimed = await cellar.claim(workflow_type="ship", limit=20)
    begun = cellar.now
    for n, one in enumerate(claimed):
        cellar.clock.set(begun + (n + 1) * 1_000_000)
        await cellar.do(complete_run(held(one)) if n % 4 else fail_run(held(one)))
    cellar.clock.set(first + MINUTE_US + 5)
    pending = (await cellar.runs(workflow_types=("bill",)))[0]
    await cellar.terminate(pending.run)
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
        ),
        StatsBucket(minute=first + MINUTE_US, workflow_type="bill", cancelled=1),
    ]


async def test_as_the_runs_tell_and_as_it_was_noted(cellar: Cellar) -> None:
    expected = await a_busy_hour(cellar)
    assert await stats(cellar) == expected
    assert await stats(cellar, "bill") == [bucket for bucket in expected if bucket.workflow_type == "bill"]
    await roll_up(cellar)
    assert await stats(cellar) == expected, "one minute is noted, the other is not over yet"
    cellar.clock.advance(s=60)
    await roll_up(cellar)
    assert await stats(cellar) == expected
    assert [bucket.started for bucket in await stats(cellar, namespace="elsewhere")] == [3]


async def test_it_stays_when_the_runs_are_gone(cellar: Cellar) -> None:
    expected = await a_busy_hour(cellar)
    cellar.clock.advance(s=60)
    await roll_up(cellar)
    assert (await cellar.store.purge_runs("default", ENDED, after=0, until=cellar.now, limit=100)).runs == 21
    assert await stats(cellar) == expected
    for _ in range(3):
        cellar.clock.advance(s=60)
        await roll_up(cellar)
    assert await stats(cellar) == expected, "minutes that are counted again only grow"


async def test_what_is_written_late_is_counted_all_the_same(cellar: Cellar) -> None:
    """Servers note minutes while others still write into them."""
    cellar.clock.set(minute_of(cellar.now) + 59_999_999)
    late = cellar.now
    await cellar.start()
    cellar.clock.advance(us=1)
    await roll_up(cellar)
    here = cellar.now
    cellar.clock.set(late)
    await cellar.start()
    cellar.clock.set(here + MINUTE_US)
    await roll_up(cellar)
    assert [bucket.started for bucket in await stats(cellar)] == [2]


async def test_servers_that_note_the_same_minutes_count_them_once(cellar: Cellar, second_cellar: Cellar) -> None:
    expected = await a_busy_hour(cellar)
    cellar.clock.advance(s=61)
    await asyncio.gather(*(roll_up(one) for one in (cellar, second_cellar, cellar, second_cellar)))
    assert await stats(second_cellar) == expected


async def test_hours_without_a_server_are_caught_up_with_in_bits(cellar: Cellar) -> None:
    await cellar.start()
    first = minute_of(cellar.now)
    cellar.clock.advance(s=3 * 3600)
    assert await cellar.store.roll_up(cellar.now), "not all at once"
    await roll_up(cellar)
    assert not await cellar.store.roll_up(cellar.now)
    found = await cellar.store.stats("default", "", first, first + MINUTE_US, 10)
    assert [bucket.started for bucket in found] == [1]


async def test_no_more_than_asked_for_and_the_old_is_forgotten(cellar: Cellar) -> None:
    for _ in range(5):
        await cellar.start()
        cellar.clock.advance(s=60)
    end = minute_of(cellar.now)
    await roll_up(cellar)
    begin = end - 10 * MINUTE_US
    first = await cellar.store.stats("default", "", begin, end, 2)
    assert len(first) == 2
    await cellar.store.purge_stats(first[1].minute, 1_000)
    left = await cellar.store.stats("default", "", begin, end, 10)
    assert left[0].minute == first[1].minute
