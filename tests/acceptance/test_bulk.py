"""An operation on many runs survives the server that works on it."""

import asyncio

from kagzi import Kagzi

from .site import Site

RUNS = 2_000


async def matched_so_far(client: Kagzi, operation_id: str, least: int) -> int:
    async with asyncio.timeout(60):
        while (progress := await client.bulk.get(operation_id).progress()).matched < least:
            assert not progress.finished
            await asyncio.sleep(0.005)
        return progress.matched


async def test_its_server_is_killed_in_the_middle(site: Site) -> None:
    async with site.client(0) as first:
        await first.start_many(first.start("nobody-serves-this", n, labels={"doomed": "yes"}) for n in range(RUNS))
        await first.start_many(first.start("nobody-serves-this", n) for n in range(100))
        operation = await first.bulk.cancel(labels={"doomed": "yes"}, reason="enough")
        before = await matched_so_far(first, operation.id, RUNS // 10)
        site.servers[0].kill()
    assert before < RUNS, "it was done before the server was killed"
    if len(site.servers) == 1:
        await site.restart(0)
    async with site.client(len(site.servers) - 1) as client:
        progress = await client.bulk.get(operation.id).wait("60s")
        assert (progress.matched, progress.done, progress.failed) == (RUNS, RUNS, 0), progress
        assert await client.count(status="cancelled") == RUNS
        assert await client.count(status="pending") == 100
