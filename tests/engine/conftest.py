from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from kagzi.core.limits import Settings
from kagzi.engine import Engine
from kagzi.store.protocol import Bus, NullBus
from kagzi.store.sqlite import SqliteStore
from kagzi.system import SystemIds, SystemRng
from tests.engine.fakes import MovableClock, TroubledStore, until

MakeEngine: TypeAlias = Callable[..., Engine]


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
async def store() -> AsyncIterator[TroubledStore]:
    real = SqliteStore(":memory:", rng=SystemRng())
    await real.open()
    try:
        yield TroubledStore(real)
    finally:
        await real.close()


@pytest.fixture
async def make_engine(store: TroubledStore, clock: MovableClock) -> AsyncIterator[MakeEngine]:
    """Engines on the one store; they are stopped in the end."""
    engines: list[Engine] = []

    def make(bus: Bus | None = None, **settings: Any) -> Engine:
        engine = Engine(
            store,
            bus or NullBus(),
            clock=clock,
            ids=SystemIds(),
            rng=SystemRng(),
            settings=Settings(**settings),
            server_id=f"server-{len(engines)}",
        )
        engines.append(engine)
        return engine

    yield make
    store.away = False
    for engine in engines:
        await engine.stop()


@pytest.fixture
async def engine(make_engine: MakeEngine) -> Engine:
    """It looks once, when it starts, and then hardly ever: what these tests wait for comes by signals, not by looking
    again."""
    engine = make_engine(poll_interval_ms=600_000)
    await engine.start()

    async def has_polled() -> bool:
        return engine._timers._poll_at > 0

    await until(has_polled)
    return engine
