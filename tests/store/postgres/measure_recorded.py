"""What a step costs that is recorded by one command, and by two: CPU of this side and of the database. `python -m
tests.store.postgres.measure_recorded`"""

import asyncio
import os
import time
from pathlib import Path

import asyncpg

from kagzi.core.records import RunLease
from kagzi.core.run.commands import Command, RecordStep
from kagzi.core.run.outcomes import Recorded
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.system import SystemRng
from tests.support.postgres import temporary_postgres

from .verbs import NOW, OUTPUT, TERMS, begin, complete, running

_RUNS, _BATCHES, _ROUNDS = 100, 60, 5


def _two(holding: RunLease, step_id: str) -> list[Command]:
    return [begin(holding, step_id), complete(holding, step_id)]


def _one(holding: RunLease, step_id: str) -> list[Command]:
    return [RecordStep(run=holding.run, lease=holding.lease, step_id=step_id, name=step_id, output=OUTPUT)]


def _spent_s(pids: list[int]) -> float:
    """CPU time of these processes so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


async def measure(url: str) -> None:
    await PostgresMigrator(url).migrate()
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    holdings = await running(store, _RUNS)
    watcher = await asyncpg.connect(url)
    sessions = await watcher.fetch("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
    pids = [row["pid"] for row in sessions]
    for number in range(_ROUNDS):
        for name, commands in (("two commands", _two), ("one command", _one)):
            here, there = time.process_time(), _spent_s(pids)
            for batch in range(_BATCHES):
                step_id = f"{name} {number} {batch}"
                written = [command for holding in holdings for command in commands(holding, step_id)]
                outcomes, _ = await store.write(written, NOW, TERMS)
                assert isinstance(outcomes[-1], Recorded)
            steps = _RUNS * _BATCHES / 1e6
            spent = (time.process_time() - here) / steps, (_spent_s(pids) - there) / steps
            print(f"{name}: {spent[0]:.1f} us a step here, {spent[1]:.1f} in the database")
    await watcher.close()
    await store.close()


if __name__ == "__main__":
    with temporary_postgres() as database:
        asyncio.run(measure(database))
