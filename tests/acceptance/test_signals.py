"""Item 5: signals reach runs wherever they are, are consumed once and in order, over kills and replays."""

import asyncio

import pytest

from kagzi import InvalidArgument, PreconditionFailed, RunStatus
from tests.support.kagzi_process import kagzi
from tests.support.timeouts import LOADED_MACHINE

from . import execution_flows as flows
from .cluster import Cluster, replayed, until_status


async def test_a_signal_wakes_a_parked_run_and_survives_a_kill(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client(0) as one, cluster.client(-1) as other:
        run = await one.start(flows.approval)
        await until_status(run, RunStatus.SLEEPING)
        await other.signal(run.id, flows.approved, "yes")
        await cluster.strike(worker, run)
        assert await run.result(timeout=LOADED_MACHINE) == "yes"
        cluster.check_struck_once(run)
        again = await replayed(run)
        assert await again.result(timeout=LOADED_MACHINE) == "yes"
        assert cluster.executions(again) == {"hold": 1}


async def test_a_signal_that_comes_first_is_kept_while_nobody_works(cluster: Cluster) -> None:
    async with cluster.client() as client:
        run = await client.start("approval", None, id="early")
        await client.signal("early", "approved", "before all")
        for index, server in enumerate(cluster.servers):
            server.kill()
            await cluster.restart(index)
        await cluster.author()
        assert await run.result(timeout=LOADED_MACHINE) == "before all"


async def test_signals_are_consumed_once_and_in_order(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client(0) as one, cluster.client(-1) as other:
        run = await one.start(flows.in_order, 30)
        for number in range(30):
            await (one, other)[number % 2].signal(run.id, flows.item, number)
            if number == 12:
                worker.kill()
                worker = await cluster.author()
        assert await run.result(timeout=LOADED_MACHINE) == list(range(30))
        again = await replayed(run)
        assert await again.result(timeout=LOADED_MACHINE) == list(range(30))


async def test_many_runs_get_their_own_signals(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client(0) as one, cluster.client(-1) as other:
        runs = await asyncio.gather(*(one.start("in-order", 3, id=f"order-{n}") for n in range(30)))
        sends = [(one, other)[n % 2].signal(f"order-{n}", flows.item, 100 * n + m) for m in range(3) for n in range(30)]
        await asyncio.gather(*sends[:45])
        worker.kill()
        await asyncio.gather(*sends[45:], cluster.author())
        results = await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs))
    assert [sorted(result) for result in results] == [[100 * n, 100 * n + 1, 100 * n + 2] for n in range(30)]


async def test_a_wait_that_times_out_is_a_result(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.impatient)
        await cluster.strike(worker, run)
        await run.signal(flows.approved, "much too late")
        assert await run.result(timeout=LOADED_MACHINE) == ["too late", "nobody"]
        cluster.check_struck_once(run)
        in_time = await client.start(flows.impatient)
        await in_time.signal(flows.approved, "now")
        await in_time.signal(flows.rejected, "no")
        second = (await in_time.result(timeout=LOADED_MACHINE))[1]
        assert second == "no"


async def test_a_signal_comes_while_a_branch_works(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client(0) as one, cluster.client(-1) as other:
        run = await one.start(flows.works_while_waiting)
        await cluster.until_begun(run, "work")
        await other.signal(run.id, flows.approved, "meanwhile")
        assert await run.result(timeout=LOADED_MACHINE) == ["meanwhile", "work"]
        assert cluster.executions(run) == {"work": 1}


async def test_a_signal_starts_the_run_if_need_be(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client(0) as one, cluster.client(-1) as other:
        sends = [(one, other)[n % 2].signal_with_start("in-order", 8, flows.item, n, id="basket") for n in range(8)]
        runs = await asyncio.gather(*sends)
        assert len({run.id for run in runs}) == 1
        assert sum(run.created for run in runs) == 1
        assert sorted(await runs[0].result(timeout=LOADED_MACHINE)) == list(range(8))


async def signal_by_command(cluster: Cluster, *arguments: str) -> str:
    """`kagzi signal` as people type it. Returns what it said."""
    done = await asyncio.to_thread(kagzi, "signal", *arguments, "--address", cluster.servers[-1].grpc)
    assert done.returncode == 0, done
    return done.stderr


async def test_what_a_run_has_received_is_not_replaced(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client(0) as client:
        run = await client.start("in-order", 2, id="received")
        await client.signal("received", flows.item, 1)
        await until_status(run, RunStatus.SLEEPING)
        with pytest.raises(PreconditionFailed, match="kagzi fork"):
            await client.signal("received", flows.item, 2, replace=True)
        with pytest.raises(PreconditionFailed, match="kagzi fork"):
            await run.drop_signal(flows.item)
        with pytest.raises(InvalidArgument, match="does not fit"):
            await run.signal(flows.item, "2", replace=True)  # type: ignore[arg-type]  refused where it is sent
        await client.signal("received", flows.item, 3)
        assert await run.result(timeout=LOADED_MACHINE) == [1, 3]


async def test_a_signal_of_another_type_pauses_the_run_until_it_is_replaced_or_dropped(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client(0) as client:
        run = await client.start("in-order", 3, id="w")
        await until_status(run, RunStatus.SLEEPING)
        await client.signal("w", flows.item, 1)
        assert "received it" in await signal_by_command(
            cluster, "w", "item"
        )  # no value at all: null, where an int is waited for
        await until_status(run, RunStatus.PAUSED)
        worker.kill()
        problem = (await run.info()).problem
        assert problem is not None
        assert (problem.subject, problem.subject_id, problem.metadata["expected"]) == ("signal", "item", "int")
        explained = await client.explain("w")
        assert f"kagzi signal {run.id} item VALUE --replace" in explained.remedy
        assert "item#2" in explained.sentence
        assert "continues" in await signal_by_command(cluster, "w", "item", "5", "--replace")
        await cluster.author()
        await until_status(run, RunStatus.SLEEPING)
        await client.signal("w", "item", "six")
        await until_status(run, RunStatus.PAUSED)
        assert "waits for the next one" in await signal_by_command(cluster, "w", "item", "--drop")
        await until_status(run, RunStatus.SLEEPING)
        await client.signal("w", flows.item, 7)
        assert await run.result(timeout=LOADED_MACHINE) == [1, 5, 7]
        again = await replayed(run)
        assert await again.result(timeout=LOADED_MACHINE) == [1, 5, 7]
        kinds = [event["kind"] async for event in run.events()]
        assert kinds.count("signal_rejected") == 2
