"""Item 7: cancelled means stopped (P9), cleanup runs, terminate and pause do what they say, across servers and
kills."""

import asyncio
import time

import pytest

from kagzi import ErrorKind, RunError, RunStatus
from tests.support.lateness import measured_lateness
from tests.support.ledger import describe
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

from . import execution_flows as flows
from .cluster import Cluster, until_status


async def test_p9_no_step_begins_later_than_a_second_after_the_acknowledged_cancel(cluster: Cluster) -> None:
    await cluster.author(address=cluster.servers[0].grpc)
    # With two servers: not the one that the worker is connected to.
    async with cluster.client(-1) as far, measured_lateness() as lateness:
        runs = await asyncio.gather(*(far.start(flows.busy, 0.02) for _ in range(20)))
        await asyncio.gather(*(cluster.until_begun(run, f"beat#{3}") for run in runs))
        acknowledged: dict[str, float] = {}

        async def cancel(index: int) -> None:
            await runs[index].cancel("stop")
            acknowledged[runs[index].id] = time.monotonic()

        await asyncio.gather(*(cancel(index) for index in range(20)))
        for run in runs:
            await until_status(run, RunStatus.CANCELLED)
    late = [
        entry.at - acknowledged[entry.run_id]
        for entry in cluster.ledger.entries(event="begin")
        if entry.at > acknowledged[entry.run_id] + 1.0 + 10 * lateness.worst_s
    ]
    assert late == []


async def test_cancellation_reaches_a_running_step_at_once_and_cleanup_runs(cluster: Cluster) -> None:
    await cluster.author(address=cluster.servers[0].grpc)
    async with cluster.client(-1) as far:
        run = await far.start(flows.tidies_up, 60.0)
        await cluster.until_begun(run, "long")
        began = time.monotonic()
        await run.cancel("changed my mind")
        with pytest.raises(RunError) as ended:
            await run.result(timeout=LOADED_MACHINE)
        assert ended.value.kind is ErrorKind.CANCELLED
        assert await run.status() is RunStatus.CANCELLED
    events = [(entry.step_id, entry.event) for entry in cluster.ledger.entries()]
    assert events == [
        ("long", "begin"),
        ("long", "cancelled"),
        ("undo", "begin"),
        ("undo", "end"),
        ("undone", "begin"),
        ("undone", "end"),
    ]
    cancelled_at = next(entry.at for entry in cluster.ledger.entries() if entry.event == "cancelled")
    assert cancelled_at - began < LOADED_MACHINE_S / 2, "it waited for its step, which takes a minute"


async def test_cleanup_goes_on_after_its_worker_was_killed(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.tidies_up, 60.0)
        await cluster.until_begun(run, "long")
        await run.cancel("stop")
        await cluster.strike(worker, run, "undo")
        await until_status(run, RunStatus.CANCELLED)
    counts = cluster.executions(run)
    assert counts["undone"] == 1
    assert counts["long"] == 1, "a step began after the cancellation"
    assert counts["undo"] == 2, describe(cluster.ledger.entries(), run.id)


async def test_a_cancelled_run_without_a_worker_waits_for_one_to_clean_up(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.sleeper, 3_600.0)
        await until_status(run, RunStatus.SLEEPING)
        worker.kill()
        await run.cancel("stop")
        assert await run.status() is not RunStatus.CANCELLED
        await cluster.author()
        await until_status(run, RunStatus.CANCELLED)
        assert [entry.note for entry in cluster.ledger.entries(event="end")] == ["tidy"]


async def test_a_terminated_run_is_over_without_cleanup(cluster: Cluster) -> None:
    await cluster.author(address=cluster.servers[0].grpc)
    async with cluster.client(-1) as far:
        run = await far.start(flows.tidies_up, 60.0)
        await cluster.until_begun(run, "long")
        await run.terminate("now")
        assert await run.status() is RunStatus.CANCELLED
        with pytest.raises(RunError) as ended:
            await run.result(timeout=LOADED_MACHINE)
        assert ended.value.kind is ErrorKind.TERMINATED
        other = await far.start(flows.slow_leaf, 0.1)
        assert await other.result(timeout=LOADED_MACHINE) == "slow"
    assert "undo" not in cluster.executions(run)


async def test_a_paused_run_finishes_its_step_begins_none_and_goes_on(cluster: Cluster) -> None:
    worker = await cluster.author(address=cluster.servers[0].grpc)
    async with cluster.client(-1) as far:
        run = await far.start(flows.busy, 0.3)
        await cluster.until_begun(run, "beat#2")
        await run.pause("lunch")
        await until_status(run, RunStatus.PAUSED)
        begun = cluster.executions(run)
        finished = sum(entry.event == "end" for entry in cluster.ledger.entries())
        assert sum(begun.values()) == finished, "a step was cut short"
        worker.kill()
        await cluster.author()
        assert cluster.executions(run) == begun, "a paused run went on"
        await run.resume()
        await cluster.until_begun(run, f"beat#{len(begun) + 2}")
        assert set(cluster.executions(run).values()) == {1}
        await run.terminate()


async def test_signals_come_through_a_pause(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.approval)
        await until_status(run, RunStatus.SLEEPING)
        await run.pause()
        assert await run.status() is RunStatus.PAUSED
        await run.signal(flows.approved, "kept")
        assert await run.status() is RunStatus.PAUSED
        await run.resume()
        assert await run.result(timeout=LOADED_MACHINE) == "kept"
