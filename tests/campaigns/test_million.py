"""1,000,000 finished and 100,000 sleeping runs in each store: what people and workers do takes no longer than in a small one.

The small store has just enough runs for lists to be as long as in the large one. Both are open in this process, and are asked
in turn. The large one is kept below KAGZI_CAMPAIGN_DIRECTORY, if that is set, so that it need not be filled again (SQLite).
"""

import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kagzi.core.cursor import Cursor
from kagzi.core.records import RunFilter
from kagzi.core.states import RunStatus
from kagzi.store.protocol import LeaseTerms, Store
from kagzi.system import SystemDice
from tests.support.postgres import Databases

from . import crowd
from .crowds import fill_postgres_store, fill_sqlite_store
from .figures import Figures, number, spread

RUNS = int(number("RUNS", 1_100_000))
SMALL_RUNS = 4_400
SAMPLES = int(number("SAMPLES", 300))
WARM_UP = 30
PAGE = 50
MOST_RATIO = 1.5
# A difference that nobody can feel is none, whatever the ratio: commits of one disk differ by more from one to the next.
LEAST_DIFFERENCE_MS = 1.0
LIMIT_S = 3_600

Ask = Callable[[Store, int], Awaitable[object]]
"""What is measured; the number is that of a run in the store, drawn anew each time."""


def listing(where: RunFilter) -> Ask:
    async def ask(store: Store, _g: int) -> object:
        rows = await store.list_runs(crowd.NAMESPACE, where, None, PAGE)
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


async def get(store: Store, g: int) -> object:
    found = await store.get_run(crowd.NAMESPACE, run_id=crowd.run_id(g))
    assert found is not None
    return found


async def get_by_id(store: Store, g: int) -> object:
    found = await store.get_run(crowd.NAMESPACE, workflow_id=f"w-{g}")
    assert found is not None
    return found


async def count_some(store: Store, _g: int) -> object:
    assert await store.count_runs(crowd.NAMESPACE, RunFilter(statuses=(RunStatus.COMPLETED,)), 1_000) == 1_000
    return None


async def start(store: Store, _g: int) -> object:
    now = time.time_ns() // 1_000
    [outcome] = await store.write([crowd.start(crowd.TYPE, {})], now, LeaseTerms(now + 15_000_000, now))
    return outcome


async def claim(store: Store, _g: int) -> object:
    """Of those that `start` left."""
    held = await crowd.claim(store, crowd.TYPE)
    assert len(held) == 1
    return held


QUESTIONS: dict[str, Ask] = {
    "list": listing(RunFilter()),
    "list, page in the midst": list_after,
    "list by status COMPLETED": listing(RunFilter(statuses=(RunStatus.COMPLETED,))),
    "list by status FAILED": listing(RunFilter(statuses=(RunStatus.FAILED,))),
    "list by status SLEEPING": listing(RunFilter(statuses=(RunStatus.SLEEPING,))),
    "list by type": listing(RunFilter(workflow_types=(crowd.TYPE,))),
    "list by type and status": listing(RunFilter(workflow_types=(crowd.TYPE,), statuses=(RunStatus.FAILED,))),
    "list by a common label": listing(RunFilter(labels={"region": "eu"})),
    "list by a rare label": listing(RunFilter(labels={"vip": "yes"})),
    "list by time": list_span,
    "list by parent": listing(RunFilter(parent_run_id=crowd.run_id(1))),
    "list by schedule": listing(RunFilter(schedule_id=crowd.SCHEDULE)),
    "list by problem": listing(RunFilter(has_problem=True)),
    "count to 1,000": count_some,
    "get": get,
    "get by workflow id": get_by_id,
    "start": start,
    "claim": claim,
}


class Sized:
    """A store and how many runs are in it."""

    def __init__(self, store: Store, runs: int) -> None:
        self.store = store
        self.runs = runs


async def measure(ask: Ask, small: Sized, large: Sized) -> dict[str, Any]:
    dice = random.Random(7)
    times: dict[str, list[float]] = {"small": [], "large": []}
    for sample in range(WARM_UP + SAMPLES):
        for name, sized in (("small", small), ("large", large)):
            # Such as are completed, so that every question about one has the same answer.
            g = dice.randrange(1, sized.runs // 220) * 220 + 7
            began = time.perf_counter()
            await ask(sized.store, g)
            if sample >= WARM_UP:
                times[name].append((time.perf_counter() - began) * 1_000)
    before, after = spread(times["small"]), spread(times["large"])
    return {
        "small p50_ms": before["p50_ms"],
        "large p50_ms": after["p50_ms"],
        "ratio p50": round(after["p50_ms"] / before["p50_ms"], 2),
        "small p99_ms": before["p99_ms"],
        "large p99_ms": after["p99_ms"],
        "ratio p99": round(after["p99_ms"] / before["p99_ms"], 2),
    }


def too_slow(measured: dict[str, Any]) -> bool:
    return any(
        measured[f"ratio {part}"] > MOST_RATIO
        and measured[f"large {part}_ms"] - measured[f"small {part}_ms"] > LEAST_DIFFERENCE_MS
        for part in ("p50", "p99")
    )


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[Store]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def sqlite_crowd(directory: Path, runs: int) -> AsyncIterator[Sized]:
    from kagzi.store.sqlite import SqliteStore

    path = directory / f"crowd-{runs}.db"
    if not path.exists():
        filling = directory / f"filling-{runs}.db"
        await fill_sqlite_store(filling, runs, SystemDice())
        filling.rename(path)
    async with opened(SqliteStore(str(path), dice=SystemDice())) as store:
        yield Sized(store, runs)


@asynccontextmanager
async def postgres_crowd(url: str, runs: int) -> AsyncIterator[Sized]:
    from kagzi.store.postgres import PostgresStore

    await fill_postgres_store(url, runs, SystemDice())
    async with opened(PostgresStore(url, dice=SystemDice())) as store:
        yield Sized(store, runs)


async def ask_everything(figures: Figures, part: str, small: Sized, large: Sized) -> dict[str, Any]:
    measured = {name: await measure(ask, small, large) for name, ask in QUESTIONS.items()}
    figures.put(part, {"runs": large.runs, "samples": SAMPLES, **measured})
    return measured


def check(measured: dict[str, Any]) -> None:
    slow = {name: each for name, each in measured.items() if isinstance(each, dict) and too_slow(each)}
    assert not slow, f"slower than {MOST_RATIO} times the small store: {slow}"


@pytest.mark.timeout(LIMIT_S)
async def test_sqlite_is_as_quick_with_a_million_runs(tmp_path: Path) -> None:
    figures = Figures("million")
    measured = figures.known("sqlite")
    if measured is None:
        directory = Path(os.environ.get("KAGZI_CAMPAIGN_DIRECTORY") or tmp_path)
        began = time.monotonic()
        async with sqlite_crowd(directory, SMALL_RUNS) as small, sqlite_crowd(directory, RUNS) as large:
            print(f"filled in {time.monotonic() - began:.0f} s")
            measured = await ask_everything(figures, "sqlite", small, large)
    check(measured)


@pytest.mark.timeout(LIMIT_S)
async def test_postgresql_is_as_quick_with_a_million_runs(postgres: Databases) -> None:
    figures = Figures("million")
    measured = figures.known("postgresql")
    if measured is None:
        began = time.monotonic()
        with postgres.database() as small_url, postgres.database() as large_url:
            async with postgres_crowd(small_url, SMALL_RUNS) as small, postgres_crowd(large_url, RUNS) as large:
                print(f"filled in {time.monotonic() - began:.0f} s")
                measured = await ask_everything(figures, "postgresql", small, large)
    check(measured)
