"""1,000,000 finished and 100,000 sleeping runs in each store: what people and workers do takes no longer than in a
small one.

Both stores are open in this process, and are asked in turn; test_million_served.py asks servers over the wire. The
large one is kept below KAGZI_CAMPAIGN_DIRECTORY, if that is set, so that it need not be filled again (SQLite).
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kagzi.core.pages.cursor import Cursor
from kagzi.core.pages.timeline import TimelineQuery
from kagzi.core.records import RunFilter, RunKey, RunOrder
from kagzi.core.states import OPEN, RunStatus
from kagzi.core.stats import HOUR_US
from kagzi.store.protocol import LeaseTerms, Store
from kagzi.system import SystemRng
from tests.support.postgres import Databases

from . import crowd
from .compare import PAGE, RUNS, SMALL_RUNS, Ask, Sized, check, compare
from .crowds import crowd_directory, fill_postgres_store, kept_sqlite_store
from .figures import Figures

# In the same process a small store answers some questions in 60 microseconds, from pages it has in memory: less than
# this does not count. Over the wire there is no such allowance: see test_million_served.py.
LEAST_DIFFERENCE_MS = {"p50": 1.0, "p99": 1.0}
LIMIT_S = 3_600


def listing(where: RunFilter, order: RunOrder = "created") -> Ask[Store]:
    async def ask(store: Store, _g: int) -> object:
        rows = await store.list_runs(crowd.NAMESPACE, where, None, PAGE, order=order)
        assert len(rows.rows) == PAGE, f"{len(rows.rows)} rows of {where}"
        return rows

    return ask


async def list_after(store: Store, g: int) -> object:
    """A page in the midst of all."""
    at = crowd.BEGAN + g * crowd.SPACING_US
    return await store.list_runs(
        crowd.NAMESPACE, RunFilter(), Cursor(at=at, id=crowd.run_id(g), direction="next"), PAGE
    )


async def list_span(store: Store, g: int) -> object:
    at = crowd.BEGAN + max(g, 2 * PAGE) * crowd.SPACING_US
    where = RunFilter(created_after=at - PAGE * crowd.SPACING_US, created_before=at)
    rows = await store.list_runs(crowd.NAMESPACE, where, None, PAGE)
    assert len(rows.rows) == PAGE
    return rows


async def list_ended_after(store: Store, g: int) -> object:
    """A page by end in the midst of all."""
    at = crowd.BEGAN + max(g, 4 * PAGE) * crowd.SPACING_US
    cursor = Cursor(at=at, id=crowd.run_id(g), direction="next")
    rows = await store.list_runs(crowd.NAMESPACE, RunFilter(), cursor, PAGE, order="ended")
    assert len(rows.rows) == PAGE
    return rows


async def list_ended_span(store: Store, g: int) -> object:
    at = crowd.BEGAN + max(g, 4 * PAGE) * crowd.SPACING_US
    where = RunFilter(ended_after=at - 3 * PAGE * crowd.SPACING_US, ended_before=at)
    rows = await store.list_runs(crowd.NAMESPACE, where, None, PAGE, order="ended")
    assert len(rows.rows) == PAGE
    return rows


async def search_workflow_id(store: Store, g: int) -> object:
    rows = await store.list_runs(crowd.NAMESPACE, RunFilter(id_prefix=f"w-{g}"), None, PAGE)
    assert any(row.workflow_id == f"w-{g}" for row in rows.rows) or len(rows.rows) == PAGE
    return rows


async def search_run_id(store: Store, g: int) -> object:
    rows = await store.list_runs(crowd.NAMESPACE, RunFilter(id_prefix=crowd.run_id(g)[:13]), None, PAGE)
    assert [row.run.run_id for row in rows.rows] == [crowd.run_id(g)]
    return rows


async def count_ended(store: Store, _g: int) -> object:
    assert await store.count_runs(crowd.NAMESPACE, RunFilter(ended_after=0), 1_000) == 1_000
    return None


async def get(store: Store, g: int) -> object:
    run = await store.get_run(crowd.NAMESPACE, run_id=crowd.run_id(g))
    assert run is not None
    return run


async def get_by_id(store: Store, g: int) -> object:
    run = await store.get_run(crowd.NAMESPACE, workflow_id=f"w-{g}")
    assert run is not None
    return run


async def count_some(store: Store, _g: int) -> object:
    assert await store.count_runs(crowd.NAMESPACE, RunFilter(statuses=(RunStatus.COMPLETED,)), 1_000) == 1_000
    return None


OPEN_OF_TYPE = RunFilter(workflow_types=(crowd.TYPE,), statuses=tuple(OPEN))


async def list_open_of_type(store: Store, _g: int) -> object:
    """All that sleep are of another type."""
    rows = await store.list_runs(crowd.NAMESPACE, OPEN_OF_TYPE, None, PAGE)
    assert not rows.rows
    return rows


async def count_open_of_type(store: Store, _g: int) -> object:
    assert await store.count_runs(crowd.NAMESPACE, OPEN_OF_TYPE, 1_000) == 0
    return None


async def list_named(store: Store, g: int) -> object:
    ids = tuple(crowd.run_id(max(g - n, 1)) for n in range(PAGE))
    rows = await store.list_runs(crowd.NAMESPACE, RunFilter(run_ids=ids), None, PAGE)
    assert {row.run.run_id for row in rows.rows} == set(ids)
    return rows


async def signal_waits(store: Store, _g: int) -> object:
    """What the inbox shows."""
    rows = await store.list_runs(crowd.NAMESPACE, RunFilter(waiting=True), None, PAGE)
    return await store.signal_waits(crowd.NAMESPACE, [row.run.run_id for row in rows.rows])


async def timeline(store: Store, g: int) -> object:
    steps = await store.timeline(RunKey(crowd.NAMESPACE, crowd.run_id(g)), TimelineQuery())
    assert steps is not None
    return steps


async def stats(store: Store, _g: int) -> object:
    now = time.time_ns() // 1_000
    until = now - now % HOUR_US + HOUR_US
    noted = await store.stats(crowd.NAMESPACE, "", until - 200 * HOUR_US, until, HOUR_US, 10_000)
    await store.live_stats(crowd.NAMESPACE, until - HOUR_US, until)
    return noted


async def open_runs(store: Store, _g: int) -> object:
    assert sum((await store.open_runs_by_type(crowd.NAMESPACE, 800)).values()) == 800  # the small store has 801
    return None


async def start(store: Store, _g: int) -> object:
    now = time.time_ns() // 1_000
    (outcome,), _ = await store.write([crowd.start(crowd.TYPE, {})], now, LeaseTerms(now + 15_000_000, now))
    return outcome


async def claim(store: Store, _g: int) -> object:
    """Of those that `start` left."""
    claimed = await crowd.claim(store, crowd.TYPE)
    assert len(claimed) == 1
    return claimed


QUESTIONS: dict[str, Ask[Store]] = {
    "list": listing(RunFilter()),
    "list, page in the midst": list_after,
    "list by status COMPLETED": listing(RunFilter(statuses=(RunStatus.COMPLETED,))),
    "list by status FAILED": listing(RunFilter(statuses=(RunStatus.FAILED,))),
    "list by status SLEEPING": listing(RunFilter(statuses=(RunStatus.SLEEPING,))),
    "list by type": listing(RunFilter(workflow_types=(crowd.TYPE,))),
    "list by type and status": listing(RunFilter(workflow_types=(crowd.TYPE,), statuses=(RunStatus.FAILED,))),
    "list of open runs of a type": list_open_of_type,
    "count of open runs of a type": count_open_of_type,
    "list by a common label": listing(RunFilter(labels={"region": "eu"})),
    "list by a rare label": listing(RunFilter(labels={"vip": "yes"})),
    "list by time": list_span,
    "list by parent": listing(RunFilter(parent_run_id=crowd.run_id(1))),
    "list by schedule": listing(RunFilter(schedule_id=crowd.SCHEDULE)),
    "list by a rare version": listing(RunFilter(version=crowd.RARE_VERSION)),
    "list by type and version": listing(RunFilter(workflow_types=(crowd.TYPE,), version=crowd.RARE_VERSION)),
    "list by problem": listing(RunFilter(has_problem=True)),
    "list of what fails": listing(RunFilter(failing=True)),
    "list of what waits": listing(RunFilter(waiting=True)),
    "list by end": listing(RunFilter(), "ended"),
    "list by end, page in the midst": list_ended_after,
    "list by end, status FAILED": listing(RunFilter(statuses=(RunStatus.FAILED,)), "ended"),
    "list by end, in a span": list_ended_span,
    "search of all workflow ids": listing(RunFilter(id_prefix="w-")),
    "search of a workflow id": search_workflow_id,
    "search of a run id": search_run_id,
    "count to 1,000 by end": count_ended,
    "count to 1,000": count_some,
    "get": get,
    "get by workflow id": get_by_id,
    "list of runs by name": list_named,
    "what waits, with its signals": signal_waits,
    "timeline": timeline,
    "statistics by the hour": stats,
    "open runs by type": open_runs,
    "start": start,
    "claim": claim,
}


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[Store]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def sqlite_crowd(directory: Path, runs: int) -> AsyncIterator[Sized[Store]]:
    from kagzi.store.sqlite import SqliteStore

    path = await kept_sqlite_store(directory, runs, SystemRng())
    async with opened(SqliteStore(str(path), rng=SystemRng())) as store:
        yield Sized(store, runs)


@asynccontextmanager
async def postgres_crowd(url: str, runs: int) -> AsyncIterator[Sized[Store]]:
    from kagzi.store.postgres import PostgresStore

    await fill_postgres_store(url, runs, SystemRng())
    async with opened(PostgresStore(url, rng=SystemRng())) as store:
        yield Sized(store, runs)


@pytest.mark.timeout(LIMIT_S)
async def test_sqlite_is_as_quick_with_a_million_runs(tmp_path: Path) -> None:
    figures = Figures("million")
    measured = figures.known("sqlite")
    if measured is None:
        directory = crowd_directory(tmp_path)
        began = time.monotonic()
        async with sqlite_crowd(directory, SMALL_RUNS) as small, sqlite_crowd(directory, RUNS) as large:
            print(f"filled in {time.monotonic() - began:.0f} s")
            measured = await compare(figures, "sqlite", QUESTIONS, small, large)
    check(measured, least_difference_ms=LEAST_DIFFERENCE_MS)


@pytest.mark.timeout(LIMIT_S)
async def test_postgresql_is_as_quick_with_a_million_runs(postgres: Databases) -> None:
    figures = Figures("million")
    measured = figures.known("postgresql")
    if measured is None:
        began = time.monotonic()
        with postgres.database() as small_url, postgres.database() as large_url:
            async with postgres_crowd(small_url, SMALL_RUNS) as small, postgres_crowd(large_url, RUNS) as large:
                print(f"filled in {time.monotonic() - began:.0f} s")
                measured = await compare(figures, "postgresql", QUESTIONS, small, large)
    check(measured, least_difference_ms=LEAST_DIFFERENCE_MS)
