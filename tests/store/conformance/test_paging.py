"""Lists lose nothing and repeat nothing, whatever is added meanwhile, in both directions and within one microsecond."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kagzi.core.pages.cursor import Cursor, Direction
from kagzi.core.records import RunFilter, RunKey, RunRecord
from kagzi.core.states import RunStatus

from .verbs import StoreHarness, complete_run, fail_run, leased, payload

ALL = RunFilter()


def cursor_at(record: RunRecord, direction: Direction = "next") -> Cursor:
    return Cursor(record.created_at, record.run.run_id, direction)


async def walk(
    harness: StoreHarness, size: int, where: RunFilter = ALL, meanwhile: Callable[[], object] | None = None
) -> list[RunRecord]:
    """Every row, page by page."""
    seen: list[RunRecord] = []
    cursor: Cursor | None = None
    for _ in range(200):
        page = await harness.store.list_runs("default", where, cursor, size)
        assert len(page.rows) <= size
        seen.extend(page.rows)
        if not page.has_more:
            return seen
        assert len(page.rows) == size
        cursor = cursor_at(page.rows[-1])
        if meanwhile is not None:
            await meanwhile()  # type: ignore[misc]
    raise AssertionError("the list has no end")


async def some_runs(harness: StoreHarness, count: int, *, us_apart: int = 1, **options: object) -> list[RunKey]:
    runs = []
    for _ in range(count):
        runs.append(await harness.start(**options))  # type: ignore[arg-type]
        harness.clock.advance(us=us_apart)
    return runs


async def test_newest_first_to_the_microsecond(harness: StoreHarness) -> None:
    # Once cursors truncated to milliseconds skipped rows.
    runs = await some_runs(harness, 23)
    for size in (1, 7, 22, 23, 24):
        assert [row.run for row in await walk(harness, size)] == runs[::-1]


async def test_rows_of_one_microsecond_are_ordered_by_their_id(harness: StoreHarness) -> None:
    runs = sorted(await harness.start_many(20), key=lambda run: run.run_id, reverse=True)
    for size in (1, 3, 20):
        assert [row.run for row in await walk(harness, size)] == runs


async def test_nothing_is_missing_or_listed_twice_while_runs_are_added(harness: StoreHarness) -> None:
    runs = await some_runs(harness, 20)
    seen = [row.run for row in await walk(harness, 3, meanwhile=lambda: some_runs(harness, 4))]
    assert seen == runs[::-1], "what came later is above the first page"
    assert len(await harness.runs()) > 20


async def test_back_again_from_any_page(harness: StoreHarness) -> None:
    runs = (await some_runs(harness, 10))[::-1]
    rows = await walk(harness, 100)
    page = await harness.store.list_runs("default", ALL, cursor_at(rows[7], "prev"), 3)
    assert ([row.run for row in page.rows], page.has_more) == (runs[4:7], True)
    page = await harness.store.list_runs("default", ALL, cursor_at(rows[4], "prev"), 4)
    assert ([row.run for row in page.rows], page.has_more) == (runs[:4], False)
    page = await harness.store.list_runs("default", ALL, cursor_at(rows[0], "prev"), 4)
    assert (list(page.rows), page.has_more) == ([], False)
    newer = await harness.start()
    page = await harness.store.list_runs("default", ALL, cursor_at(rows[0], "prev"), 4)
    assert ([row.run for row in page.rows], page.has_more) == ([newer], False)


async def test_back_again_within_one_microsecond(harness: StoreHarness) -> None:
    await harness.start_many(9)
    rows = await walk(harness, 100)
    page = await harness.store.list_runs("default", ALL, cursor_at(rows[6], "prev"), 4)
    assert ([row.run for row in page.rows], page.has_more) == ([row.run for row in rows[2:6]], True)


async def test_lists_carry_no_payloads(harness: StoreHarness) -> None:
    holding = await harness.running(input=payload("in"), context=payload("ctx"), labels={"a": "b"})
    await harness.do(complete_run(holding))
    (row,) = await harness.runs()
    assert (row.input, row.context, row.output) == (None, None, None)
    whole = await harness.run(holding.run)
    assert (row.labels, row.status, row.workflow_id, row.finished_at) == (
        whole.labels,
        whole.status,
        whole.workflow_id,
        whole.finished_at,
    )


async def varied_runs(harness: StoreHarness) -> list[RunRecord]:
    """Runs that differ in everything a filter can ask for."""
    parts = [("a", {}), ("b", {"team": "x"}), ("a", {"team": "x", "env": "prod"}), ("c", {"team": "y"})]
    for n, (workflow_type, labels) in enumerate(parts * 3):
        await harness.start(f"id-{n}", workflow_type=workflow_type, labels=labels, version=("1", "2", None)[n % 3])
        harness.clock.advance(us=1)
    claimed = await harness.claim(*(harness.want(name, limit=2, versions=("1", "2")) for name in "abc"))
    for n, one in enumerate(claimed):
        if n % 3 < 2:
            await harness.do(complete_run(leased(one)) if n % 3 else fail_run(leased(one)))
    await harness.start("later", start_at=harness.now + 10**9)
    return await harness.runs()


FILTERS: list[tuple[str, Callable[[RunRecord, int], bool], Callable[[int], RunFilter]]] = [
    ("type", lambda row, _: row.workflow_type == "a", lambda _: RunFilter(workflow_types=("a",))),
    ("types", lambda row, _: row.workflow_type in "bc", lambda _: RunFilter(workflow_types=("b", "c"))),
    ("status", lambda row, _: row.status == RunStatus.FAILED, lambda _: RunFilter(statuses=(RunStatus.FAILED,))),
    (
        "statuses",
        lambda row, _: row.status in (RunStatus.PENDING, RunStatus.SLEEPING),
        lambda _: RunFilter(statuses=(RunStatus.PENDING, RunStatus.SLEEPING)),
    ),
    ("label", lambda row, _: row.labels.get("team") == "x", lambda _: RunFilter(labels={"team": "x"})),
    (
        "labels",
        lambda row, _: row.labels.get("team") == "x" and row.labels.get("env") == "prod",
        lambda _: RunFilter(labels={"team": "x", "env": "prod"}),
    ),
    ("label nobody has", lambda _row, _: False, lambda _: RunFilter(labels={"team": "z"})),
    ("after", lambda row, at: row.created_at >= at, lambda at: RunFilter(created_after=at)),
    ("before", lambda row, at: row.created_at < at, lambda at: RunFilter(created_before=at)),
    ("workflow id", lambda row, _: row.workflow_id == "id-3", lambda _: RunFilter(workflow_id="id-3")),
    ("version", lambda row, _: row.version == "2", lambda _: RunFilter(version="2")),
    ("parent", lambda _row, _: False, lambda _: RunFilter(parent_run_id="018f0000-0000-7000-8000-000000000000")),
    (
        "all together",
        lambda row, at: row.workflow_type == "a" and row.labels.get("env") == "prod" and row.created_at >= at,
        lambda at: RunFilter(workflow_types=("a",), labels={"env": "prod"}, created_after=at),
    ),
]


async def test_every_filter_counts_and_pages(harness: StoreHarness) -> None:
    # Once lists ignored all filters but one.
    rows = await varied_runs(harness)
    middle = sorted(row.created_at for row in rows)[6]
    for name, holds, make in FILTERS:
        expected = [row.run for row in rows if holds(row, middle)]
        for size in (1, 2, 50):
            assert [row.run for row in await walk(harness, size, make(middle))] == expected, name
        assert await harness.store.count_runs("default", make(middle), 1_000) == len(expected), name


async def test_a_count_stops_at_its_cap(harness: StoreHarness) -> None:
    await harness.start_many(12)
    await harness.start(namespace="elsewhere")
    counts = [await harness.store.count_runs("default", ALL, cap) for cap in (1, 11, 12, 13, 10_000)]
    assert counts == [1, 11, 12, 12, 12]


async def test_an_empty_list_is_a_page(harness: StoreHarness) -> None:
    page = await harness.store.list_runs("nobody", ALL, None, 10)
    assert (list(page.rows), page.has_more) == ([], False)
    assert await harness.store.count_runs("nobody", ALL, 10) == 0


async def test_the_latest_run_of_an_id(harness: StoreHarness) -> None:
    first = await harness.running(workflow_id="order-1")
    await harness.do(complete_run(first))
    harness.clock.advance(us=1)
    second = await harness.start("order-1")
    latest = await harness.store.get_run("default", workflow_id="order-1")
    assert latest is not None
    assert latest.run == second
    assert [row.run for row in await harness.runs(workflow_id="order-1")] == [second, first.run]


@pytest.mark.parametrize("newest_first", [True, False])
async def test_workers_too_are_listed_in_pages(harness: StoreHarness, newest_first: bool) -> None:
    names = [f"worker-{n}" for n in range(7)]
    for name in names:
        await harness.register(name)
        if not newest_first:
            continue
        harness.clock.advance(us=1)
    seen: list[str] = []
    cursor = None
    while True:
        page = await harness.store.list_workers("default", workflow_type=None, status=None, cursor=cursor, limit=2)
        seen.extend(row.worker_id for row in page.rows)
        if not page.has_more:
            break
        cursor = Cursor(page.rows[-1].registered_at, page.rows[-1].worker_id)
    assert sorted(seen) == names
    if newest_first:
        assert seen == names[::-1]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(gaps=st.lists(st.integers(0, 2), min_size=1, max_size=12), size=st.integers(1, 5))
async def test_any_spacing_any_page_size(harness: StoreHarness, gaps: list[int], size: int) -> None:
    labels = {"example": harness.ids.token()}
    for gap in gaps:
        harness.clock.advance(us=gap)
        await harness.start(labels=labels)
    where = RunFilter(labels=labels)
    rows = await walk(harness, size, where)
    assert len({row.run for row in rows}) == len(rows) == len(gaps)
    places = [(row.created_at, row.run.run_id) for row in rows]
    assert places == sorted(places, reverse=True)
