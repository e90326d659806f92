"""kill -9 and SIGSTOP among running runs: all complete, nothing that was acknowledged runs again, stale holders are
refused."""

import asyncio
import re

from kagzi import Run

from .cluster import Cluster, check_done_is_done
from .flows import STEPS, ten_steps

RUNS = 200
EXPECTED = sum(range(STEPS))
LOST = re.compile("is abandoned: its lease was lost")


async def test_workers_are_killed_in_the_middle_of_200_runs(cluster: Cluster) -> None:
    workers = [await cluster.worker("--max-concurrent", "40") for _ in range(2)]
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(ten_steps, 0.1) for _ in range(RUNS)))
        for bodies in (RUNS // 2, RUNS * 3):
            await cluster.until(lambda entries, bodies=bodies: len(entries) >= 2 * bodies, f"{bodies} bodies")
            workers.pop(0).kill()
            workers.append(await cluster.worker("--max-concurrent", "40"))
        results = await asyncio.gather(*(run.result(timeout="60s") for run in runs))
    assert results == [EXPECTED] * RUNS
    entries = cluster.ledger.entries()
    assert check_done_is_done(entries) >= 1, "no kill hit a body: this test has shown nothing"
    assert len({entry.pid for entry in entries}) >= 3


async def test_a_server_is_killed_in_the_middle_of_200_runs(cluster: Cluster) -> None:
    workers = [await cluster.worker() for _ in range(2)]
    async with cluster.client() as client:
        runs: list[Run[int]] = []
        for kill, bodies in enumerate((RUNS // 4, RUNS)):
            # New ones for each kill: on a busy machine those before may all have ended while the server was restarted.
            begun_before = len(cluster.ledger.entries())
            runs += await asyncio.gather(*(client.start(ten_steps, 0.15) for _ in range(RUNS // 2)))
            enough = begun_before + 2 * bodies
            seen = await cluster.until(lambda entries, enough=enough: len(entries) >= enough, f"{bodies} bodies")
            assert len(seen) < 2 * len(runs) * STEPS, "everything was done before the server was killed"
            cluster.servers[kill % len(cluster.servers)].kill()
            await cluster.restart(kill % len(cluster.servers))
        results = await asyncio.gather(*(run.result(timeout="60s") for run in runs))
    assert results == [EXPECTED] * RUNS
    check_done_is_done(cluster.ledger.entries())
    assert all(worker.running for worker in workers)


async def test_a_worker_paused_past_its_lease_is_refused_and_the_run_completes_elsewhere_once(cluster: Cluster) -> None:
    sleeper = await cluster.worker()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(ten_steps, 0.05) for _ in range(20)))
        await cluster.until(lambda entries: len({entry.run_id for entry in entries}) == 20, "all runs at work")
        sleeper.pause()
        paused_at = len(cluster.ledger.entries())
        other = await cluster.worker()
        results = await asyncio.gather(*(run.result(timeout="60s") for run in runs))
        assert results == [EXPECTED] * 20
        sleeper.resume()
        await sleeper.wait_for(LOST)
        # Whatever the paused worker still has to say is refused: the runs have ended, once, and stay so.
        assert [await run.status() for run in runs] == ["completed"] * 20
    entries = cluster.ledger.entries()
    assert {entry.pid for entry in entries[paused_at:]} >= {other.pid}
    pids = {entry.pid for entry in entries if entry.event == "begin"}
    assert pids == {sleeper.pid, other.pid}
