"""Runs are found by any combination of what is known of them, page by page and back again, as a plain loop would find
them."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kagzi.core.pages.cursor import Cursor, Direction
from kagzi.core.records import RunFilter, RunKey, RunLease, RunOrder, RunRecord
from kagzi.core.states import RunStatus

from .verbs import (
    STEADY,
    StoreHarness,
    begin,
    complete_run,
    diverged,
    fail,
    fail_run,
    leased,
    park,
    sleep,
    wait_signal,
)

TYPES = ("a", "b", "c", "d")
VERSIONS = ("1", "2")
SCHEDULES = ("nightly", "hourly")
KEYS = ("tenant-1", "tenant-2")
WORKERS = ("worker-1", "worker-2")


async def a_run(harness: StoreHarness, n: int) -> RunKey:
    """The n-th of a population that differs in everything a filter can ask for."""
    run = await harness.start(
        f"id-{n % 20}-{harness.ids.token()}" if n % 7 else "",
        workflow_type=TYPES[n % 4],
        version=VERSIONS[n // 2 % 2] if n % 5 else "",  # without one until it is claimed
        labels={"team": "xyz"[n % 3]} | ({"env": "prod"} if n % 2 else {}) if n % 5 else {},
        schedule_id=SCHEDULES[n // 3 % 2] if n % 3 == 0 else "",
        concurrency_key=KEYS[n // 4 % 2] if n % 4 == 0 else "",
    )
    harness.clock.advance(us=n % 2)
    return run


async def population(harness: StoreHarness) -> list[RunRecord]:
    for n in range(48):
        await a_run(harness, n)
    wants = [harness.want(name, limit=8, versions=VERSIONS, worker_id=WORKERS[n % 2]) for n, name in enumerate(TYPES)]
    claimed = await harness.claim(*wants)
    assert len(claimed) == 32
    for n, one in enumerate(claimed):
        harness.clock.advance(us=n % 3)
        await befall(harness, leased(one), n % 10)
    for n in range(6):
        run = await a_run(harness, n)
        if n % 2:
            await harness.pause(run, "later")
    rows = await harness.runs()
    assert {row.status for row in rows} == set(RunStatus)
    return rows


async def befall(harness: StoreHarness, mine: RunLease, n: int) -> None:
    match n:
        case 0 | 1:
            await harness.do(complete_run(mine))
        case 2:
            await harness.do(fail_run(mine))
        case 3:
            await harness.do(diverged(mine))
        case 4:
            await harness.write(sleep(mine, "nap", s=60))
            await harness.do(park(mine, "nap"))
        case 5:
            await harness.terminate(mine.run)
        case 6:
            await harness.child(mine, "child", workflow_type="d")
        case 7:
            await harness.write(begin(mine, "charge", retry=STEADY), fail(mine, "charge"))
        case 8:
            await harness.do(wait_signal(mine, "approval"))
        case _:
            return


def holds(row: RunRecord, where: RunFilter) -> bool:
    """The meaning of a filter, said plainly."""
    return all(
        (
            not where.statuses or row.status in where.statuses,
            not where.workflow_types or row.workflow_type in where.workflow_types,
            all(row.labels.get(key) == value for key, value in where.labels.items()),
            where.created_after is None or row.created_at >= where.created_after,
            where.created_before is None or row.created_at < where.created_before,
            not where.workflow_id or row.workflow_id == where.workflow_id,
            not where.run_ids or row.run.run_id in where.run_ids,
            not where.version or row.version == where.version,
            not where.parent_run_id or row.parent_run_id == where.parent_run_id,
            not where.schedule_id or row.schedule_id == where.schedule_id,
            not where.concurrency_key or row.concurrency_key == where.concurrency_key,
            not where.worker_id or (row.worker_id == where.worker_id and row.status is RunStatus.RUNNING),
            where.has_problem is None or (row.problem is not None) == where.has_problem,
            where.failing is None or (row.retrying_steps > 0 or row.problem is not None) == where.failing,
            where.waiting is None or (row.awaits_signal > 0) == where.waiting,
            where.ended_after is None or (row.finished_at is not None and row.finished_at >= where.ended_after),
            where.ended_before is None or (row.finished_at is not None and row.finished_at < where.ended_before),
            row.run.run_id.startswith(where.id_prefix.lower()) or row.workflow_id.startswith(where.id_prefix),
        )
    )


class Search(NamedTuple):
    """A filter as it is drawn: what depends on the population is a place in it."""

    where: RunFilter
    after: int | None
    before: int | None
    workflow_id: int | None
    parent: int | None
    run_ids: frozenset[int] = frozenset()
    ended_after: int | None = None
    ended_before: int | None = None

    def among(self, rows: list[RunRecord]) -> RunFilter:
        parents = [row.parent_run_id for row in rows if row.parent_run_id]
        finished = [row.finished_at for row in rows if row.finished_at is not None]
        return msgspec.structs.replace(
            self.where,
            ended_after=None if self.ended_after is None else finished[self.ended_after % len(finished)],
            ended_before=None if self.ended_before is None else finished[self.ended_before % len(finished)],
            created_after=None if self.after is None else rows[self.after % len(rows)].created_at,
            created_before=None if self.before is None else rows[self.before % len(rows)].created_at,
            workflow_id="" if self.workflow_id is None else rows[self.workflow_id % len(rows)].workflow_id,
            run_ids=tuple(rows[place % len(rows)].run.run_id for place in self.run_ids),
            parent_run_id="" if self.parent is None else parents[self.parent % len(parents)],
        )


def mostly(nothing: Any, something: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(nothing), st.just(nothing), something)


PLACES = mostly(None, st.integers(0, 50))
RARELY = mostly(None, PLACES)
SEARCHES = st.builds(
    Search,
    where=st.builds(
        RunFilter,
        statuses=mostly((), st.lists(st.sampled_from(list(RunStatus)), min_size=1, max_size=4).map(tuple)),
        workflow_types=mostly((), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3).map(tuple)),
        labels=mostly({}, st.sampled_from([{"team": "x"}, {"team": "y", "env": "prod"}, {"env": "prod"}])),
        version=mostly("", st.sampled_from(VERSIONS)),
        schedule_id=mostly("", st.sampled_from((*SCHEDULES, "never"))),
        concurrency_key=mostly("", st.sampled_from(KEYS)),
        worker_id=mostly("", st.sampled_from(WORKERS)),
        has_problem=mostly(None, st.booleans()),
        failing=mostly(None, st.booleans()),
        waiting=mostly(None, st.booleans()),
    ),
    after=PLACES,
    before=PLACES,
    workflow_id=RARELY,
    parent=RARELY,
    run_ids=mostly(frozenset(), st.frozensets(st.integers(0, 50), max_size=30)),
    ended_after=RARELY,
    ended_before=RARELY,
)


def place(row: RunRecord, direction: Direction = "next") -> Cursor:
    return Cursor(row.created_at, row.run.run_id, direction)


def end_place(row: RunRecord, direction: Direction = "next") -> Cursor:
    assert row.finished_at is not None
    return Cursor(row.finished_at, row.run.run_id, direction)


PLACE: dict[RunOrder, Callable[..., Cursor]] = {"created": place, "ended": end_place}


async def forwards(
    harness: StoreHarness,
    where: RunFilter,
    size: int,
    meanwhile: Callable[[], Awaitable[object]],
    order: RunOrder = "created",
) -> list[RunKey]:
    seen: list[RunKey] = []
    cursor = None
    while True:
        page = await harness.store.list_runs("default", where, cursor, size, order=order)
        seen += [row.run for row in page.rows]
        if not page.has_more:
            return seen
        assert len(page.rows) == size
        cursor = PLACE[order](page.rows[-1])
        await meanwhile()


async def backwards(
    harness: StoreHarness, where: RunFilter, size: int, last: RunRecord, order: RunOrder = "created"
) -> list[RunKey]:
    """Everything before `last`, page by page towards the newest, in list order."""
    seen: list[RunKey] = []
    cursor = PLACE[order](last, "prev")
    while True:
        page = await harness.store.list_runs("default", where, cursor, size, order=order)
        seen = [row.run for row in page.rows] + seen
        if not page.has_more:
            return seen
        assert len(page.rows) == size
        cursor = PLACE[order](page.rows[0], "prev")


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(search=SEARCHES, size=st.integers(1, 9), n=st.integers(0, 1_000))
async def test_any_filter_any_page_size_there_and_back(
    harness: StoreHarness, search: Search, size: int, n: int
) -> None:
    """Examples share a store: each finds what those before it added."""
    known = await harness.runs() or await population(harness)
    where = search.among(known)
    expected = [row for row in known if holds(row, where)]

    more = iter((n, n + 1))

    async def one_more() -> None:
        if (new := next(more, None)) is not None:
            harness.clock.advance(us=1)
            await a_run(harness, new)

    assert await forwards(harness, where, size, one_more) == [row.run for row in expected]
    now = [row.run for row in await harness.runs() if holds(row, where)]
    assert await harness.store.count_runs("default", where, 10_000) == len(now)
    if expected:
        assert await backwards(harness, where, size, expected[-1]) == now[:-1]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(search=SEARCHES, size=st.integers(1, 9))
async def test_by_end_any_filter_any_page_size_there_and_back(harness: StoreHarness, search: Search, size: int) -> None:
    known = await harness.runs() or await population(harness)
    where = search.among(known)
    ended = sorted((row for row in known if row.finished_at is not None), key=_by_end, reverse=True)
    expected = [row for row in ended if holds(row, where)]

    more = iter(range(2))

    async def end_one_more() -> None:
        if next(more, None) is not None:
            harness.clock.advance(us=1)
            await harness.do(complete_run(await harness.running(workflow_type="a")))

    assert await forwards(harness, where, size, end_one_more, "ended") == [row.run for row in expected]
    if where.by_end:
        now = [row for row in await harness.runs() if holds(row, where)]
        assert await harness.store.count_runs("default", where, 10_000) == len(now)
    if expected:
        rows = [row for row in await harness.runs() if row.finished_at is not None and holds(row, where)]
        now = sorted(rows, key=_by_end, reverse=True)
        assert await backwards(harness, where, size, expected[-1], "ended") == [row.run for row in now[:-1]]


def _by_end(row: RunRecord) -> tuple[int, str]:
    assert row.finished_at is not None
    return row.finished_at, row.run.run_id


async def test_runs_are_found_by_the_beginning_of_an_id(harness: StoreHarness) -> None:
    known = await population(harness)
    await harness.start("id-1%_", workflow_type="a")
    await harness.start("\U0010ffff\U0010ffff", workflow_type="a")
    await harness.start("zoé", namespace="elsewhere")
    known = await harness.runs()
    a_run_id, mine = known[7].run.run_id, known[11].workflow_id
    prefixes = (
        "i",
        "id-1",
        "id-1-",
        "id-1%",
        "id-1_",
        "z",
        "\U0010ffff",
        "-",
        mine,
        mine[:-1],
        a_run_id,
        a_run_id[:30],
    )
    for prefix in (*prefixes, a_run_id[:8].upper(), a_run_id[:14], a_run_id[:1], "ffffffff-"):
        for status in ((), (RunStatus.COMPLETED, RunStatus.RUNNING)):
            where = RunFilter(id_prefix=prefix, statuses=status)
            expected = [row.run for row in known if holds(row, where)]
            page = await harness.store.list_runs("default", where, None, 1_000)
            assert ([row.run for row in page.rows], page.has_more) == (expected, False), prefix
            assert await harness.store.count_runs("default", where, 10_000) == len(expected), prefix
            some = await harness.store.list_runs("default", where, None, 3)
            assert (len(some.rows), some.has_more) == (min(3, len(expected)), len(expected) > 3), prefix
            assert {row.run for row in some.rows} <= set(expected)
            assert await harness.store.count_runs("default", where, 3) == min(3, len(expected))


async def test_what_a_worker_holds_is_what_it_holds_now_whatever_else_is_asked_for(harness: StoreHarness) -> None:
    known = await population(harness)
    everything = tuple(row.run.run_id for row in known)
    for worker in WORKERS:
        for others in ({}, {"run_ids": everything}, {"has_problem": False}, {"labels": {"team": "x"}}):
            where = RunFilter(worker_id=worker, **others)
            expected = [row.run for row in known if holds(row, where)]
            assert expected or "labels" in others
            page = await harness.store.list_runs("default", where, None, 100)
            assert [row.run for row in page.rows] == expected
            assert await harness.store.count_runs("default", where, 100) == len(expected)
        ended = await harness.store.list_runs("default", RunFilter(worker_id=worker), None, 100, order="ended")
        assert not ended.rows


async def test_more_types_than_are_merged(harness: StoreHarness) -> None:
    for n in range(40):
        await harness.start(workflow_type=f"type-{n}")
        harness.clock.advance(us=1)
    where = RunFilter(workflow_types=tuple(f"type-{n}" for n in range(30)))
    first = await harness.store.list_runs("default", where, None, 20)
    assert [row.workflow_type for row in first.rows] == [f"type-{n}" for n in range(29, 9, -1)]
    assert first.has_more
    rest = await harness.store.list_runs("default", where, place(first.rows[-1]), 20)
    assert [row.workflow_type for row in rest.rows] == [f"type-{n}" for n in range(9, -1, -1)]
    assert not rest.has_more


async def test_a_run_is_the_same_in_a_list_and_alone(harness: StoreHarness) -> None:
    first = await harness.running(workflow_type="ship")
    await harness.start(
        "order-1", schedule_id="nightly", concurrency_key="tenant-1", blocked_by=first.run.run_id, labels={"a": "b"}
    )
    paused = await harness.start("order-2")
    await harness.pause(paused, "wait for the bank")
    for row in await harness.runs():
        whole = await harness.run(row.run)
        assert (row.schedule_id, row.concurrency_key, row.blocked_by, row.pause_reason) == (
            whole.schedule_id,
            whole.concurrency_key,
            whole.blocked_by,
            whole.pause_reason,
        )
    [blocked] = await harness.runs(workflow_id="order-1")
    assert (blocked.schedule_id, blocked.concurrency_key, blocked.blocked_by) == (
        "nightly",
        "tenant-1",
        first.run.run_id,
    )
    [row] = await harness.runs(workflow_id="order-2")
    assert (row.pause_reason, row.blocked_by, row.schedule_id, row.concurrency_key) == (
        "wait for the bank",
        None,
        None,
        "",
    )
