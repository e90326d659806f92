"""The older half of a million runs is forgotten while 50 runs a second go on: nobody waits for it, and nothing else
goes."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kagzi.system import SystemRng
from tests.acceptance.cluster import Cluster
from tests.support.processes import Processes

from . import crowd, flows
from .crowds import crowd_directory, fill_postgres_store, fill_sqlite_store
from .figures import Figures, number, spread
from .load import Done, Load

RUNS = int(number("RUNS", 1_100_000))
PER_SECOND = number("PER_SECOND", 50)
BASELINE_S = number("SECONDS", 20)
LIMIT_S = 3_600
START_P99_MS = 100.0  # nothing that retention does keeps others waiting for longer
STEP_S = 0.01
CENTURY = "36000d"

Count = Callable[[str], Awaitable[int]]

HALF = crowd.BEGAN + RUNS // 2 * crowd.SPACING_US
OLD = f"finished_at <= {HALF}"
# What is kept for so many seconds gets older meanwhile: an hour's worth lies between.
YOUNG = f"finished_at > {HALF + 3_600 * crowd.SPACING_US} AND workflow_type = '{crowd.TYPE}'"
ASLEEP = "status = 3"


async def loaded(cluster: Cluster, until: Callable[[], bool]) -> tuple[list[Done], list[str]]:
    """Runs go on until that holds; seen from their client."""
    async with cluster.client() as client:
        load = Load(client, flows.load, STEP_S, expected=sum(range(flows.STEPS)))
        while not until():
            await load.run(PER_SECOND, 5)
        return load.done, load.errors


async def forget(directory: Path, database: str, count: Count) -> dict[str, Any]:
    before = {"old": await count(OLD), "young": await count(YOUNG), "asleep": await count(ASLEEP)}
    kept_s = time.time() - (crowd.BEGAN // 1_000_000 + RUNS // 2 * crowd.SPACING_US // 1_000_000)
    async with Processes(directory) as processes:
        cluster = Cluster(processes, database, directory, "--lease", "15s", "--heartbeat", "5s", "--housekeeping", "1s")
        server = await cluster.add_server("--retention", CENTURY)
        await cluster.worker(module=flows.__name__)
        baseline_end = time.monotonic() + BASELINE_S
        baseline, baseline_errors = await loaded(cluster, lambda: time.monotonic() > baseline_end)
        assert await server.terminate() == 0

        cluster.servers.clear()
        await cluster.add_server("--retention", f"{kept_s:.0f}s", "--listen", server.grpc)
        async with cluster.client() as client:
            await client.run(flows.load, STEP_S)  # the worker is back
        began = time.monotonic()
        watching = asyncio.create_task(_until_gone(count))
        busy, busy_errors = await loaded(cluster, watching.done)
        took_s = watching.result() - began
    after = {"old": await count(OLD), "young": await count(YOUNG), "asleep": await count(ASLEEP)}
    return {
        "runs before": before,
        "runs after": after,
        "forgotten": before["old"] - after["old"],
        "seconds": round(took_s, 1),
        "forgotten per second": round((before["old"] - after["old"]) / took_s),
        "runs meanwhile": len(busy),
        "errors": [*baseline_errors, *busy_errors],
        "start before": _starts(baseline),
        "start meanwhile": _starts(busy),
        "start to result before": _results(baseline),
        "start to result meanwhile": _results(busy),
    }


async def _until_gone(count: Count) -> float:
    """When there were none left. Databases have no signal for that: this looks every two seconds."""
    while await count(OLD):  # noqa: ASYNC110  see above
        await asyncio.sleep(2)
    return time.monotonic()


def _starts(done: list[Done]) -> dict[str, float]:
    return spread([(each.started_at - each.requested_at) * 1_000 for each in done])


def _results(done: list[Done]) -> dict[str, float]:
    return spread([(each.ended_at - each.requested_at) * 1_000 for each in done])


def check(figures: dict[str, Any]) -> None:
    before, after = figures["runs before"], figures["runs after"]
    assert figures["errors"] == []
    assert (after["old"], after["asleep"]) == (0, before["asleep"])
    assert after["young"] == before["young"]
    assert before["old"] >= RUNS * 0.4
    assert figures["start meanwhile"]["p99_ms"] < START_P99_MS


@pytest.mark.timeout(LIMIT_S)
async def test_sqlite(tmp_path: Path) -> None:
    figures = Figures("retention")
    measured = figures.known("sqlite")
    if measured is None:
        directory = crowd_directory(tmp_path)
        path = directory / "retention.db"
        await fill_sqlite_store(path, RUNS, SystemRng())

        async def count(where: str) -> int:
            def ask() -> int:
                with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as file:
                    return file.execute(f"SELECT count(*) FROM runs WHERE {where}").fetchone()[0]

            return await asyncio.to_thread(ask)

        measured = await forget(tmp_path, f"sqlite:///{path}", count)
        figures.put("sqlite", measured)
        path.unlink()
    check(measured)


@pytest.mark.timeout(LIMIT_S)
async def test_postgresql(postgres_url: str, tmp_path: Path) -> None:
    figures = Figures("retention")
    measured = figures.known("postgresql")
    if measured is None:
        await fill_postgres_store(postgres_url, RUNS, SystemRng())

        async def count(where: str) -> int:
            connection = await asyncpg.connect(postgres_url)
            try:
                return await connection.fetchval(f"SELECT count(*) FROM runs WHERE {where}")
            finally:
                await connection.close()

        measured = await forget(tmp_path, postgres_url, count)
        figures.put("postgresql", measured)
    check(measured)
