"""Item 5: signals reach runs wherever they are, are consumed once and in order, over kills and replays."""

import asyncio

from kagzi import RunStatus

from . import execution_flows as flows
from .site import Site, replayed, until_status


async def test_a_signal_wakes_a_parked_run_and_survives_a_kill(site: Site) -> None:
    worker = await site.author()
    async with site.client(0) as one, site.client(-1) as other:
        run = await one.start(flows.approval)
        await until_status(run, RunStatus.SLEEPING)
        await other.signal(run.id, flows.approved, "yes")
        await site.strike(worker, run)
        assert await run.result(timeout="30s") == "yes"
        site.check_struck_once(run)
        again = await replayed(run)
        assert await again.result(timeout="30s") == "yes"
        assert site.executions(again) == {"hold": 1}


async def test_a_signal_that_comes_first_is_kept_while_nobody_works(site: Site) -> None:
    async with site.client() as client:
        run = await client.start("approval", None, id="early")
        await client.signal("early", "approved", "before all")
        for index, server in enumerate(site.servers):
            server.kill()
            await site.restart(index)
        await site.author()
        assert await run.result(timeout="30s") == "before all"


async def test_signals_are_consumed_once_and_in_order(site: Site) -> None:
    worker = await site.author()
    async with site.client(0) as one, site.client(-1) as other:
        run = await one.start(flows.in_order, 30)
        for number in range(30):
            await (one, other)[number % 2].signal(run.id, flows.item, number)
            if number == 12:
                worker.kill()
                worker = await site.author()
        assert await run.result(timeout="30s") == list(range(30))
        again = await replayed(run)
        assert await again.result(timeout="30s") == list(range(30))


async def test_many_runs_get_their_own_signals(site: Site) -> None:
    worker = await site.author()
    async with site.client(0) as one, site.client(-1) as other:
        runs = await asyncio.gather(*(one.start("in-order", 3, id=f"order-{n}") for n in range(30)))
        sends = [(one, other)[n % 2].signal(f"order-{n}", flows.item, 100 * n + m) for m in range(3) for n in range(30)]
        await asyncio.gather(*sends[:45])
        worker.kill()
        await asyncio.gather(*sends[45:], site.author())
        results = await asyncio.gather(*(run.result(timeout="30s") for run in runs))
    assert [sorted(result) for result in results] == [[100 * n, 100 * n + 1, 100 * n + 2] for n in range(30)]


async def test_a_wait_that_ends_is_a_result(site: Site) -> None:
    worker = await site.author()
    async with site.client() as client:
        run = await client.start(flows.impatient)
        await site.strike(worker, run)
        await run.signal(flows.approved, "much too late")
        assert await run.result(timeout="30s") == ["too late", "nobody"]
        site.check_struck_once(run)
        in_time = await client.start(flows.impatient)
        await in_time.signal(flows.approved, "now")
        await in_time.signal(flows.rejected, "no")
        second = (await in_time.result(timeout="30s"))[1]
        assert second == "no"


async def test_a_signal_comes_while_a_branch_works(site: Site) -> None:
    await site.author()
    async with site.client(0) as one, site.client(-1) as other:
        run = await one.start(flows.works_while_waiting)
        await site.until_begun(run, "work")
        await other.signal(run.id, flows.approved, "meanwhile")
        assert await run.result(timeout="10s") == ["meanwhile", "work"]
        assert site.executions(run) == {"work": 1}


async def test_a_signal_starts_the_run_if_need_be(site: Site) -> None:
    await site.author()
    async with site.client(0) as one, site.client(-1) as other:
        sends = [(one, other)[n % 2].signal_with_start("in-order", 8, flows.item, n, id="basket") for n in range(8)]
        runs = await asyncio.gather(*sends)
        assert len({run.id for run in runs}) == 1
        assert sum(run.created for run in runs) == 1
        assert sorted(await runs[0].result(timeout="30s")) == list(range(8))
