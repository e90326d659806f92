"""Any program comes to the same end with and without crashes of its workers (P2, P6, P11)."""

import asyncio
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kagzi import Kagzi, Run
from tests.support.processes import Process

from . import programs
from .cluster import Cluster
from .keeping import replaced

MODULE = "tests.acceptance.programs"
AT_ONCE = 12
CRASH_PERCENT = "6"
RESULT_TIMEOUT = "60s"
# Most workers here die within milliseconds, with all their runs: none of those is to be put aside for it.
SERVER_OPTIONS = ("--claim-cap", "1000000")


async def start_all(client: Kagzi, all_programs: list[programs.Program]) -> list[Run[Any]]:
    runs = [await client.start(programs.interpret, program) for program in all_programs]
    for run, program in zip(runs, all_programs, strict=True):
        for _ in range(programs.signals_in(program)):
            await run.signal(programs.proceed, "went")
    return runs


async def results_of(runs: list[Run[Any]]) -> list[Any]:
    """Of all of them; if one does not end, what Kagzi itself says about that."""
    try:
        return await asyncio.gather(*(run.result(timeout=RESULT_TIMEOUT) for run in runs))
    except TimeoutError as error:
        for run in runs:
            if not (await run.info()).status.ended:
                error.add_note(f"{run.id}: {await run.explain()}")
        raise


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(drawn=st.lists(programs.PROGRAMS, min_size=AT_ONCE, max_size=AT_ONCE))
async def test_crashes_change_nothing(cluster: Cluster, drawn: list[programs.Program]) -> None:
    async with cluster.client() as client:
        steady = await cluster.worker(module=MODULE)
        runs = await start_all(client, drawn)
        expected = await results_of(runs)
        await steady.terminate()

        async def crashing() -> Process:
            return await cluster.crashing_worker(MODULE, CRASH_PERCENT)

        async with replaced([await crashing(), await crashing()], crashing):
            runs = await start_all(client, drawn)
            results = await results_of(runs)
    assert results == expected
    check_bodies(cluster)


def check_bodies(cluster: Cluster) -> None:
    """No process runs an attempt twice, nobody runs a third one, and an attempt runs again only if its process died."""
    entries = cluster.ledger.entries(event="begin")
    within = Counter((entry.run_id, entry.step_id, entry.attempt, entry.pid) for entry in entries)
    assert set(within.values()) <= {1}, within.most_common(3)
    assert max((entry.attempt for entry in entries), default=1) <= 2
