"""Limits per type and key, kept by real servers and workers: swept from the ledger, which knows nothing of Kagzi."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from kagzi import NotFound, ResourceExhausted, Run, RunStatus
from tests.support.lateness import measured_lateness
from tests.support.ledger import Entry
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE

from . import queue_flows as flows
from .cluster import UNNOTIFIED_S, Cluster, until_status

FLOWS = "tests.acceptance.queue_flows"


async def workers(cluster: Cluster, slots: int = 40) -> None:
    """One at each server, so that permits travel between them."""
    for server in cluster.servers:
        await cluster.worker("--max-concurrent", str(slots), address=server.grpc, module=FLOWS)


def most_at_once(entries: list[Entry]) -> Counter[str]:
    """By key."""
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for entry in entries:
        inside[entry.note] += {"begin": 1, "end": -1}[entry.event]
        most[entry.note] = max(most[entry.note], inside[entry.note])
    return most


async def test_a_thousand_runs_of_fifty_keys_one_of_each_at_a_time(cluster: Cluster) -> None:
    """Never two of a key at once; all complete; no key waits for the end of another."""
    keys = [f"key-{number:02}" for number in range(50)]
    await workers(cluster)
    async with cluster.client() as client:
        await client.workflow_types.update(flows.keyed, max_running_per_key=1)
        # The first key has most of the runs, and they come first.
        plan = ["key-00"] * 118 + [keys[1 + n % 49] for n in range(882)]
        began = time.monotonic()
        runs = await client.start_many(client.start(flows.keyed, (key, 0.002), concurrency_key=key) for key in plan)
        results = await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs))
        took = time.monotonic() - began
    assert results == plan
    entries = cluster.ledger.entries()
    assert len([entry for entry in entries if entry.event == "begin"]) == 1_000
    assert set(most_at_once(entries).values()) == {1}
    # By the time the others are all done the first key has not had more turns than a key can have in that time.
    endings = [entry.note for entry in entries if entry.event == "end"]
    last = {key: len(endings) - 1 - endings[::-1].index(key) for key in keys}
    assert max(place for key, place in last.items() if key != "key-00") < last["key-00"], f"took {took:.1f} s"
    assert all(endings.index(key) < 500 for key in keys), "a key waited for half of the others to end"


async def test_a_limit_of_a_type_and_of_a_key_together(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        await client.workflow_types.update(flows.keyed, max_running=5, max_running_per_key=2)
        plan = ["abcdef"[n % 6] for n in range(60)]
        runs = await client.start_many(client.start(flows.keyed, (key, 0.01), concurrency_key=key) for key in plan)
        await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs))
    entries = cluster.ledger.entries()
    assert max(most_at_once(entries).values()) <= 2
    inside = most = 0
    for entry in entries:
        inside += {"begin": 1, "end": -1}[entry.event]
        most = max(most, inside)
    assert most <= 5


async def test_a_freed_permit_is_taken_within_milliseconds_also_elsewhere(cluster: Cluster) -> None:
    """Each run waits for the end of the one before it, which runs at either server. A loaded machine is seldom that
    quick, but a server that is not told looks once in UNNOTIFIED_S."""
    await workers(cluster, slots=1)
    async with cluster.client() as client:
        await client.workflow_types.update(flows.keyed, max_running=1)
        async with measured_lateness() as lateness:
            runs = await client.start_many(client.start(flows.keyed, ("k", 0.05)) for _ in range(30))
            await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs))
    entries = cluster.ledger.entries()
    gaps = [after.at - before.at for before, after in zip(entries[1::2], entries[2::2], strict=False)]
    assert [entry.event for entry in entries[1:3]] == ["end", "begin"]
    gaps.sort()
    shown = f"gaps between runs: {[round(gap * 1_000) for gap in gaps]} ms"
    assert gaps[0] < 0.25 + lateness.worst_s, shown
    assert gaps[len(gaps) // 2] < UNNOTIFIED_S / 2 + lateness.worst_s, shown


async def test_a_sleeping_run_holds_no_permit(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        await client.workflow_types.update(flows.patient, max_running=1)
        runs = await client.start_many(client.start(flows.patient, 2.0) for _ in range(10))

        async def sleep_together() -> bool:
            return await client.count(status=RunStatus.SLEEPING) >= 2

        await until(sleep_together, what="two sleep at once")
        assert await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs)) == ["rested"] * 10


async def test_a_paused_type_waits_and_says_so(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        assert (await client.workflow_types.pause(flows.keyed)).paused
        run = await client.start(flows.keyed, ("a", 0.0))
        other = await client.start(flows.patient, 0.0)
        assert await other.result(timeout=LOADED_MACHINE) == "rested"
        assert await run.status() is RunStatus.PENDING
        assert "type keyed is paused" in str(await run.explain())
        (queue,) = await client.workflow_types.queue_depth(flows.keyed)
        assert (queue.waiting, queue.workers, queue.limit_reason) == (1, len(cluster.servers), "type keyed is paused")
        await client.workflow_types.resume(flows.keyed)
        assert await run.result(timeout=LOADED_MACHINE) == "a"


async def test_a_rate_spreads_starts(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        await client.workflow_types.update(flows.keyed, starts_per_second=10)
        async with measured_lateness() as lateness:
            runs = await client.start_many(client.start(flows.keyed, ("a", 0.0)) for _ in range(16))
            await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs))
    begun = [entry.at for entry in cluster.ledger.entries(event="begin")]
    assert begun[-1] - begun[0] > 1.3, "fifteen spaces of 100 ms"
    assert begun[-1] - begun[0] < 10.0 + 15 * lateness.worst_s, "it looked only every few seconds"


async def test_higher_priority_first_within_limits(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        await client.workflow_types.pause(flows.keyed)
        await client.workflow_types.update(flows.keyed, max_running=1)
        priorities = [0, 5, -3, 9, 5, 1]
        runs = [await client.start(flows.keyed, (f"{p}", 0.0), priority=p) for p in priorities]
        late = await client.start(flows.keyed, ("late", 0.0), delay=timedelta(seconds=2), priority=99)
        assert await late.status() is RunStatus.SLEEPING
        await until_status(late, RunStatus.PENDING)
        await client.workflow_types.resume(flows.keyed)
        await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in (*runs, late)))
    begun = [entry.note for entry in cluster.ledger.entries(event="begin")]
    assert begun == ["late", "9", "5", "5", "1", "0", "-3"]


async def test_a_full_type_rejects(cluster: Cluster) -> None:
    async with cluster.client() as client:
        await client.workflow_types.update(flows.keyed, max_running_per_key=1, when_full="reject")
        await client.start(flows.keyed, ("a", 0.0), concurrency_key="a")
        with pytest.raises(ResourceExhausted) as refused:
            await client.start(flows.keyed, ("a", 0.0), concurrency_key="a")
        assert refused.value.metadata["limit"] == "max_running_per_key"
        assert refused.value.retry_after is not None
        await client.start(flows.keyed).input(("b", 0.0)).concurrency_key("b")


async def test_the_oldest_is_cancelled_and_its_worker_is_notified_at_once(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        await client.workflow_types.update(flows.keyed, max_running_per_key=1, when_full="cancel-oldest")
        first = await client.start(flows.keyed, ("a", 30.0), concurrency_key="a")
        await cluster.until(lambda entries: any(entry.run_id == first.id for entry in entries), "the first run begun")
        began = time.monotonic()
        second = await client.start(flows.keyed, ("a", 0.0), concurrency_key="a")
        assert await second.result(timeout=LOADED_MACHINE) == "a"
        assert time.monotonic() - began < 25.0, "it waited for the end of the first, which takes half a minute"
        assert await until_status(first, RunStatus.CANCELLED) is RunStatus.CANCELLED
        assert second.id in (await first.info()).error.message  # type: ignore[union-attr]


async def test_why_a_run_waits(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        await client.workflow_types.update(flows.keyed, max_running=2, max_running_per_key=1)
        first = await client.start(flows.keyed, ("a", 30.0), concurrency_key="a")
        await until_status(first, RunStatus.RUNNING)
        same_key = await client.start(flows.keyed, ("a", 0.0), concurrency_key="a")
        assert f"the limit of one running run with key a is reached: {first.id}" in str(await same_key.explain())
        second = await client.start(flows.keyed, ("b", 30.0), concurrency_key="b")
        await until_status(second, RunStatus.RUNNING)
        third = await client.start(flows.keyed, ("c", 0.0), concurrency_key="c")
        assert "the limit of 2 running runs of type keyed is reached" in str(await third.explain())
        await third.terminate()  # or it might be its turn when the rate lets one run begin
        await client.workflow_types.update(
            flows.keyed, max_running=None, max_running_per_key=None, starts_per_second=0.01
        )
        await until_status(same_key, RunStatus.RUNNING, RunStatus.COMPLETED)
        limited = await client.start(flows.keyed, ("d", 0.0))
        assert "the rate limit of type keyed lets the next run begin at" in str(await limited.explain())


async def test_types_are_listed_with_what_is_known_of_them(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        updated = await client.workflow_types.update(flows.keyed, max_running=3)
        assert (updated.max_running, updated.when_full, updated.default_version) == (3, "queue", "1")
        await client.workflow_types.update("unheard", starts_per_second=0.5)
        listed = {each.workflow: each async for each in client.workflow_types.list()}
        assert set(listed) == {"family", "keyed", "patient", "unheard"}
        assert listed["patient"].versions == ("1",)
        assert listed["unheard"].versions == ()
        assert await client.workflow_types.get("keyed") == listed["keyed"]
        with pytest.raises(NotFound):
            await client.workflow_types.get("never")
        run: Run[str] = await client.start(flows.keyed, ("z", 0.0), start_at=datetime.now(UTC) + timedelta(hours=1))

        async def is_counted() -> bool:
            return (await client.workflow_types.get("keyed")).open_runs == 1

        await until(is_counted)  # the figure is shared for some seconds
        await run.cancel()


async def test_children_of_one_key_run_one_after_the_other(cluster: Cluster) -> None:
    await workers(cluster)
    async with cluster.client() as client:
        await client.workflow_types.update(flows.keyed, max_running_per_key=1)
        run = await client.start(flows.family, 6)
        assert await run.result(timeout=LOADED_MACHINE) == 6
    assert most_at_once(cluster.ledger.entries()) == {"shared": 1}
