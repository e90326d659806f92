"""Types with limits: who may begin, in which order, and that nobody begins who may not, however many claim."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from kagzi.core.records import NamespaceRecord, RunKey, RunLease
from kagzi.core.run.outcomes import RunClosed, Started
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_MS, US_PER_S
from kagzi.core.workflow_types.queues import TypeLimits
from kagzi.store.protocol import TypeKey

from .verbs import StoreHarness, complete_run, continue_as, leased, park, sleep, the

HELLO = TypeKey("default", "hello")


async def limit(harness: StoreHarness, workflow_type: str = "hello", namespace: str = "default", **limits: Any) -> None:
    await harness.store.put_type_limits(namespace, workflow_type, TypeLimits(**limits), harness.now)


async def test_a_paused_type_is_not_claimed_and_says_so(harness: StoreHarness) -> None:
    run = await harness.start()
    await limit(harness, paused=True)
    answer = await harness.claimed(harness.want())
    assert list(answer.runs) == []
    assert answer.waiting == {HELLO}
    assert answer.limited == {HELLO}
    await harness.start(workflow_type="other")
    assert len(await harness.claim(workflow_type="other")) == 1
    await limit(harness)
    assert [one.run for one in await harness.claim()] == [run]


async def test_a_paused_type_without_runs_holds_nothing_back(harness: StoreHarness) -> None:
    await limit(harness, paused=True)
    assert (await harness.claimed(harness.want())).waiting == frozenset()


async def test_no_more_run_than_may(harness: StoreHarness) -> None:
    await harness.start_many(5)
    await limit(harness, max_running=2)
    first = await harness.claimed(harness.want(limit=1))
    second = await harness.claimed(harness.want())
    assert (len(first.runs), len(second.runs)) == (1, 1)
    assert second.waiting == {HELLO}
    assert (await harness.claimed(harness.want())).waiting == {HELLO}
    await harness.do(complete_run(leased(first.runs[0])))
    assert len(await harness.claim()) == 1


async def test_a_sleeping_run_holds_no_permit(harness: StoreHarness) -> None:
    await limit(harness, max_running=1)
    holding = await harness.running()
    await harness.start()
    assert await harness.claim() == []
    await harness.write(sleep(holding, "nap", s=60), park(holding, "nap"))
    assert len(await harness.claim()) == 1


async def test_a_lost_holder_gives_its_permit_back(harness: StoreHarness) -> None:
    await limit(harness, max_running=1)
    holding = await harness.running()
    other = await harness.start(priority=1)
    assert await harness.claim() == []
    await harness.store.release([holding], harness.now)
    assert [one.run for one in await harness.claim()] == [other]


async def test_a_limit_below_what_runs_lets_nothing_begin(harness: StoreHarness) -> None:
    await harness.start_many(4)
    claimed = await harness.claim(limit=3)
    await limit(harness, max_running=1)
    for one in claimed[:2]:
        await harness.do(complete_run(leased(one)))
        assert await harness.claim() == []
    await harness.do(complete_run(leased(claimed[2])))
    assert len(await harness.claim()) == 1


async def test_priority_counts_within_limits(harness: StoreHarness) -> None:
    await limit(harness, max_running=2)
    low, high, highest = [await harness.start(priority=priority) for priority in (0, 5, 9)]
    assert [one.run for one in await harness.claim()] == [highest, high]
    await harness.store.release([leased(one) for one in await harness.claim()], harness.now)
    assert low not in [one.run for one in await harness.claim()]


# --- keys -------------------------------------------------------------------------------------------------------------


async def keyed(harness: StoreHarness, keys: str, **options: Any) -> list[RunKey]:
    return [await harness.start(concurrency_key=key, **options) for key in keys]


async def test_one_run_of_a_key_at_a_time(harness: StoreHarness) -> None:
    await limit(harness, max_running_per_key=1)
    runs = await keyed(harness, "aab")
    claimed = await harness.claimed(harness.want())
    assert {one.run for one in claimed.runs} == {runs[0], runs[2]}
    assert claimed.waiting == {HELLO}
    await harness.do(complete_run(leased(next(one for one in claimed.runs if one.run == runs[0]))))
    assert [one.run for one in await harness.claim()] == [runs[1]]


async def test_several_of_a_key_if_they_may(harness: StoreHarness) -> None:
    await limit(harness, max_running_per_key=3)
    await keyed(harness, "aaaaab")
    assert len(await harness.claim()) == 4


async def test_runs_without_a_key_count_to_the_type_only(harness: StoreHarness) -> None:
    before = await harness.start()
    await limit(harness, max_running_per_key=1, max_running=4)
    await harness.start_many(4)
    await keyed(harness, "aa")
    claimed = await harness.claim()
    assert len(claimed) == 4
    assert before in [one.run for one in claimed]


async def test_a_run_shows_its_key(harness: StoreHarness) -> None:
    await limit(harness, max_running_per_key=1)
    with_key, without = await harness.start(concurrency_key="a"), await harness.start()
    assert (await harness.run(with_key)).concurrency_key == "a"
    assert (await harness.run(without)).concurrency_key == ""


async def test_a_fork_and_a_continuation_keep_the_key(harness: StoreHarness) -> None:
    holding = await harness.running(concurrency_key="a")
    await harness.done(holding, "one")
    forked = the(Started, await harness.fork(holding.run, "one"))
    assert (await harness.run(RunKey("default", forked.run_id))).concurrency_key == "a"
    closed = the(RunClosed, await harness.do(continue_as(holding, harness.ids.run_id(harness.now))))
    assert (await harness.run(RunKey("default", closed.continued_as or ""))).concurrency_key == "a"


async def test_keys_take_turns(harness: StoreHarness) -> None:
    """One key with a long queue does not make the others wait for its end."""
    await limit(harness, max_running_per_key=1, max_running=1)
    await harness.start_many(20, concurrency_key="a")
    await keyed(harness, "bcbc")
    order: list[str] = []
    for _ in range(10):
        (one,) = await harness.claim()
        order.append((await harness.run(one.run)).concurrency_key)
        await harness.do(complete_run(leased(one)))
    assert Counter(order[:6]) == {"a": 2, "b": 2, "c": 2}
    assert order[6:] == ["a"] * 4


async def test_many_keys_are_reached_in_turn(harness: StoreHarness) -> None:
    """More keys than are looked at in one claim, nearly all of them busy."""
    await limit(harness, max_running_per_key=1)
    for n in range(300):
        await harness.start(concurrency_key=f"key-{n:03}")
    seen: set[RunKey] = set()
    for _ in range(30):
        seen |= {one.run for one in await harness.claim(limit=10)}
    assert len(seen) == 300
    answer = await harness.claimed(harness.want())
    assert (list(answer.runs), answer.waiting) == ([], frozenset())


async def test_keys_beyond_those_that_nobody_here_can_run(harness: StoreHarness) -> None:
    await limit(harness, max_running_per_key=1)
    for n in range(200):
        await harness.start(concurrency_key=f"a-{n:03}", version="9")
    run = await harness.start(concurrency_key="z")
    answer = await harness.claimed(harness.want(limit=1))
    for _ in range(5):
        if answer.runs:
            break
        assert answer.more == {HELLO}
        answer = await harness.claimed(harness.want(limit=1))
    assert [one.run for one in answer.runs] == [run]


async def test_limits_are_kept_by_many_who_claim_at_once(harness: StoreHarness, second_harness: StoreHarness) -> None:
    await limit(harness, max_running_per_key=1, max_running=7)
    keys = [f"k{n}" for n in range(10)]
    for key in keys:
        await harness.start_many(4, concurrency_key=key)
    running: dict[RunKey, RunLease] = {}
    done = 0
    for _ in range(200):
        answers = await asyncio.gather(
            *((harness, second_harness)[n % 2].claim(limit=3, worker_id=f"worker-{n}") for n in range(6))
        )
        for one in [one for answer in answers for one in answer]:
            running[one.run] = leased(one)
        records = [await harness.run(run) for run in running]
        assert all(record.status is RunStatus.RUNNING for record in records)
        assert len(records) <= 7
        assert max(Counter(record.concurrency_key for record in records).values(), default=0) <= 1
        for run in list(running)[:3]:
            await harness.do(complete_run(running.pop(run)))
            done += 1
        if done == 40:
            return
    raise AssertionError(f"only {done} of 40 came to an end")


# --- rates ------------------------------------------------------------------------------------------------------------


async def test_a_rate_spreads_starts_and_says_when_the_next_may_be(harness: StoreHarness) -> None:
    await limit(harness, starts_per_second=2)
    await harness.start_many(3)
    began = harness.now
    answer = await harness.claimed(harness.want())
    assert len(answer.runs) == 1
    assert answer.waiting == {HELLO}
    assert answer.again_at == {HELLO: began + US_PER_S // 2}
    harness.clock.advance(us=US_PER_S // 2 - 1)
    assert await harness.claim() == []
    harness.clock.advance(us=1)
    assert len(await harness.claim()) == 1


async def test_a_high_rate_lets_a_tenth_of_a_second_begin_at_once(harness: StoreHarness) -> None:
    await limit(harness, starts_per_second=100)
    await harness.start_many(40)
    assert len(await harness.claim()) == 10
    harness.clock.advance(us=50 * US_PER_MS)
    assert len(await harness.claim()) == 5
    harness.clock.advance(us=10 * US_PER_S)
    assert len(await harness.claim()) == 10


async def test_a_rate_counts_first_claims_only(harness: StoreHarness) -> None:
    holding = await harness.running()
    await limit(harness, starts_per_second=1)
    await harness.start_many(3)
    assert len(await harness.claim()) == 1
    await harness.store.release([holding], harness.now)
    assert [one.run for one in await harness.claim()] == [holding.run]


async def test_a_rate_per_key(harness: StoreHarness) -> None:
    await limit(harness, starts_per_second_per_key=1)
    await keyed(harness, "aab")
    began = harness.now
    answer = await harness.claimed(harness.want())
    assert len(answer.runs) == 2
    assert answer.again_at == {HELLO: began + US_PER_S}
    harness.clock.advance(us=US_PER_S)
    assert len(await harness.claim()) == 1
    harness.clock.advance(us=US_PER_S)
    await keyed(harness, "ac")
    assert len(await harness.claim()) == 2


async def test_a_new_rate_begins_anew(harness: StoreHarness) -> None:
    await limit(harness, starts_per_second=0.01)
    await harness.start_many(3)
    assert len(await harness.claim()) == 1
    await limit(harness, starts_per_second=5)
    assert len(await harness.claim()) == 1


# --- born leased ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{"paused": True}, {"max_running": 9}, {"starts_per_second": 9.0}])
async def test_nothing_is_inserted_as_leased_where_runs_are_counted(
    harness: StoreHarness, limits: dict[str, Any]
) -> None:
    await limit(harness, **limits)
    command = harness.start_command(assignment=harness.assignment(), version="1")
    started = await harness.do(command)
    assert started.status is RunStatus.PENDING  # type: ignore[union-attr]
    record = await harness.run(command.run)
    assert (record.status, record.worker_id, record.version) == (RunStatus.PENDING, None, "1")
    await limit(harness)
    assert [one.lease.counter for one in await harness.claim()] == [1]


async def test_nothing_is_inserted_as_leased_in_a_namespace_that_counts_runs(harness: StoreHarness) -> None:
    await harness.store.put_namespace(NamespaceRecord(namespace="small", running_runs_limit=1), harness.now)
    command = harness.start_command(assignment=harness.assignment(), namespace="small")
    started = await harness.do(command)
    assert started.status is RunStatus.PENDING  # type: ignore[union-attr]
    await harness.start(namespace="small")
    answer = await harness.claimed(harness.want(namespace="small"))
    assert len(answer.runs) == 1
    assert answer.waiting == {TypeKey("small", "hello"), TypeKey("small", "")}


async def test_both_limits_hold(harness: StoreHarness) -> None:
    await harness.store.put_namespace(NamespaceRecord(namespace="small", running_runs_limit=2), harness.now)
    await limit(harness, namespace="small", max_running=5)
    await harness.start_many(4, namespace="small")
    assert len(await harness.claim(namespace="small")) == 2
    assert await harness.claim(namespace="small") == []
