"""A worker that dies is noticed: its runs are taken over within a lease and a second, also if its server died with it,
and it is seen to be gone."""

import asyncio
import time

import pytest

from kagzi import Kagzi, WorkerStatus
from tests.support.ledger import Entry
from tests.support.polling import until
from tests.support.processes import Process
from tests.support.timeouts import LOADED_MACHINE_S

from .cluster import Cluster, worker_of
from .flows import ten_steps

LEASE_S = 2.0
SERVER_OPTIONS = ("--lease", "2s", "--heartbeat", "400ms")
WITHIN_S = LEASE_S + 1.0 + 20.0  # on a loaded machine, where processes come late to what they have to do
RUNS = 10
SEEN_S = LOADED_MACHINE_S


async def until_offline(client: Kagzi, worker_id: str) -> None:
    async def offline() -> bool:
        return (await client.workers.get(worker_id)).status is WorkerStatus.OFFLINE

    await until(offline)
    assert worker_id in {worker.id async for worker in client.workers.list(status="offline")}
    assert worker_id not in {worker.id async for worker in client.workers.list(status="online")}


async def taken_over_after(cluster: Cluster, heir: Process, runs: set[str], since: float) -> float:
    """When the last of these runs began a step in other hands."""

    def all_begun(entries: list[Entry]) -> bool:
        return runs <= {entry.run_id for entry in entries if entry.pid == heir.pid}

    entries = await cluster.until(all_begun, "every run in the hands of the other worker")
    first = {entry.run_id: entry.at for entry in reversed(entries) if entry.pid == heir.pid}
    return max(first[run_id] for run_id in runs) - since


async def test_a_worker_is_killed(cluster: Cluster) -> None:
    worker = await cluster.worker()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(ten_steps, 0.3) for _ in range(RUNS)))
        for run in runs:
            await cluster.until_begun(run, "s0")
        lost = await worker_of(client, worker.pid)
        heir = await cluster.worker()
        killed_at = time.monotonic()
        worker.kill()
        after = await taken_over_after(cluster, heir, {run.id for run in runs}, killed_at)
        print(f"taken over after {after:.2f} s")
        assert after <= WITHIN_S
        await until_offline(client, lost.id)
        events = [event async for event in client.workers.events(lost.id)]
        assert [str(event.kind) for event in events] == ["lost", "registered"]
        assert (events[0].at - events[1].at).total_seconds() > LEASE_S
        assert await asyncio.gather(*(run.result(timeout="60s") for run in runs)) == [45] * RUNS


@pytest.mark.timeout(120)
async def test_a_server_dies_with_its_worker(cluster: Cluster) -> None:
    if len(cluster.servers) == 1:
        await _alone(cluster)
        return
    worker = await cluster.worker(address=cluster.servers[0].grpc)
    async with cluster.client(1) as client:
        runs = await asyncio.gather(*(client.start(ten_steps, 0.3) for _ in range(RUNS)))
        for run in runs:
            await cluster.until_begun(run, "s0")
        lost = await worker_of(client, worker.pid)
        heir = await cluster.worker(address=cluster.servers[1].grpc)
        killed_at = time.monotonic()
        cluster.servers[0].kill()
        worker.kill()
        after = await taken_over_after(cluster, heir, {run.id for run in runs}, killed_at)
        print(f"taken over after {after:.2f} s")
        assert after <= WITHIN_S
        await until_offline(client, lost.id)
        assert await asyncio.gather(*(run.result(timeout="60s") for run in runs)) == [45] * RUNS


async def _alone(cluster: Cluster) -> None:
    """The only server: from its return on, everybody gets a lease to come back."""
    worker = await cluster.worker()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(ten_steps, 0.3) for _ in range(RUNS)))
        for run in runs:
            await cluster.until_begun(run, "s0")
        worker.kill()
        cluster.servers[0].kill()
        await cluster.restart(0)
        heir = await cluster.worker()
        back_at = time.monotonic()
        after = await taken_over_after(cluster, heir, {run.id for run in runs}, back_at)
        print(f"taken over after {after:.2f} s")
        assert after <= WITHIN_S
        assert await asyncio.gather(*(run.result(timeout="60s") for run in runs)) == [45] * RUNS
