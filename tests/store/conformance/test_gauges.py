"""How things stand on the whole server: bounded looks, alike on every store."""

from kagzi.core.records import RunKey, Served, WorkerRecord
from kagzi.core.states import RunStatus, WorkerStatus
from kagzi.core.times import US_PER_S
from kagzi.core.workflow_types.queues import TypeLimits
from kagzi.store.protocol import Heartbeat, OpenRunsGauge, QueueGauge, RunType, TypeKey, WorkersGauge

from .verbs import STEADY, StoreHarness, begin, fail, leased, park, wait_signal

LONG_AGO = 0


def queue(workflow_type: str, waiting: int, since: int, *, served: bool = False, limited: bool = False) -> QueueGauge:
    key = TypeKey("default", workflow_type)
    return QueueGauge(key=key, waiting=waiting, oldest_since=since, served=served, limited=limited)


async def register(harness: StoreHarness, worker_id: str, workflow_type: str, namespace: str = "default") -> None:
    served = (Served(workflow_type, "1"),)
    worker = WorkerRecord(worker_id=worker_id, namespace=namespace, served=served, max_concurrent=10)
    await harness.store.register_worker(worker, harness.now)


async def test_queues_are_counted_by_type_with_who_serves_them(harness: StoreHarness) -> None:
    store, first = harness.store, harness.now
    assert await store.queue_gauges(LONG_AGO, types=10, runs=1_000) == ()
    await harness.start_many(3, workflow_type="b")
    await harness.start(workflow_type="c")
    await register(harness, "worker-1", "c")
    harness.clock.advance(us=US_PER_S)
    later = harness.now
    await harness.start_many(2, workflow_type="a")
    await store.put_type_limits("default", "a", TypeLimits(max_running=1), later)
    expected = [queue("a", 2, later, limited=True), queue("b", 3, first), queue("c", 1, first, served=True)]
    assert list(await store.queue_gauges(first, types=10, runs=1_000)) == expected
    silent = await store.queue_gauges(later, types=10, runs=1_000)
    assert [gauge.served for gauge in silent] == [False, False, False]


async def test_types_beyond_the_limit_are_counted_together(harness: StoreHarness) -> None:
    since = harness.now
    for name in ("a", "b", "c", "d"):
        await harness.start_many(2, workflow_type=name)
    gauges = await harness.store.queue_gauges(LONG_AGO, types=2, runs=1_000)
    rest = QueueGauge(key=TypeKey("", ""), waiting=4, oldest_since=since)
    assert list(gauges) == [queue("a", 2, since), queue("b", 2, since), rest]


async def test_no_more_runs_are_counted_than_asked_for(harness: StoreHarness) -> None:
    await harness.start_many(120)
    await harness.start_many(30, workflow_type="other")
    gauges = await harness.store.queue_gauges(LONG_AGO, types=10, runs=1)
    assert {gauge.key.workflow_type: gauge.waiting for gauge in gauges} == {"hello": 100, "other": 30}
    (opened,) = await harness.store.open_run_gauges(namespaces=10, runs=1)
    assert opened.by_status[RunStatus.PENDING] == 100


async def test_open_runs_are_counted_by_namespace_and_status(harness: StoreHarness) -> None:
    await harness.running()
    await harness.asleep()
    await harness.start_many(2)
    await harness.pause(await harness.start())
    ended = await harness.start()
    await harness.terminate(ended)
    waiting = await harness.hold(await harness.start(workflow_type="waits"))
    await harness.insist(wait_signal(waiting, "approved"))
    await harness.insist(park(waiting))
    failing = await harness.hold(await harness.start(workflow_type="fails"))
    await harness.insist(begin(failing, "charge", retry=STEADY))
    await harness.insist(fail(failing, "charge"))
    await harness.insist(park(failing))
    counts = {RunStatus.PENDING: 2, RunStatus.RUNNING: 1, RunStatus.SLEEPING: 3, RunStatus.PAUSED: 1}
    expected = OpenRunsGauge(namespace="default", by_status=counts, retrying=1, awaiting_signal=1)
    assert list(await harness.store.open_run_gauges(namespaces=10, runs=1_000)) == [expected]


async def test_workers_that_are_there_are_counted_with_their_slots(harness: StoreHarness) -> None:
    store = harness.store
    await register(harness, "gone", "a")
    await register(harness, "left", "a")
    harness.clock.advance(us=US_PER_S)
    since = harness.now
    for name in ("w1", "w2", "w3"):
        await register(harness, name, "a")
    await register(harness, "far", "a", "elsewhere")
    await store.poll([Heartbeat("w1", 4, 0, 0, since)], since)
    await store.set_worker_status("default", "w3", WorkerStatus.DRAINING, since)
    await store.set_worker_status("default", "left", WorkerStatus.OFFLINE, since)
    online, draining = WorkerStatus.ONLINE, WorkerStatus.DRAINING
    assert set(await store.worker_gauges(since, workers=100)) == {
        WorkersGauge(namespace="default", status=online, workers=2, slots=20, used=4),
        WorkersGauge(namespace="default", status=draining, workers=1, slots=10, used=0),
        WorkersGauge(namespace="elsewhere", status=online, workers=1, slots=10, used=0),
    }


async def test_names_come_in_an_order_that_is_the_same_for_everybody(harness: StoreHarness) -> None:
    for namespace, workflow_type in (("z", "beta"), ("y", "gamma"), ("x", "alpha")):
        await register(harness, f"worker-{namespace}", workflow_type, namespace)
        harness.clock.advance(us=1)
    assert await harness.store.first_names(namespaces=2, types=2) == (["z", "y"], ["alpha", "beta"])


async def test_a_claim_tells_since_when_a_run_was_ready_and_when_it_was_first_claimed(harness: StoreHarness) -> None:
    ready = harness.now
    run = await harness.start()
    harness.clock.advance(us=US_PER_S)
    claimed_at = harness.now
    claimed = await harness.claim_one()
    assert (claimed.ready_at, claimed.started_at, claimed.claimed_at) == (ready, claimed_at, claimed_at)
    assert await harness.store.types_of([run]) == {run.run_id: RunType("hello", claimed_at)}
    assert await harness.store.types_of([RunKey("elsewhere", run.run_id)]) == {}
    harness.clock.advance(us=US_PER_S)
    released_at = harness.now
    await harness.store.put_type_limits("default", "hello", TypeLimits(max_running=5), released_at)
    await harness.store.release([leased(claimed)], released_at)
    harness.clock.advance(us=US_PER_S)
    again = await harness.claim_one()
    assert (again.ready_at, again.started_at, again.claimed_at) == (released_at, claimed_at, harness.now)


async def test_connections_are_counted(harness: StoreHarness) -> None:
    await harness.start()
    assert sum(harness.store.connections.values()) >= 1
