"""Workers are known by what they serve; when one leaves, its runs are free at once."""

import pytest

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.records import Served, WorkerRecord
from kagzi.core.states import RunStatus, WorkerStatus
from kagzi.store.protocol import Heartbeat

from .verbs import StoreHarness, begin


async def worker_of(harness: StoreHarness, worker_id: str = "worker-1") -> WorkerRecord:
    worker = await harness.store.get_worker("default", worker_id)
    assert worker is not None
    return worker


async def test_a_worker_is_kept_as_it_registered(harness: StoreHarness) -> None:
    record = WorkerRecord(
        worker_id="worker-1",
        namespace="new",
        served=(Served("b", "2"), Served("a", "1"), Served("b", "1")),
        max_concurrent=77,
        hostname="box",
        pid=4711,
        sdk_version="0.1.0",
        build_id="abc",
        labels={"zone": "ø"},
    )
    await harness.store.register_worker(record, harness.now)
    stored = await harness.store.get_worker("new", "worker-1")
    assert stored is not None
    assert set(stored.served) == set(record.served)
    assert (stored.hostname, stored.pid, stored.sdk_version, stored.build_id) == ("box", 4711, "0.1.0", "abc")
    assert (stored.max_concurrent, stored.labels, stored.status) == (77, {"zone": "ø"}, WorkerStatus.ONLINE)
    assert (stored.registered_at, stored.last_heartbeat_at) == (harness.now, harness.now)
    assert (stored.active_count, stored.total_completed, stored.total_failed) == (0, 0, 0)
    assert await harness.store.get_namespace("new") is not None
    assert await harness.store.get_worker("new", "worker-2") is None


async def test_a_worker_that_registers_again_is_refreshed(harness: StoreHarness) -> None:
    await harness.register("worker-1", served={"a": "1"}, hostname="old")
    await harness.store.set_worker_status("default", "worker-1", WorkerStatus.OFFLINE, harness.now)
    harness.clock.advance(s=1)
    await harness.register("worker-1", served={"b": "2"}, hostname="new")
    worker = await worker_of(harness)
    assert (worker.hostname, worker.served, worker.status) == ("new", (Served("b", "2"),), WorkerStatus.ONLINE)
    assert worker.last_heartbeat_at == harness.now
    page = await harness.store.list_workers("default", workflow_type=None, status=None, cursor=None, limit=10)
    assert len(page.rows) == 1


async def test_heartbeats_are_noted_and_deltas_add_up(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    await harness.register("worker-2")
    for second in (1, 2):
        harness.clock.advance(s=1)
        heartbeats = [Heartbeat("worker-1", 3 + second, 10, 1, harness.now), Heartbeat("unknown", 1, 1, 1, harness.now)]
        await harness.store.poll(heartbeats, harness.now)
    worker = await worker_of(harness)
    assert (worker.active_count, worker.total_completed, worker.total_failed) == (5, 20, 2)
    assert worker.last_heartbeat_at == harness.now
    other = await worker_of(harness, "worker-2")
    assert (other.active_count, other.total_completed, other.last_heartbeat_at) == (0, 0, harness.now - 2_000_000)


async def test_a_worker_that_leaves_hands_everything_back(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    mine = [await harness.running(), await harness.running()]
    await harness.start()
    other = await harness.claim_one(worker_id="worker-2")
    known, effects = await harness.store.worker_left("default", "worker-1", harness.now, hand_back=True)
    assert (known, effects.pending) == (True, (("default", "hello"),))
    assert (await worker_of(harness)).status == WorkerStatus.OFFLINE
    for holding in mine:
        record = await harness.run(holding.run)
        assert (record.status, record.lost_leases) == (RunStatus.PENDING, 0)
        assert type(await harness.do(begin(holding, "late"))).__name__ == "LeaseLost"
    assert (await harness.run(other.run)).status == RunStatus.RUNNING


async def test_a_worker_that_drains_keeps_its_runs(harness: StoreHarness) -> None:
    # Once heartbeats stopped when draining began, so draining runs lost their leases.
    await harness.register("worker-1")
    holding = await harness.running()
    assert await harness.store.worker_left("default", "worker-1", harness.now, hand_back=False) == (True, NO_EFFECTS)
    assert (await worker_of(harness)).status == WorkerStatus.DRAINING
    assert (await harness.renew(holding)).lost == ()
    assert type(await harness.do(begin(holding, "a"))).__name__ == "Begun"


async def test_an_unknown_worker_cannot_leave(harness: StoreHarness) -> None:
    assert await harness.store.worker_left("default", "nobody", harness.now, hand_back=True) == (False, NO_EFFECTS)
    assert not await harness.store.set_worker_status("default", "nobody", WorkerStatus.OFFLINE, harness.now)


@pytest.mark.parametrize("status", list(WorkerStatus))
async def test_a_status_is_set(harness: StoreHarness, status: WorkerStatus) -> None:
    await harness.register("worker-1")
    assert await harness.store.set_worker_status("default", "worker-1", status, harness.now)
    assert (await worker_of(harness)).status == status


async def test_workers_are_listed_by_type_and_status(harness: StoreHarness) -> None:
    await harness.register("a", served={"x": "1", "y": "1"})
    harness.clock.advance(us=1)
    await harness.register("b", served={"x": "2"})
    harness.clock.advance(us=1)
    await harness.register("c", served={"z": "1"})
    await harness.store.set_worker_status("default", "b", WorkerStatus.DRAINING, harness.now)

    async def listed(workflow_type: str | None = None, status: WorkerStatus | None = None) -> list[str]:
        page = await harness.store.list_workers(
            "default", workflow_type=workflow_type, status=status, cursor=None, limit=10
        )
        return [worker.worker_id for worker in page.rows]

    assert await listed() == ["c", "b", "a"]
    assert await listed("x") == ["b", "a"]
    assert await listed("x", WorkerStatus.ONLINE) == ["a"]
    assert await listed(status=WorkerStatus.DRAINING) == ["b"]
    assert await listed("nothing") == []
