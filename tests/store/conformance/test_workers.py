"""Workers are known by what they serve; when one leaves, its runs are free at once."""

import pytest

from kagzi.core.records import Served, WorkerRecord
from kagzi.core.states import RunStatus, WorkerStatus
from kagzi.store.protocol import WorkerBeat

from .verbs import Cellar, begin


async def worker_of(cellar: Cellar, worker_id: str = "worker-1") -> WorkerRecord:
    worker = await cellar.store.get_worker("default", worker_id)
    assert worker is not None
    return worker


async def test_a_worker_is_kept_as_it_registered(cellar: Cellar) -> None:
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
    await cellar.store.register_worker(record, cellar.now)
    found = await cellar.store.get_worker("new", "worker-1")
    assert found is not None
    assert set(found.served) == set(record.served)
    assert (found.hostname, found.pid, found.sdk_version, found.build_id) == ("box", 4711, "0.1.0", "abc")
    assert (found.max_concurrent, found.labels, found.status) == (77, {"zone": "ø"}, WorkerStatus.ONLINE)
    assert (found.registered_at, found.last_heartbeat_at) == (cellar.now, cellar.now)
    assert (found.active_count, found.total_completed, found.total_failed) == (0, 0, 0)
    assert await cellar.store.get_namespace("new") is not None
    assert await cellar.store.get_worker("new", "worker-2") is None


async def test_a_worker_that_registers_again_is_refreshed(cellar: Cellar) -> None:
    await cellar.register("worker-1", served={"a": "1"}, hostname="old")
    await cellar.store.set_worker_status("default", "worker-1", WorkerStatus.OFFLINE, cellar.now)
    cellar.clock.advance(s=1)
    await cellar.register("worker-1", served={"b": "2"}, hostname="new")
    worker = await worker_of(cellar)
    assert (worker.hostname, worker.served, worker.status) == ("new", (Served("b", "2"),), WorkerStatus.ONLINE)
    assert worker.last_heartbeat_at == cellar.now
    page = await cellar.store.list_workers("default", workflow_type=None, status=None, cursor=None, limit=10)
    assert len(page.rows) == 1


async def test_beats_are_noted_and_deltas_add_up(cellar: Cellar) -> None:
    await cellar.register("worker-1")
    await cellar.register("worker-2")
    for second in (1, 2):
        cellar.clock.advance(s=1)
        beats = [WorkerBeat("worker-1", 3 + second, 10, 1, cellar.now), WorkerBeat("unknown", 1, 1, 1, cellar.now)]
        await cellar.store.look(beats, cellar.now)
    worker = await worker_of(cellar)
    assert (worker.active_count, worker.total_completed, worker.total_failed) == (5, 20, 2)
    assert worker.last_heartbeat_at == cellar.now
    other = await worker_of(cellar, "worker-2")
    assert (other.active_count, other.total_completed, other.last_heartbeat_at) == (0, 0, cellar.now - 2_000_000)


async def test_a_worker_that_leaves_hands_everything_back(cellar: Cellar) -> None:
    await cellar.register("worker-1")
    mine = [await cellar.running(), await cellar.running()]
    await cellar.start()
    other = await cellar.claim_one(worker_id="worker-2")
    woken = await cellar.store.worker_left("default", "worker-1", cellar.now, hand_back=True)
    assert list(woken or ()) == [("default", "hello")]
    assert (await worker_of(cellar)).status == WorkerStatus.OFFLINE
    for holding in mine:
        record = await cellar.run(holding.run)
        assert (record.status, record.lost_leases) == (RunStatus.PENDING, 0)
        assert type(await cellar.do(begin(holding, "late"))).__name__ == "LeaseLost"
    assert (await cellar.run(other.run)).status == RunStatus.RUNNING


async def test_a_worker_that_drains_keeps_its_runs(cellar: Cellar) -> None:
    # Once heartbeats stopped when draining began, so draining runs lost their leases.
    await cellar.register("worker-1")
    holding = await cellar.running()
    assert list(await cellar.store.worker_left("default", "worker-1", cellar.now, hand_back=False) or ()) == []
    assert (await worker_of(cellar)).status == WorkerStatus.DRAINING
    assert (await cellar.renew(holding)).lost == ()
    assert type(await cellar.do(begin(holding, "a"))).__name__ == "Begun"


async def test_an_unknown_worker_cannot_leave(cellar: Cellar) -> None:
    assert await cellar.store.worker_left("default", "nobody", cellar.now, hand_back=True) is None
    assert not await cellar.store.set_worker_status("default", "nobody", WorkerStatus.OFFLINE, cellar.now)


@pytest.mark.parametrize("status", list(WorkerStatus))
async def test_a_status_is_set(cellar: Cellar, status: WorkerStatus) -> None:
    await cellar.register("worker-1")
    assert await cellar.store.set_worker_status("default", "worker-1", status, cellar.now)
    assert (await worker_of(cellar)).status == status


async def test_workers_are_found_by_type_and_status(cellar: Cellar) -> None:
    await cellar.register("a", served={"x": "1", "y": "1"})
    cellar.clock.advance(us=1)
    await cellar.register("b", served={"x": "2"})
    cellar.clock.advance(us=1)
    await cellar.register("c", served={"z": "1"})
    await cellar.store.set_worker_status("default", "b", WorkerStatus.DRAINING, cellar.now)

    async def found(workflow_type: str | None = None, status: WorkerStatus | None = None) -> list[str]:
        page = await cellar.store.list_workers(
            "default", workflow_type=workflow_type, status=status, cursor=None, limit=10
        )
        return [worker.worker_id for worker in page.rows]

    assert await found() == ["c", "b", "a"]
    assert await found("x") == ["b", "a"]
    assert await found("x", WorkerStatus.ONLINE) == ["a"]
    assert await found(status=WorkerStatus.DRAINING) == ["b"]
    assert await found("nothing") == []
