"""Any program comes to the same end with and without crashes of its workers (P2, P6, P11)."""

import asyncio
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kagzi import Kagzi, Run
from tests.support.processes import Process

from . import programs
from .site import Site

MODULE = "tests.acceptance.programs"
AT_ONCE = 12
CRASH_PERCENT = "6"


async def start_all(client: Kagzi, given_programs: list[programs.Program]) -> list[Run[Any]]:
    runs = [await client.start(programs.interpret, program) for program in given_programs]
    for run, program in zip(runs, given_programs, strict=True):
        for _ in range(programs.signals_in(program)):
            await run.signal(programs.go, "went")
    return runs


async def keep_alive(site: Site, workers: list[Process]) -> None:
    """Whoever has died is replaced."""
    while True:
        for index, worker in enumerate(workers):
            if not worker.running:
                workers[index] = await site.worker(module=MODULE, KAGZI_TEST_CRASHES=CRASH_PERCENT)
        await asyncio.sleep(0.05)


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drawn=st.lists(programs.PROGRAMS, min_size=AT_ONCE, max_size=AT_ONCE))
async def test_crashes_change_nothing(site: Site, drawn: list[programs.Program]) -> None:
    async with site.client() as client:
        steady = await site.worker(module=MODULE)
        runs = await start_all(client, drawn)
        expected = await asyncio.gather(*(run.result(timeout="60s") for run in runs))
        await steady.terminate()

        workers = [await site.worker(module=MODULE, KAGZI_TEST_CRASHES=CRASH_PERCENT) for _ in range(2)]
        keeper = asyncio.create_task(keep_alive(site, workers))
        try:
            runs = await start_all(client, drawn)
            results = await asyncio.gather(*(run.result(timeout="60s") for run in runs))
        finally:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
            for worker in workers:
                worker.kill()
    assert results == expected
    check_bodies(site)


def check_bodies(site: Site) -> None:
    """No process runs an attempt twice, nobody runs a third one, and an attempt runs again only if its process died."""
    entries = site.ledger.entries(event="begin")
    within = Counter((entry.run_id, entry.step_id, entry.attempt, entry.pid) for entry in entries)
    assert set(within.values()) <= {1}, within.most_common(3)
    assert max((entry.attempt for entry in entries), default=1) <= 2
