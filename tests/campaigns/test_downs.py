"""The server, then its database, is down for 60 s: everybody who waits is told what is down, and everything completes
afterwards."""

from pathlib import Path

import pytest

from tests.acceptance.cluster import Cluster
from tests.support.postgres import PostgresServer
from tests.support.processes import Processes

from . import flows
from .downs import AFTER_S, Fault, database_frozen, database_gone, play, server_gone
from .figures import Figures, number

SECONDS = number("SECONDS", 60)


@pytest.mark.timeout(SECONDS + AFTER_S + 120)
@pytest.mark.parametrize("fault", [server_gone, database_gone, database_frozen])
async def test_what_is_down_is_reported_and_waited_for(fault: Fault, tmp_path: Path) -> None:
    figures = Figures("downs")
    if figures.known(fault.__name__):
        return
    database = PostgresServer()
    try:
        database.start()
        async with Processes(tmp_path) as processes:
            cluster = Cluster(processes, database.url, tmp_path)
            await cluster.add_server()
            await cluster.worker(module=flows.__name__)
            figures.put(fault.__name__, await play(cluster, database, fault, SECONDS))
    finally:
        database.close()
