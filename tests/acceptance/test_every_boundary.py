"""P6, P9, P11 for random programs on the real engine and both real stores: a crash or a cancellation at every moment.

KAGZI_TEST_ENGINE_PROGRAMS says how many programs a store is given; `make properties` gives it 100.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kagzi.core.limits import Settings
from kagzi.core.records import RunEnd
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_MS
from kagzi.engine import Engine
from kagzi.store.protocol import NullBus, Store
from kagzi.system import SystemIds, SystemRng
from tests.engine.fakes import MovableClock
from tests.support.random_programs import PROGRAMS, Program
from tests.support.replaying import check_replays

from .engine_harness import EngineHarness

COUNT = int(os.environ.get("KAGZI_TEST_ENGINE_PROGRAMS", "4"))
pytestmark = pytest.mark.timeout(120 + 60 * COUNT)
AT_ONCE = 25
SEEDS = st.integers(0, 2**32)
SOME = settings(
    max_examples=COUNT,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "kagzi.db") if request.param == "sqlite" else request.getfixturevalue("migrated_postgres_url")


async def open_store(database: str) -> Store:
    if database.startswith("postgres"):
        from kagzi.store.postgres import PostgresMigrator, PostgresStore

        await PostgresMigrator(database).migrate()
        store: Store = PostgresStore(database, rng=SystemRng())
    else:
        from kagzi.store.sqlite import SqliteMigrator, SqliteStore

        await SqliteMigrator(database).migrate()
        store = SqliteStore(database, rng=SystemRng())
    await store.open()
    return store


class Harnesses:
    """An engine on a store. Many performances at a time."""

    def __init__(self, engine: Engine, clock: MovableClock) -> None:
        self._engine = engine
        self._clock = clock
        self._running = asyncio.Semaphore(AT_ONCE)
        self._namespaces = 0

    async def perform(
        self, program: Program, seed: int, *, crash_at: int | None = None, cancel_at: int | None = None
    ) -> tuple[EngineHarness, RunEnd]:
        self._namespaces += 1
        harness = EngineHarness(
            self._engine,
            self._clock,
            program,
            seed,
            f"n{self._namespaces}",
            crash_at=crash_at,
            cancel_at=cancel_at,
        )
        async with self._running:
            end = await harness.play()
            await harness.check()
            if end.status is RunStatus.COMPLETED:
                await check_replays(await harness.history(), *harness.player.workflows, times=1, seed=seed)
        return harness, end


@asynccontextmanager
async def harnesses(database: str, *, poll_interval_ms: int = 600_000) -> AsyncIterator[Harnesses]:
    store = await open_store(database)
    clock = MovableClock()
    # A lease ends as soon as its session does: what counts here is what was lost, not how long that took. These workers
    # have no heartbeat, and on a machine with much to do they would be taken for late.
    settings = Settings(lease_ms=240_000, heartbeat_ms=120_000, reconnect_grace_ms=1, poll_interval_ms=poll_interval_ms)
    engine = Engine(
        store, NullBus(), clock=clock, ids=SystemIds(), rng=SystemRng(), settings=settings, server_id="server"
    )
    await engine.start()
    clock.ahead_us += settings.lease_ms * US_PER_MS  # a server that has just begun ends no lease for one term
    try:
        yield Harnesses(engine, clock)
    finally:
        await engine.stop()
        await store.close()


@given(program=PROGRAMS, seed=SEEDS)
@SOME
async def test_a_crash_or_a_cancellation_at_any_moment(database: str, program: Program, seed: int) -> None:
    async with harnesses(database) as engine_harnesses:
        harness, expected = await engine_harnesses.perform(program, seed)
        assert expected.status is RunStatus.COMPLETED, expected
        wanted = harness.value_of(expected)

        async def crash(moment: int) -> int:
            crashed, end = await engine_harnesses.perform(program, seed, crash_at=moment)
            assert crashed.value_of(end) == wanted, f"crash at {moment}, {crashed.moments[moment - 1 : moment + 2]}"
            return crashed.crashes

        async def cancel(moment: int) -> None:
            rng = Random(moment)
            then = rng.choice([None, moment + rng.randrange(4)])
            cancelled, end = await engine_harnesses.perform(program, seed, cancel_at=moment, crash_at=then)
            stopped = end.status is RunStatus.CANCELLED
            assert stopped or cancelled.value_of(end) == wanted, f"cancelled at {moment}: {end}"

        moments = range(len(harness.moments))
        crashes = await asyncio.gather(*(crash(moment) for moment in moments))
        assert sum(crashes) > len(crashes) / 2, "most crashes came too late to hit anything"
        await asyncio.gather(*(cancel(moment) for moment in moments))
