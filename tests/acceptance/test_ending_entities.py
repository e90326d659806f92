"""An entity may end at any time: what came by signal-with-start is received by it or by the run that comes next."""

import asyncio

from kagzi import Kagzi, Run, RunStatus
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE

from . import execution_flows as flows
from .cluster import Cluster, until_status

ITEMS = 300
ID = "entity"


async def runs_of(client: Kagzi) -> list[Run[list[int]]]:
    """In the order of their starts."""
    return [run async for run in client.list(id=ID)][::-1]


async def received(client: Kagzi, items: int) -> list[list[int]]:
    """What each run received, once all have ended and there is nothing more to receive."""

    async def ended() -> list[Run[list[int]]] | None:
        runs = await runs_of(client)
        infos = [await run.info() for run in runs]
        assert sum(info.unread_signals for info in infos if info.status.ended) == 0, infos
        return runs if all(info.status.ended for info in infos) else None

    lists: list[list[int]] = []

    async def everything() -> bool:
        runs = await until(ended)
        lists[:] = [await run.result(timeout=LOADED_MACHINE) for run in runs]
        return sum(map(len, lists)) >= items

    await until(everything)
    return lists


async def test_an_entity_that_ends_when_nothing_comes_loses_nothing(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client(0) as one, cluster.client(-1) as other:
        for number in range(ITEMS):
            client = (one, other)[number % 2]
            run = await client.signal_with_start(flows.collects, "1ms", flows.item, number, id=ID)
            if number % 30 == 29:  # the next item comes after an end for sure, the others at any moment
                await run.result(timeout=LOADED_MACHINE)
        lists = await received(one, ITEMS)
    assert [number for each in lists for number in each] == list(range(ITEMS)), "each once, in order"
    assert len(lists) >= ITEMS // 30


async def test_batches_of_ten(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client() as client:
        for number in range(25):
            await client.signal_with_start(flows.collects_ten, "1s", flows.item, number, id=ID)
        lists = await received(client, 25)
    assert lists == [list(range(10)), list(range(10, 20)), list(range(20, 25))]


async def test_senders_at_once_keep_their_order(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client(0) as one, cluster.client(-1) as other:

        async def send(client: Kagzi, first: int) -> None:
            for number in range(first, first + 50):
                await client.signal_with_start(flows.collects, "1ms", flows.item, number, id=ID)

        await asyncio.gather(*(send((one, other)[n % 2], 100 * n) for n in range(4)))
        lists = await received(one, 200)
    numbers = [number for each in lists for number in each]
    assert sorted(numbers) == sorted(100 * n + m for n in range(4) for m in range(50))
    for n in range(4):
        assert [number for number in numbers if number // 100 == n] == list(range(100 * n, 100 * n + 50))


async def test_servers_and_workers_are_killed_meanwhile(cluster: Cluster) -> None:
    """kill -9 at any moment: between an end and the next run there is none that loses a signal, or repeats one."""
    worker = await cluster.author()
    async with cluster.client() as client:
        for number in range(120):
            await client.signal_with_start(flows.collects, "1ms", flows.item, number, id=ID)
            if number % 40 == 20:
                index = number // 40 % len(cluster.servers)
                cluster.servers[index].kill()
                await cluster.restart(index)
            elif number % 40 == 39:
                worker.kill()
                worker = await cluster.author()
        lists = await received(client, 120)
    assert [number for each in lists for number in each] == list(range(120))


async def test_a_run_that_is_terminated_hands_on_what_it_did_not_receive(cluster: Cluster) -> None:
    async with cluster.client(0) as one, cluster.client(-1) as other:
        first = await one.signal_with_start(flows.collects, "10ms", flows.item, 0, id=ID)
        for number in (1, 2):
            again = await other.signal_with_start(flows.collects, "1ms", flows.item, number, id=ID)
            assert again.id == first.id
        await one.signal(ID, flows.item, 99)
        await other.terminate(first.id, reason="enough")
        await until_status(first, RunStatus.CANCELLED)
        info = await first.info()
        assert info.unread_signals == 2, "the one that it began with, and the plain one"
        assert info.handed_on_to is not None
        await cluster.author()
        assert await one.get(info.handed_on_to).result(timeout=LOADED_MACHINE) == [1, 2]
        [summary] = [line for line in str(await first.explain()).splitlines() if line]
        assert "2 unread signals" in summary, summary
