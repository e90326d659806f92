"""Versions are known by the workers that served them; people say which is the default and which take no new runs."""

import pytest

from kagzi.core.errors import NotFound, PreconditionFailed
from kagzi.core.pages.cursor import Cursor
from kagzi.core.states import WorkerStatus
from kagzi.core.workflow_types.versions import VersionRecord

from .verbs import StoreHarness, complete_run

CAP = 100


async def known(
    harness: StoreHarness, *workflow_types: str, namespace: str = "default"
) -> list[tuple[str, str, bool, bool]]:
    version_records = await harness.store.versions_of(namespace, workflow_types or ("hello",))
    return [(mark.workflow_type, mark.version, mark.deprecated, mark.is_set) for mark in version_records]


async def listed(
    harness: StoreHarness,
    workflow_type: str | None = None,
    *,
    namespace: str = "default",
    cap: int = CAP,
    alive_since: int = 0,
) -> list[VersionRecord]:
    rows = await harness.store.list_versions(
        namespace,
        workflow_type=workflow_type,
        version=None,
        alive_since=alive_since,
        cursor=None,
        limit=100,
        count_cap=cap,
    )
    assert not rows.has_more
    return list(rows.rows)


async def test_workers_bring_versions(harness: StoreHarness) -> None:
    assert await known(harness) == []
    await harness.register("worker-1", served={"hello": "1", "other": "7"})
    harness.clock.advance(s=1)
    await harness.register("worker-2", served={"hello": "2"})
    await harness.register("worker-1", served={"hello": "1"})  # again: nothing new
    assert await known(harness) == [("hello", "2", False, False), ("hello", "1", False, False)]
    assert await known(harness, "other", "hello") == [
        ("hello", "2", False, False),
        ("hello", "1", False, False),
        ("other", "7", False, False),
    ]
    assert await known(harness, namespace="elsewhere") == []


async def test_one_default_at_most(harness: StoreHarness) -> None:
    await harness.register("worker-1", served={"hello": "1"})
    await harness.register("worker-2", served={"hello": "2"})
    for version in ("1", "2", "2"):
        version_records = await harness.store.change_version("default", "hello", version, "default")
        assert [mark.version for mark in version_records if mark.is_set] == [version]
    version_records = await harness.store.change_version("default", "hello", "", "no_default")
    assert not any(mark.is_set for mark in version_records)


async def test_deprecating_and_taking_it_back(harness: StoreHarness) -> None:
    await harness.register("worker-1", served={"hello": "1"})
    await harness.store.change_version("default", "hello", "1", "deprecate")
    await harness.store.change_version("default", "hello", "1", "deprecate")
    assert await known(harness) == [("hello", "1", True, False)]
    await harness.register("worker-1", served={"hello": "1"})  # a worker that comes back changes nothing about it
    assert await known(harness) == [("hello", "1", True, False)]
    await harness.store.change_version("default", "hello", "1", "restore")
    assert await known(harness) == [("hello", "1", False, False)]


async def test_refusals_change_nothing(harness: StoreHarness) -> None:
    await harness.register("worker-1", served={"hello": "1"})
    await harness.register("worker-2", served={"hello": "2"})
    await harness.store.change_version("default", "hello", "2", "default")
    await harness.store.change_version("default", "hello", "1", "deprecate")
    before = await known(harness)
    with pytest.raises(PreconditionFailed):
        await harness.store.change_version("default", "hello", "1", "default")
    with pytest.raises(PreconditionFailed):
        await harness.store.change_version("default", "hello", "2", "deprecate")
    for version, change in (("9", "default"), ("9", "deprecate")):
        with pytest.raises(NotFound):
            await harness.store.change_version("default", "hello", version, change)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await harness.store.change_version("elsewhere", "hello", "1", "deprecate")
    assert await known(harness) == before


async def test_open_runs_and_workers_are_counted(harness: StoreHarness) -> None:
    await harness.register("worker-1", served={"hello": "1"})
    await harness.register("worker-2", served={"hello": "1"})
    await harness.register("worker-3", served={"hello": "2"})
    await harness.do(complete_run(await harness.running(version="1")))
    for version in ("1", "1", "2"):
        await harness.start(version=version)
    await harness.store.set_worker_status("default", "worker-2", WorkerStatus.OFFLINE, harness.now)
    counts = {record.version: (record.open_runs, record.workers) for record in await listed(harness, "hello")}
    assert counts == {"1": (2, 1), "2": (1, 1)}
    assert not any(record.open_is_capped for record in await listed(harness))
    assert all(record.open_is_capped for record in await listed(harness, cap=3))
    silent = await listed(harness, alive_since=harness.now + 1)
    assert [record.workers for record in silent] == [0, 0]
    assert await listed(harness, namespace="elsewhere") == []


async def test_pages_lead_both_ways(harness: StoreHarness) -> None:
    for number in range(5):
        await harness.register("worker-1", served={"a": f"{number}", "b": f"{number}"})
        harness.clock.advance(us=number % 2)
    everything = [(record.workflow_type, record.version) for record in await listed(harness)]
    assert len(everything) == 10

    async def page(cursor: Cursor | None) -> list[VersionRecord]:
        rows = await harness.store.list_versions(
            "default", workflow_type=None, version=None, alive_since=0, cursor=cursor, limit=3, count_cap=CAP
        )
        return list(rows.rows)

    def place(record: VersionRecord, direction: str = "next") -> Cursor:
        name = f'["{record.workflow_type}","{record.version}"]'
        return Cursor(record.first_seen_at, name, direction)  # type: ignore[arg-type]

    seen: list[VersionRecord] = []
    cursor: Cursor | None = None
    while rows := await page(cursor):
        seen += rows
        cursor = place(rows[-1])
    assert [(record.workflow_type, record.version) for record in seen] == everything
    assert await page(place(seen[5], "prev")) == seen[2:5]
