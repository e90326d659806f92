"""Short outages of PostgreSQL with real processes: a locked table, a read-only database, internal errors. `make
outages` has them last for a minute each."""

from functools import partial
from pathlib import Path

from tests.campaigns.outages import Storm, read_only, runs_locked, steps_broken
from tests.support.postgres import temporary_postgres
from tests.support.processes import Processes

from .cluster import Cluster


async def test_outages_are_delays_and_nothing_else(tmp_path: Path) -> None:
    # A server of its own: whoever shares one must not find it read-only.
    with temporary_postgres() as url:
        async with Processes(tmp_path) as processes:
            cluster = Cluster(processes, url, tmp_path)
            for _ in range(2):
                await cluster.add_server()
            async with cluster.client() as client:
                storm = Storm(cluster, url, workers=1)
                await storm.prepare(client)
                broken = partial(steps_broken, share=0.1)
                await storm.run(client, runs_locked, read_only, broken, per_second=10, seconds=2.5)
