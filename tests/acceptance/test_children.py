"""Item 6: children are runs of their own; their ends are results of the parent, whoever is killed in between."""

import asyncio

import pytest

from kagzi import RunError, RunStatus
from tests.support.timeouts import LOADED_MACHINE

from . import execution_flows as flows
from .cluster import Cluster, replayed, until_status

MANY = 1_000


async def test_a_parent_gets_results_and_failures_of_its_children(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start("parent", None, id="p")
        await cluster.strike(worker, run)
        good, bad, slow = await run.result(timeout=LOADED_MACHINE)
        assert (good, slow) == (42, "slow")
        assert bad.startswith("True failed")
        assert "ConnectionError: broken" in bad
        cluster.check_struck_once(run)
        children = [child async for child in client.list(parent=run)]
        assert len(children) == 3
        assert {(await child.info()).parent for child in children} == {run.id}
        assert {step.child for step in await run.steps() if step.child} == {child.id for child in children}
        again = await replayed(run)
        good, _, slow = await again.result(timeout=LOADED_MACHINE)
        assert (good, slow) == (42, "slow")
        assert cluster.executions(again) == {"hold": 1}
        assert len([child async for child in client.list(parent=again)]) == 0, "children were started again"


async def test_a_thousand_children_wake_their_parent_per_batch_and_not_each(cluster: Cluster) -> None:
    await cluster.author("--max-concurrent", "200")
    async with cluster.client() as client:
        run = await client.start(flows.wide, MANY)
        assert await run.result(timeout="90s") == sum(range(MANY)) * 2
        assert await client.count(parent=run) == MANY
    assert len(cluster.ledger.entries(event="begin")) == MANY
    claims = await cluster.claims_of(run)
    assert claims < MANY // 4, f"the parent was claimed {claims} times"


async def test_children_survive_the_loss_of_every_worker(cluster: Cluster) -> None:
    workers = [await cluster.author() for _ in range(2)]
    async with cluster.client() as client:
        run = await client.start(flows.wide, 60)
        for bodies in (10, 30):
            await cluster.until(
                lambda e, bodies=bodies: sum(x.event == "begin" for x in e) >= bodies, f"{bodies} bodies"
            )
            workers.pop(0).kill()
            workers.append(await cluster.author())
        assert await run.result(timeout="60s") == sum(range(60)) * 2
        assert await client.count(parent=run) == 60


async def test_the_end_of_a_parent_cancels_or_abandons(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client() as client:
        run = await client.start("leaves-children", None, id="p")
        assert await run.result(timeout=LOADED_MACHINE) == "gone"
        cancelled, abandoned = client.get("p/cancelled"), client.get("p/abandoned")
        await until_status(cancelled, RunStatus.CANCELLED)
        assert await abandoned.result(timeout=LOADED_MACHINE) == "rested"
        with pytest.raises(RunError):
            await cancelled.result(timeout=LOADED_MACHINE)


async def test_cancelling_a_parent_reaches_its_child_also_over_a_kill(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start("waits-for-child", None, id=f"p{n}") for n in range(5)))
        children = [client.get(f"p{n}/child") for n in range(5)]
        for run in runs:
            await until_status(run, RunStatus.SLEEPING)
        for child in children:
            await until_status(child, RunStatus.SLEEPING)
        worker.kill()
        for run in runs:
            await run.cancel("not needed any more")
        await cluster.author()
        for run in (*runs, *children):
            await until_status(run, RunStatus.CANCELLED)
    tidied = [entry for entry in cluster.ledger.entries(event="end") if entry.note == "tidy"]
    assert len(tidied) == 5
