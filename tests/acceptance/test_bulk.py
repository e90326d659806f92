"""An operation on many runs survives the server that works on it."""

import pytest

from kagzi import Kagzi
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE

from .cluster import Cluster

RUNS = 2_000
TRIES = 8  # a loaded machine may look when all is done


async def caught_in_the_middle(client: Kagzi, label: str) -> tuple[str, bool]:
    """An operation on so many runs with this label, and whether some are left that it has not matched."""
    await client.start_many(client.start("nobody-serves-this", n, labels={"doomed": label}) for n in range(RUNS))
    operation = await client.bulk.cancel(labels={"doomed": label}, reason="enough")

    async def matched_some() -> int:
        matched = (await client.bulk.get(operation.id).progress()).matched
        return matched if matched >= RUNS // 10 else 0

    return operation.id, await until(matched_some, every_s=0.005) < RUNS


async def test_its_server_is_killed_in_the_middle(cluster: Cluster) -> None:
    async with cluster.client(0) as first:
        await first.start_many(first.start("nobody-serves-this", n) for n in range(100))
        for tries in range(1, TRIES + 1):
            operation_id, caught = await caught_in_the_middle(first, str(tries))
            if caught:
                cluster.servers[0].kill()
                break
        else:
            pytest.fail(f"each of {TRIES} operations was done before the server could be killed")
    if len(cluster.servers) == 1:
        await cluster.restart(0)
    async with cluster.client(len(cluster.servers) - 1) as client:
        progress = await client.bulk.get(operation_id).wait(LOADED_MACHINE)
        assert (progress.matched, progress.done, progress.failed) == (RUNS, RUNS, 0), progress
        assert await client.count(labels={"doomed": str(tries)}, status="cancelled") == RUNS
        assert await client.count(status="pending") == 100
