"""How long runs are kept: as their namespace says, by how they ended, else as the server says; and never an open
one."""

from typing import cast

from kagzi.core.limits import Settings
from kagzi.core.records import NamespaceRecord, RunFilter
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_S
from kagzi.engine import Engine
from kagzi.engine.background.retention import AIM_S, Batch, Retention
from kagzi.store.protocol import Store

from .conftest import MakeEngine
from .fakes import MovableClock, TroubledStore, start, until

DAY_US = 86_400 * US_PER_S
A_DAY = Settings(retention_ms=86_400_000)


async def sweep(retention: Retention, clock: MovableClock) -> int:
    """One whole sweep; answers how many calls it took."""
    calls = 1
    while await retention.work(clock.now()):
        calls += 1
        assert calls < 10_000, "it has no end"
    return calls


async def names(store: TroubledStore, namespace: str = "default") -> set[str]:
    rows = await cast("Store", store).list_runs(namespace, RunFilter(), None, 1_000)
    return {record.workflow_id for record in rows.rows}


async def ended(engine: Engine, workflow_id: str, namespace: str = "default") -> None:
    await engine.runs.start(start(workflow_id=workflow_id, namespace=namespace))
    await engine.control.terminate(namespace, workflow_id=workflow_id)


async def test_the_servers_default(engine: Engine, store: TroubledStore, clock: MovableClock) -> None:
    retention = Retention(cast("Store", store), A_DAY)
    await ended(engine, "old")
    await engine.runs.start(start(workflow_id="open"))
    clock.ahead_us += DAY_US - 60 * US_PER_S
    await ended(engine, "new")
    await sweep(retention, clock)
    assert await names(store) == {"old", "open", "new"}
    clock.ahead_us += 120 * US_PER_S
    await sweep(retention, clock)
    assert await names(store) == {"open", "new"}
    clock.ahead_us += 100 * DAY_US
    await sweep(retention, clock)
    assert await names(store) == {"open"}


async def test_namespaces_have_their_own(engine: Engine, store: TroubledStore, clock: MovableClock) -> None:
    retention = Retention(cast("Store", store), A_DAY)
    for namespace in ("brief", "plain", "careful"):
        await ended(engine, "run", namespace)
    rules = {"brief": {RunStatus.CANCELLED.value: 3_600}, "careful": {RunStatus.CANCELLED.value: 10 * 86_400}}
    for namespace, seconds in rules.items():
        await store.put_namespace(NamespaceRecord(namespace=namespace, retention_seconds=seconds), clock.now())
    clock.ahead_us += DAY_US // 2
    await sweep(retention, clock)
    assert [await names(store, one) for one in ("brief", "plain", "careful")] == [set(), {"run"}, {"run"}]
    clock.ahead_us += DAY_US
    await sweep(retention, clock)
    assert [await names(store, one) for one in ("brief", "plain", "careful")] == [set(), set(), {"run"}]


async def test_more_than_one_batch(engine: Engine, store: TroubledStore, clock: MovableClock) -> None:
    retention = Retention(cast("Store", store), A_DAY)
    for number in range(60):
        await ended(engine, f"run-{number}")
    clock.ahead_us += 2 * DAY_US
    assert await sweep(retention, clock) > 3
    assert await names(store) == set()


async def test_the_engine_does_it_by_itself(make_engine: MakeEngine, store: TroubledStore, clock: MovableClock) -> None:
    engine = make_engine(poll_interval_ms=600_000, housekeeping_ms=10, retention_ms=1_000)
    await engine.start()
    await ended(engine, "old")
    clock.ahead_us += 60 * US_PER_S

    async def gone() -> bool:
        return await names(store) == set()

    await until(gone)


def test_batches_take_as_long_as_they_may() -> None:
    batch = Batch()
    per_run_s = 0.0005
    for _ in range(100):
        batch.took(batch.runs * per_run_s)
    assert 0.5 * AIM_S < batch.runs * per_run_s < 1.5 * AIM_S
    before = batch.runs
    batch.took(10 * AIM_S)
    assert batch.runs == before // 2
    for _ in range(100):
        batch.took(1.0)
    assert batch.runs == 1
