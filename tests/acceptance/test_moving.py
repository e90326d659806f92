"""From the embedded default to PostgreSQL: open runs move with their history and go on there, and nothing runs
twice."""

import asyncio
from pathlib import Path

from kagzi import Kagzi, RunStatus
from tests.support.processes import Processes
from tests.support.timeouts import LOADED_MACHINE

from .cluster import Cluster, until_status
from .flows import long_nap


async def test_sleeping_runs_move_to_another_store_and_finish_there(tmp_path: Path, postgres_url: str) -> None:
    async with Processes(tmp_path) as processes:
        old = Cluster(processes, f"sqlite:///{tmp_path}/kagzi.db", tmp_path)
        new = Cluster(processes, postgres_url, tmp_path)
        await asyncio.gather(old.add_server(), new.add_server())
        worker = await old.worker()
        async with old.client() as there, new.client() as here:
            runs = await asyncio.gather(*(there.start(long_nap, 5.0, id=f"nap-{n}") for n in range(20)))
            for run in runs:
                await until_status(run, RunStatus.SLEEPING)
            await worker.terminate()
            before = old.ledger.executions()
            assert before, "no step was done before the move: this shows less than it should"
            await move(there, here, [run.id for run in runs])
            await new.worker()
            results = await asyncio.gather(*(here.get(run.id, long_nap).result(timeout=LOADED_MACHINE) for run in runs))
            assert len(set(results)) == 1, results
            assert results[0] == await here.run(long_nap, 0.1, timeout=LOADED_MACHINE), (
                "the same as of one that was never moved"
            )
        ids = {run.id for run in runs}
        moved = {place: count for place, count in new.ledger.executions().items() if place[0] in ids}
        assert set(moved.values()) == {1}, "a step ran twice"
        assert len(moved) > len(before), "nothing was left to do after the move: this shows less than it should"


async def move(source: Kagzi, target: Kagzi, ids: list[str]) -> None:
    lines = [line for run_id in ids async for line in source.export(run_id)]
    assert [run.id async for run in target.import_runs(lines)] == ids
