"""A worker says what ails it, in words that name the step and the remedy; and keeps its runs meanwhile."""

import asyncio
import re
from functools import partial

from kagzi import Kagzi, Run, Workflow
from tests.support.polling import until
from tests.support.processes import Process
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

from .cluster import Cluster
from .trouble_flows import (
    RELEASED,
    THREADS,
    beside,
    blocking_the_loop,
    computing,
    computing_in_c,
    hashing,
    waiting_in_threads,
)

LONG_S = 3.6  # longer than a lease
TIMEOUT_S = LOADED_MACHINE_S
SERVES = re.compile(r"\bserves\b")


async def serve(cluster: Cluster) -> Process:
    process = await cluster.processes.module(
        "kagzi",
        *("worker", "tests.acceptance.trouble_flows:worker", "--address", cluster.address),
        name="worker",
        KAGZI_TEST_LEDGER=str(cluster.ledger.path),
    )
    await process.wait_for(SERVES)
    return process


async def diagnostics(client: Kagzi) -> list[str]:
    return [event.detail async for event in client.workers.events() if event.kind == "trouble"][::-1]


async def trouble(client: Kagzi, kind: str) -> str:
    """The first report of this kind, when it has come."""
    return await until(partial(report, client, kind), every_s=0.1)


async def report(client: Kagzi, kind: str) -> str:
    """The first of this kind; empty if there is none yet."""
    return next((detail for detail in await diagnostics(client) if detail.startswith(f"{kind}: ")), "")


async def reported_in_the_end(
    client: Kagzi, workflow: Workflow[float, str], input: float
) -> tuple[str, list[Run[str]]]:
    """That the GIL is held, and the runs that did. Where others take the processors, the time in line for one may hide
    that of a run: then the next one shows."""
    runs = [await client.start(workflow, input)]
    async with asyncio.timeout(4 * LOADED_MACHINE_S):
        while not (detail := await report(client, "gil_held")):
            if (await runs[-1].status()).ended:
                runs.append(await client.start(workflow, input))
            await asyncio.sleep(0.1)
    return detail, runs


def release(cluster: Cluster) -> None:
    """Lets the steps end that go on until then."""
    cluster.ledger.path.with_name(RELEASED.name).touch()


def check_ran_once(cluster: Cluster, *runs: Run[str]) -> None:
    for run in runs:
        assert set(cluster.executions(run).values()) == {1}, "its lease was lost: somebody began it again"


async def test_a_blocked_event_loop(cluster: Cluster) -> None:
    worker = await serve(cluster)
    async with cluster.client() as client:
        run = await client.start(blocking_the_loop, LONG_S)
        detail = await trouble(client, "loop_blocked")
        assert await run.status() == "running", "it was reported only when it was over"
        release(cluster)
        assert "asyncio.to_thread" in detail
        assert "in block" in detail, "the code that blocks is named"
        assert await run.result(timeout=LOADED_MACHINE) == "done"
        assert len(await diagnostics(client)) == 1
        check_ran_once(cluster, run)
    assert "The event loop has been blocked" in worker.output


async def test_sync_steps_that_wait_for_a_thread(cluster: Cluster) -> None:
    await serve(cluster)
    async with cluster.client() as client:
        runs = [await client.start(waiting_in_threads, LONG_S) for _ in range(THREADS + 3)]
        detail = await trouble(client, "threads_full")
        release(cluster)
        assert re.search(rf"3 sync steps wait for a thread.*all {THREADS} threads are taken", detail), detail
        assert "used by wait of run" in detail
        assert "Worker(threads=...)" in detail
        assert await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs)) == ["done"] * len(runs)
        assert len(await diagnostics(client)) == 1, "the same was said again and again"
        check_ran_once(cluster, *runs)


async def test_a_step_that_computes_in_python(cluster: Cluster) -> None:
    await serve(cluster)
    async with cluster.client() as client:
        other = await client.start(beside)
        detail, runs = await reported_in_the_end(client, computing, LONG_S)
        release(cluster)
        assert any(f"Step compute of run {run.id} has been computing in Python" in detail for run in runs)
        assert "ProcessPoolExecutor" in detail
        assert await other.result(timeout=LOADED_MACHINE) == "done"
        assert await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs)) == ["done"] * len(runs)
        check_ran_once(cluster, *runs)


async def test_a_step_that_computes_in_c_and_keeps_the_gil(cluster: Cluster) -> None:
    await serve(cluster)
    async with cluster.client() as client:
        detail, runs = await reported_in_the_end(client, computing_in_c, 4)
        assert any(f"step add of run {run.id} held the GIL" in detail for run in runs)
        assert "Heartbeats stop during that time" in detail


async def test_a_step_that_computes_and_releases_the_gil_is_not_reported(cluster: Cluster) -> None:
    await serve(cluster)
    async with cluster.client() as client:
        run = await client.start(hashing, LONG_S)
        assert await run.result(timeout=LOADED_MACHINE) == "done"
        assert await diagnostics(client) == []
        check_ran_once(cluster, run)
