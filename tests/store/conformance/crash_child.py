"""A process that writes to an SQLite file until it is killed, and says what was acknowledged, a line each.

python -m tests.store.conformance.crash_child FILE ROUND
"""

import asyncio
import os
import sys

from kagzi.core.run.outcomes import Recorded, RunClosed
from kagzi.store.sqlite import SqliteStore
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds, LoadedRng

from .verbs import StoreHarness, begin, complete, complete_run, the


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def work(path: str, round_number: int) -> None:
    store = SqliteStore(path, rng=LoadedRng())
    await store.open()
    clock = FakeClock()
    clock.advance(s=round_number)
    harness = StoreHarness(store, clock, CountingIds(round_number + 1))
    while True:
        holding = await harness.running()
        say(f"run {holding.run.run_id}")
        for name in ("a", "b", "c"):
            _, recorded = await harness.write(
                begin(holding, name), complete(holding, name, f"{holding.run.run_id}/{name}")
            )
            say(f"step {holding.run.run_id} {name} {the(Recorded, recorded).seq}")
        the(RunClosed, await harness.do(complete_run(holding, holding.run.run_id)))
        say(f"end {holding.run.run_id}")


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2])))
