"""Results and signals that are large together: their run ends, and its neighbour on the same worker goes on meanwhile."""

import asyncio
from typing import Any

from kagzi import Run
from tests.support.processes import Process

from . import size_flows as flows
from .site import Site

COUNT = 12  # together more than a worker reads at once
MODULE = "tests.acceptance.size_flows"


def beats(site: Site, run: Run[Any]) -> int:
    return sum(entry.run_id == run.id for entry in site.ledger.entries(event="begin"))


async def until_beaten(site: Site, run: Run[Any], times: int) -> None:
    async with asyncio.timeout(60):
        while beats(site, run) < times:  # noqa: ASYNC110  another process writes it
            await asyncio.sleep(0.05)


async def beside_a_neighbour(site: Site, run: Run[int], neighbour: Run[Any], worker: Process) -> None:
    before = beats(site, neighbour)
    assert await run.result(timeout="60s") == COUNT * flows.LARGE
    assert beats(site, neighbour) > before
    assert "broken off" not in worker.output
    assert "larger than" not in worker.output


async def test_many_large_results_of_children(site: Site) -> None:
    worker = await site.worker(module=MODULE)
    async with site.client() as client:
        neighbour = await client.start(flows.neighbour, 0.02)
        await until_beaten(site, neighbour, 3)
        run = await client.start(flows.gathers_children, COUNT)
        await beside_a_neighbour(site, run, neighbour, worker)
        await neighbour.terminate()


async def test_many_large_signals_that_wait(site: Site) -> None:
    async with site.client() as client:
        run = await client.start(flows.gathers_signals, COUNT)
        for _ in range(COUNT):
            await run.signal(flows.blob, "x" * flows.LARGE)
        neighbour = await client.start(flows.neighbour, 0.02)
        worker = await site.worker(module=MODULE)
        await until_beaten(site, neighbour, 3)
        await beside_a_neighbour(site, run, neighbour, worker)
        await neighbour.terminate()


async def test_large_signals_that_come_while_the_run_waits(site: Site) -> None:
    worker = await site.worker(module=MODULE)
    async with site.client() as client:
        neighbour = await client.start(flows.neighbour, 0.02)
        run = await client.start(flows.gathers_signals, COUNT)
        await until_beaten(site, neighbour, 3)
        await asyncio.gather(*(run.signal(flows.blob, "x" * flows.LARGE) for _ in range(COUNT)))
        await beside_a_neighbour(site, run, neighbour, worker)
        await neighbour.terminate()
