"""`runs` locked, a read-only database, and internal errors on 1 % of the rows of steps, 60 s each, under load with two
servers: no server ends, no run fails, no schedule stops, everything completes."""

from pathlib import Path

import pytest

from tests.acceptance.cluster import Cluster
from tests.support.postgres import temporary_postgres
from tests.support.processes import Processes

from .figures import Figures, number
from .outages import Fault, Storm, read_only, runs_locked, steps_broken

PER_SECOND = number("PER_SECOND", 20)
SECONDS = number("SECONDS", 60)


@pytest.mark.timeout(SECONDS + 400)
@pytest.mark.parametrize("fault", [runs_locked, read_only, steps_broken])
async def test_an_outage_is_a_delay_and_nothing_else(fault: Fault, tmp_path: Path) -> None:
    figures = Figures("outages")
    if figures.known(fault.__name__):
        return
    # A server of its own: whoever shares one must not find it read-only.
    with temporary_postgres() as url:
        async with Processes(tmp_path) as processes:
            cluster = Cluster(processes, url, tmp_path)
            for _ in range(2):
                await cluster.add_server()
            async with cluster.client() as client:
                storm = Storm(cluster, url, workers=2)
                await storm.prepare(client)
                figures.put(fault.__name__, await storm.run(client, fault, per_second=PER_SECOND, seconds=SECONDS))
