"""What happens to workers is kept, with the change itself, and not for ever."""

import pytest

from kagzi.core import limits
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import Served, WorkerRecord
from kagzi.core.states import WorkerStatus
from kagzi.core.workers import Diagnostic, Registration, WorkerEvent
from kagzi.store.protocol import Heartbeat

from .verbs import StoreHarness


async def events(
    harness: StoreHarness, worker_id: str | None = "worker-1", namespace: str = "default"
) -> list[WorkerEvent]:
    rows = await harness.store.list_worker_events(namespace, worker_id=worker_id, cursor=None, limit=1_000)
    return list(reversed(rows.rows))


async def kinds(harness: StoreHarness, worker_id: str | None = "worker-1") -> list[str]:
    return [event.kind.value for event in await events(harness, worker_id)]


async def status(harness: StoreHarness, worker_id: str = "worker-1") -> WorkerStatus:
    worker = await harness.store.get_worker("default", worker_id)
    assert worker is not None
    return worker.status


async def register(harness: StoreHarness, *, hostname: str, pid: int, build_id: str = "") -> Registration:
    record = WorkerRecord(
        worker_id="worker-1",
        namespace="default",
        served=(Served("hello", "1"),),
        max_concurrent=1,
        hostname=hostname,
        pid=pid,
        build_id=build_id,
    )
    return await harness.store.register_worker(record, harness.now)


async def test_the_life_of_a_worker(harness: StoreHarness) -> None:
    first = await register(harness, hostname="box", pid=7, build_id="b1")
    again = await register(harness, hostname="box", pid=7, build_id="b1")
    assert (first.known_before, again.known_before) == (False, True)
    assert (first.new_versions, again.new_versions) == (True, False)
    await harness.store.drain_worker("default", "worker-1", "wanted", harness.now)
    await harness.store.drain_worker("default", "worker-1", "wanted", harness.now)  # once is enough
    await harness.store.worker_left("default", "worker-1", harness.now, hand_back=True)
    await harness.store.worker_left("default", "worker-1", harness.now, hand_back=True)
    assert await kinds(harness) == ["registered", "reconnected", "draining", "drained", "left"]
    registered, _, draining, *_ = await events(harness)
    assert "box" in registered.detail
    assert "pid 7" in registered.detail
    assert "b1" in registered.detail
    assert (draining.detail, draining.at) == ("wanted", harness.now)


async def test_one_that_leaves_with_runs_says_how_many(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    await harness.running()
    await harness.running()
    await harness.store.worker_left("default", "worker-1", harness.now, hand_back=True)
    assert (await events(harness))[-1].detail == "2 runs were handed back"


async def test_draining_outlives_a_reconnect_of_the_same_process_only(harness: StoreHarness) -> None:
    await register(harness, hostname="box", pid=7)
    drained = await harness.store.drain_worker("default", "worker-1", "", harness.now)
    assert drained is not None
    assert drained.status is WorkerStatus.DRAINING
    back = await register(harness, hostname="box", pid=7)
    assert back.draining
    assert await status(harness) is WorkerStatus.DRAINING
    another = await register(harness, hostname="box", pid=8)
    assert not another.draining
    assert await status(harness) is WorkerStatus.ONLINE


async def test_one_that_left_cannot_be_drained(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    await harness.store.worker_left("default", "worker-1", harness.now, hand_back=True)
    worker = await harness.store.drain_worker("default", "worker-1", "", harness.now)
    assert worker is not None
    assert worker.status is WorkerStatus.OFFLINE
    assert await harness.store.drain_worker("default", "nobody", "", harness.now) is None
    assert await harness.store.drain_worker("elsewhere", "worker-1", "", harness.now) is None


async def test_a_request_to_drain_is_not_a_sign_of_life(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    heartbeat_at = harness.now
    harness.clock.advance(s=60)
    worker = await harness.store.drain_worker("default", "worker-1", "", harness.now)
    assert worker is not None
    assert worker.last_heartbeat_at == heartbeat_at


async def test_a_silent_worker_is_lost_once(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    await harness.register("worker-2")
    harness.clock.advance(s=20)
    await harness.store.poll([Heartbeat("worker-2", 0, 0, 0, harness.now)], harness.now)
    since = harness.now - 15_000_000
    assert await harness.store.expire_workers(since, harness.now, 10) == 1
    assert await harness.store.expire_workers(since, harness.now, 10) == 0
    assert await status(harness) is WorkerStatus.OFFLINE
    assert await status(harness, "worker-2") is WorkerStatus.ONLINE
    assert await kinds(harness) == ["registered", "lost"]


async def test_one_worker_can_be_lost_unless_it_sent_a_heartbeat(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    await harness.register("worker-2")
    broke_at = harness.now + 1
    harness.clock.advance(s=5)
    await harness.register("worker-2")  # to another server
    for worker_id, lost in (("worker-1", 1), ("worker-2", 0), ("nobody", 0)):
        assert await harness.store.expire_workers(broke_at, harness.now, 1, ("default", worker_id)) == lost


async def test_a_list_shows_silent_workers_as_offline(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    harness.clock.advance(s=20)
    await harness.register("worker-2")

    async def listed(status: WorkerStatus | None) -> dict[str, WorkerStatus]:
        rows = await harness.store.list_workers(
            "default", workflow_type=None, status=status, cursor=None, limit=10, alive_since=harness.now - 15_000_000
        )
        return {worker.worker_id: worker.status for worker in rows.rows}

    offline, online = {"worker-1": WorkerStatus.OFFLINE}, {"worker-2": WorkerStatus.ONLINE}
    assert await listed(None) == offline | online
    assert await listed(WorkerStatus.OFFLINE) == offline
    assert await listed(WorkerStatus.ONLINE) == online


async def test_trouble_is_kept_in_words(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    diagnostics = [Diagnostic("loop_blocked", "here"), Diagnostic("threads_full", "there")]
    await harness.store.note_diagnostics("default", "worker-1", diagnostics, harness.now)
    await harness.store.note_diagnostics("default", "nobody", diagnostics, harness.now)
    assert [event.detail for event in (await events(harness))[1:]] == ["loop_blocked: here", "threads_full: there"]
    assert await events(harness, "nobody") == []


async def test_the_latest_events_of_a_worker_are_kept(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WORKER_EVENTS", 3)
    await harness.register("worker-2")
    await harness.register("worker-1")
    for number in range(5):
        harness.clock.advance(us=number % 2)
        await harness.store.note_diagnostics("default", "worker-1", [Diagnostic("t", f"{number}")], harness.now)
    assert [event.detail for event in await events(harness)] == ["t: 2", "t: 3", "t: 4"]
    assert await kinds(harness, "worker-2") == ["registered"]


async def test_old_events_and_workers_are_forgotten(harness: StoreHarness) -> None:
    await harness.register("gone")
    await harness.store.worker_left("default", "gone", harness.now, hand_back=True)
    await harness.register("silent")
    harness.clock.advance(s=100)
    await harness.register("worker-1")
    assert await harness.store.forget_workers(harness.now - 50_000_000, 2) > 0
    while await harness.store.forget_workers(harness.now - 50_000_000, 2):
        pass
    assert await kinds(harness, None) == ["registered"]
    assert await harness.store.get_worker("default", "gone") is None
    assert await status(harness, "silent") is WorkerStatus.ONLINE  # not lost yet: that comes first


async def test_pages_lead_both_ways(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    await harness.register("worker-2")
    for number in range(6):
        harness.clock.advance(us=number % 2)
        await harness.store.note_diagnostics(
            "default", f"worker-{1 + number % 2}", [Diagnostic("t", f"{number}")], harness.now
        )
    everything = list(reversed(await events(harness, None)))
    assert len(everything) == 8

    async def page(cursor: Cursor | None) -> tuple[list[WorkerEvent], bool]:
        rows = await harness.store.list_worker_events("default", worker_id=None, cursor=cursor, limit=3)
        return list(rows.rows), rows.has_more

    seen: list[WorkerEvent] = []
    cursor: Cursor | None = None
    while (page_of_rows := await page(cursor))[0]:
        seen += page_of_rows[0]
        cursor = Cursor(page_of_rows[0][-1].at, str(page_of_rows[0][-1].number))
    assert seen == everything
    assert await page(Cursor(seen[5].at, str(seen[5].number), "prev")) == (seen[2:5], True)


async def test_a_beat_after_leaving_holds_nothing(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    await harness.store.worker_left("default", "worker-1", harness.now, hand_back=True)
    await harness.store.poll([Heartbeat("worker-1", 3, 2, 0, harness.now)], harness.now)
    worker = await harness.store.get_worker("default", "worker-1")
    assert worker is not None
    assert (worker.active_count, worker.total_completed) == (0, 2)


async def test_namespaces_see_nothing_of_each_other(harness: StoreHarness) -> None:
    await harness.register("worker-1")
    harness.clock.advance(s=1)
    await harness.store.poll([Heartbeat("worker-1", 3, 2, 1, harness.now, "elsewhere")], harness.now)
    worker = await harness.store.get_worker("default", "worker-1")
    assert worker is not None
    assert (worker.active_count, worker.total_completed) == (0, 0)
    assert worker.last_heartbeat_at < harness.now
    assert await events(harness, "worker-1", namespace="elsewhere") == []
    assert await events(harness, None, namespace="elsewhere") == []
