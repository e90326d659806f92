"""What a change of the schema saves: CPU of PostgreSQL and of the process that calls the store, for each operation.

    python -m tests.store.postgres.measure_schema "DROP INDEX runs_finished" ...

Each argument is applied to a database of its own; the first column is the schema as it is. All take turns, a few
batches at a time, so that a busy machine is as busy for all of them. Lower quartiles, in microseconds.
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import msgspec

from kagzi.core.records import Lease, RunKey, RunLease
from kagzi.core.run.commands import CompleteRun
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.store.protocol import LeaseTerms
from kagzi.system import SystemIds, SystemRng
from tests.support.postgres import postgres_databases

from .verbs import LEASE_US, OUTPUT, begin, complete, start

SECONDS = 60.0
SIZES = (1, 5, 50)
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'kagzi' AND datname = current_database()"

_ids = SystemIds()


class Variant:
    """A database with a store on it. Times go on, so that rows come in the order in which they come in earnest."""

    def __init__(self, url: str, change: str) -> None:
        self._url = url
        self._change = change
        self._store = PostgresStore(url, rng=SystemRng())
        self._backends: list[int] = []
        self.cpu: dict[str, list[tuple[float, float]]] = {}

    async def open(self) -> None:
        await PostgresMigrator(self._url).migrate()
        connection = await asyncpg.connect(self._url)
        if self._change:
            await connection.execute(self._change)
        await self._store.open()
        await self.lives(1)
        self._backends = [row["pid"] for row in await connection.fetch(BACKENDS)]
        await connection.close()

    async def close(self) -> None:
        await self._store.close()

    async def starts(self, count: int) -> list[RunLease]:
        now = time.time_ns() // 1_000
        runs = [RunKey("default", _ids.run_id(now, "default")) for _ in range(count)]
        commands = [msgspec.structs.replace(start(assigned=True), run=run) for run in runs]
        await self._store.write(commands, now, LeaseTerms(now + LEASE_US, now))
        return [RunLease(command.run, Lease(1, 7)) for command in commands]

    async def lives(self, count: int) -> None:
        """A run, a step, and the end."""
        leased, now = await self.starts(count), time.time_ns() // 1_000
        commands = [
            command
            for one in leased
            for command in (
                begin(one, "a"),
                complete(one, "a"),
                CompleteRun(run=one.run, lease=one.lease, output=OUTPUT),
            )
        ]
        await self._store.write(commands, now, LeaseTerms(now + LEASE_US, now))

    async def measure(self, name: str, count: int, act: Callable[[int], Awaitable[object]]) -> None:
        batches = max(4, 200 // count // 5)
        before, own = self._backend_cpu(), time.process_time()
        for _ in range(batches):
            await act(count)
        operations = batches * count
        own_us = (time.process_time() - own) * 1e6 / operations
        self.cpu.setdefault(name, []).append(((self._backend_cpu() - before) / operations, own_us))

    def _backend_cpu(self) -> float:
        """In microseconds, from the scheduler: ticks would be too coarse."""
        paths = (Path(f"/proc/{pid}/schedstat") for pid in self._backends)
        return sum(int(path.read_text().split()[0]) / 1_000 for path in paths)


async def measure(variants: list[Variant]) -> None:
    for variant in variants:
        await variant.open()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for count in SIZES:
            for variant in random.sample(variants, len(variants)):
                await variant.measure(f"start, {count} at once", count, variant.starts)
                await variant.measure(f"start, step and end, {count} at once", count, variant.lives)
    for variant in variants:
        await variant.close()


def main() -> None:
    with postgres_databases() as databases, ExitStack() as stack:
        variants = [Variant(stack.enter_context(databases.database()), change) for change in ("", *sys.argv[1:])]
        asyncio.run(measure(variants))
    print(f"{'database / caller':36}", *(f"{change[:22] or 'as it is':>24}" for change in ("", *sys.argv[1:])))
    for name in variants[0].cpu:
        figures = [[sorted(column)[len(column) // 4] for column in zip(*v.cpu[name], strict=True)] for v in variants]
        print(f"{name:36}", *(f"{database:14.1f} / {own:7.1f}" for database, own in figures))


if __name__ == "__main__":
    main()
