"""Rolling restart of 2 servers and 4 workers under 50 runs/s for 60 s: no failed run, no error that a client sees."""

from pathlib import Path

import pytest

from tests.acceptance.cluster import Cluster
from tests.support.processes import Processes

from .figures import Figures, number
from .rolling import SERVER_OPTIONS, Rolling

PER_SECOND = number("PER_SECOND", 50)
SECONDS = number("SECONDS", 60)


@pytest.mark.timeout(SECONDS + 300)
async def test_rolling_restart(postgres_url: str, tmp_path: Path) -> None:
    figures = Figures("rolling")
    if figures.known("rolling"):
        return
    async with Processes(tmp_path) as processes:
        cluster = Cluster(processes, postgres_url, tmp_path, *SERVER_OPTIONS)
        for _ in range(2):
            await cluster.add_server()
        rolling = Rolling(cluster, workers=4)
        await rolling.prepare()
        figures.put("rolling", await rolling.run(per_second=PER_SECOND, seconds=SECONDS))
    assert len(rolling.restarts) == 6
