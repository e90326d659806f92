"""`--processes 2` of server and worker under 30 runs/s for 60 s: a process is killed every second, and no run fails, no
step that ended begins again."""

import asyncio
import random
import re
import sys
from pathlib import Path

import psutil
import pytest

from tests.acceptance.cluster import Cluster, check_done_is_done
from tests.support.processes import Process, Processes

from . import flows
from .figures import Figures, number, spread
from .load import Load

PER_SECOND = number("PER_SECOND", 30)
SECONDS = number("SECONDS", 60)
KILL_EVERY_S = 1.0
STEP_S = 0.05
READY = re.compile("2 worker processes are ready")


@pytest.mark.timeout(SECONDS + 300)
async def test_processes_that_are_killed(postgres_url: str, tmp_path: Path) -> None:
    figures = Figures("processes")
    if figures.known("processes"):
        return
    async with Processes(tmp_path) as processes:
        cluster = Cluster(processes, postgres_url, tmp_path, "--processes", "2", "--claim-cap", "1000")
        server = await cluster.add_server()
        command = (
            sys.executable,
            "-m",
            "kagzi",
            "worker",
            flows.__name__,
            "--processes",
            "2",
            "--address",
            server.grpc,
        )
        worker = await processes.run(*command, name="workers", KAGZI_TEST_LEDGER=str(tmp_path / "ledger.jsonl"))
        await worker.wait_for(READY)
        async with cluster.client() as client:
            load = Load(client, flows.load, STEP_S, expected=sum(range(flows.STEPS)))
            killing = asyncio.create_task(_kill((server, worker)))
            await load.run(PER_SECOND, SECONDS)
            killing.cancel()
        kills = [_restarts(process) for process in (server, worker)]
        assert [await process.terminate() for process in (worker, server)] == [0, 0]
    assert not load.errors, load.errors[:3]
    assert len(load.done) == int(PER_SECOND * SECONDS)
    assert min(kills) >= 3, f"too few kills hit: {kills}"
    entries = cluster.ledger.entries()
    again = check_done_is_done(entries)
    assert again > 0, "no kill hit a step"
    times_ms = [(done.ended_at - done.requested_at) * 1_000 for done in load.done]
    kinds = dict(zip(("server", "worker"), kills, strict=True))
    figures.put("processes", {"kills": kinds, "steps_begun_again": again, "start_to_result": spread(times_ms)})


async def _kill(supervisors: tuple[Process, ...]) -> None:
    """One process of each in turn. With kill -9 of one there is always another, as a pause follows."""
    rng = random.Random(40)
    while True:
        for supervisor in supervisors:
            await asyncio.sleep(KILL_EVERY_S)
            children = psutil.Process(supervisor.pid).children()
            if len(children) > 1:
                rng.choice(children).kill()


def _restarts(process: Process) -> int:
    return process.output.count("was ended by SIGKILL")
