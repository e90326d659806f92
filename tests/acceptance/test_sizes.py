"""Results and signals that are large together: their run ends, and its neighbour on the same worker goes on
meanwhile."""

import asyncio
from typing import Any

from kagzi import Run
from tests.support.polling import until
from tests.support.processes import Process

from . import size_flows as flows
from .cluster import Cluster

COUNT = 12  # together more than a worker reads at once
MODULE = "tests.acceptance.size_flows"


async def beside_a_neighbour(
    cluster: Cluster, run: Run[int], neighbour: Run[Any], worker: Process, before: int
) -> None:
    """The run ends, and its neighbour has begun more steps than `before`, counted before the run had its work."""
    assert await run.result(timeout="60s") == COUNT * flows.LARGE
    assert cluster.steps_begun(neighbour) > before
    assert "interrupted" not in worker.output
    assert "larger than" not in worker.output


async def test_many_large_results_of_children(cluster: Cluster) -> None:
    worker = await cluster.worker(module=MODULE)
    async with cluster.client() as client:
        neighbour = await client.start(flows.neighbour, 0.02)
        await until(lambda: cluster.steps_begun(neighbour) >= 3)
        before = cluster.steps_begun(neighbour)
        run = await client.start(flows.gathers_children, COUNT)
        await beside_a_neighbour(cluster, run, neighbour, worker, before)
        await neighbour.terminate()


async def test_many_large_signals_that_wait(cluster: Cluster) -> None:
    async with cluster.client() as client:
        run = await client.start(flows.gathers_signals, COUNT)
        for _ in range(COUNT):
            await run.signal(flows.blob, "x" * flows.LARGE)
        neighbour = await client.start(flows.neighbour, 0.02)
        worker = await cluster.worker(module=MODULE)
        await until(lambda: cluster.steps_begun(neighbour) >= 3)
        await beside_a_neighbour(cluster, run, neighbour, worker, before=3)
        await neighbour.terminate()


async def test_large_signals_that_come_while_the_run_waits(cluster: Cluster) -> None:
    worker = await cluster.worker(module=MODULE)
    async with cluster.client() as client:
        neighbour = await client.start(flows.neighbour, 0.02)
        run = await client.start(flows.gathers_signals, COUNT)
        await until(lambda: cluster.steps_begun(neighbour) >= 3)
        before = cluster.steps_begun(neighbour)
        await asyncio.gather(*(run.signal(flows.blob, "x" * flows.LARGE) for _ in range(COUNT)))
        await beside_a_neighbour(cluster, run, neighbour, worker, before)
        await neighbour.terminate()
