"""What is known of workflow types: what operators said, who waits, and how far limits are used."""

from kagzi.core.pages.cursor import Cursor
from kagzi.core.times import US_PER_S
from kagzi.core.workflow_types.queues import TypeLimits
from kagzi.store.protocol import Store

from .verbs import StoreHarness

ALL = TypeLimits(
    paused=True,
    max_running=3,
    max_running_per_key=2,
    starts_per_second=1.5,
    starts_per_second_per_key=0.5,
    when_full="reject",
)


async def test_limits_are_kept_as_they_were_set(harness: StoreHarness) -> None:
    store = harness.store
    assert await store.get_type_limits("default", "hello") is None
    await store.put_type_limits("default", "hello", ALL, harness.now)
    assert await store.get_type_limits("default", "hello") == ALL
    assert await store.get_type_limits("elsewhere", "hello") is None
    await store.put_type_limits("default", "hello", TypeLimits(), harness.now)
    assert await store.get_type_limits("default", "hello") == TypeLimits()


async def _names(store: Store, cursor: Cursor | None, limit: int = 2) -> tuple[list[str], bool]:
    page = await store.list_workflow_types("default", cursor, limit)
    return [record.workflow_type for record in page.rows], page.has_more


async def test_types_are_listed_by_name_both_ways(harness: StoreHarness) -> None:
    for name in ("d", "a", "c", "b", "e"):
        await harness.store.put_type_limits("default", name, ALL, harness.now)
    await harness.store.put_type_limits("elsewhere", "f", ALL, harness.now)
    assert await _names(harness.store, None) == (["a", "b"], True)
    assert await _names(harness.store, Cursor(0, "b")) == (["c", "d"], True)
    assert await _names(harness.store, Cursor(0, "d")) == (["e"], False)
    assert await _names(harness.store, Cursor(0, "e", "prev")) == (["c", "d"], True)
    assert await _names(harness.store, Cursor(0, "c", "prev")) == (["a", "b"], False)


async def test_one_type_with_its_open_runs(harness: StoreHarness) -> None:
    await harness.store.put_type_limits("default", "hello", ALL, harness.now)
    await harness.start_many(3)
    await harness.start(workflow_type="other")
    page = await harness.store.list_workflow_types("default", None, 10, workflow_type="hello")
    (record,) = page.rows
    assert (record.workflow_type, record.limits) == ("hello", ALL)
    assert await harness.store.open_runs_by_type("default", 100) == {"hello": 3, "other": 1}
    assert await harness.store.open_runs_by_type("default", 2) == {"hello": 2}  # the oldest
    assert await harness.store.open_runs_by_type("elsewhere", 100) == {}


async def test_depths_by_type_and_version(harness: StoreHarness) -> None:
    first = harness.now
    await harness.start(version="1")
    harness.clock.advance(us=5)
    await harness.start_many(2, version="1")
    await harness.start()
    await harness.start_many(3, workflow_type="other")
    await harness.start(namespace="elsewhere")
    await harness.start(start_at=harness.now + US_PER_S)
    depths = await harness.store.queue_depths("default", "", cap=100)
    queues = [(each.workflow_type, each.version, each.waiting, each.oldest_since) for each in depths]
    assert queues == [("hello", "", 1, first + 5), ("hello", "1", 3, first), ("other", "", 3, first + 5)]
    (capped,) = await harness.store.queue_depths("default", "other", cap=2)
    assert capped.waiting == 2
    assert await harness.store.queue_depths("default", "unheard", cap=2) == []


async def test_how_far_limits_are_used(harness: StoreHarness) -> None:
    store = harness.store
    assert await store.type_pressure("default", "hello", "") is None
    limits = TypeLimits(max_running=5, max_running_per_key=1, starts_per_second=1)
    await store.put_type_limits("default", "hello", limits, harness.now)
    run = await harness.start(concurrency_key="a")
    await harness.claim()
    pressure = await store.type_pressure("default", "hello", "a")
    assert pressure is not None
    assert (pressure.limits, pressure.running, pressure.running_of_key) == (limits, 1, 1)
    assert pressure.holder_of_key == run.run_id
    assert pressure.begins_at == harness.now + US_PER_S
    other = await store.type_pressure("default", "hello", "b")
    assert other is not None
    assert (other.running, other.running_of_key, other.holder_of_key) == (1, 0, "")
