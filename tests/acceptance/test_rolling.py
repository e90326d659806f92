"""Servers and workers are restarted one after another while runs go on: nobody is told an error, nothing is done
twice."""

from tests.campaigns.rolling import Rolling

from .cluster import Cluster


async def test_everything_is_restarted_in_turn_and_no_client_notices(cluster: Cluster) -> None:
    rolling = Rolling(cluster, workers=2)
    await rolling.prepare()
    figures = await rolling.run(per_second=8, seconds=8)
    assert figures["client_errors"] == 0
    assert len(rolling.restarts) == len(cluster.servers) + 2
