"""P5 with servers whose own clock is wrong: the store's clock decides."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kagzi import RunStatus
from tests.support.processes import Processes
from tests.support.shifted_time import ShiftedClock

from .cluster import TIMINGS, Cluster, until_status
from .conftest import migrated_database

FLOWS = "tests.acceptance.clock_flows"
HOUR_S = 3_600


@pytest.mark.parametrize("seconds", [HOUR_S, -HOUR_S])
async def test_a_server_an_hour_off_keeps_the_stores_time(
    seconds: int, setup: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """With two servers one of them is off, and takes over from dead workers like the other."""
    database = migrated_database(setup, request, tmp_path)
    clock = ShiftedClock(tmp_path, seconds=seconds)
    async with Processes(tmp_path) as processes:
        cluster = Cluster(processes, database, tmp_path)
        cluster.servers.append(await processes.server(database, *TIMINGS, **clock.environment))
        if setup != "sqlite":
            await cluster.add_server()
        await cluster.worker(address=cluster.servers[-1].grpc, module=FLOWS)
        async with cluster.client() as client:
            sleeper = await client.start("nap", 900.0)
            patient = await client.start("nap", 600.0, deadline=datetime.now(UTC) + timedelta(minutes=30))
            await until_status(sleeper, RunStatus.SLEEPING)
            await until_status(patient, RunStatus.SLEEPING)
            for shift in (2 * HOUR_S, -HOUR_S):
                naps = [await client.start("nap", 1.3) for _ in range(3)]
                for nap in naps:
                    await until_status(nap, RunStatus.SLEEPING)
                clock.shift(shift)  # the next thing that happens on the server is that they are due
                assert await asyncio.gather(*(nap.result() for nap in naps)) == ["awake"] * 3
            assert await sleeper.status() is RunStatus.SLEEPING
            assert await patient.status() is RunStatus.SLEEPING

            doomed = await cluster.worker(address=cluster.servers[0].grpc, module=FLOWS)
            holds = [await client.start("hold-on", 0.2) for _ in range(20)]
            await cluster.until_begun(holds[-1])
            doomed.kill()
            assert await asyncio.wait_for(asyncio.gather(*(hold.result() for hold in holds)), 60) == [1] * 20
