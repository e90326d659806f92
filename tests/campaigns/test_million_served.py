"""1,000,000 finished and 100,000 sleeping runs in each store, as people and workers meet them: a server on the small
store and one on the large one, each with a worker, asked over the wire in turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kagzi import Kagzi
from kagzi.core.times import to_datetime
from kagzi.system import SystemRng
from tests.acceptance.cluster import Cluster
from tests.support.postgres import Databases
from tests.support.processes import Processes

from . import crowd, flows
from .compare import PAGE, RUNS, SMALL_RUNS, Ask, Sized, check, compare
from .crowds import crowd_directory, fill_postgres_store, kept_sqlite_store
from .figures import Figures

LIMIT_S = 3_600
CENTURY = "36000d"  # the crowd lies in the past, and is to stay
# Half of all answers within the ratio, however quick; the slowest hundredth waits for disks and other processes.
LEAST_DIFFERENCE_MS = {"p50": 0.0, "p99": 5.0}


def listing(**which: Any) -> Ask[Kagzi]:
    async def ask(client: Kagzi, _g: int) -> object:
        runs = [run async for run in client.list(limit=PAGE, **which)]
        assert len(runs) == PAGE, f"{len(runs)} runs of {which}"
        return runs

    return ask


async def list_until(client: Kagzi, g: int) -> object:
    """A page in the midst of all."""
    until = to_datetime(crowd.BEGAN + max(g, 2 * PAGE) * crowd.SPACING_US)
    runs = [run async for run in client.list(limit=PAGE, until=until)]
    assert len(runs) == PAGE
    return runs


async def get(client: Kagzi, g: int) -> object:
    return await client.get(crowd.run_id(g)).info()


async def get_by_id(client: Kagzi, g: int) -> object:
    return await client.get(f"w-{g}").info()


async def start(client: Kagzi, _g: int) -> object:
    """Of a type that no worker serves: nothing but the start is measured."""
    return await client.start(crowd.TYPE, {})


async def start_to_result(client: Kagzi, _g: int) -> object:
    """Start, claim, one step, result."""
    assert await client.run(flows.pickup, None) == 1
    return None


QUESTIONS: dict[str, Ask[Kagzi]] = {
    "list": listing(),
    "list, page in the midst": list_until,
    "list by status COMPLETED": listing(status="completed"),
    "list by status SLEEPING": listing(status="sleeping"),
    "list by type and status": listing(workflow=crowd.TYPE, status="failed"),
    "list by label": listing(labels={"region": "eu"}),
    "list by version": listing(version=crowd.RARE_VERSION),
    "list by problem": listing(problem=True),
    "get": get,
    "get by workflow id": get_by_id,
    "start": start,
    "start to result": start_to_result,
}


@asynccontextmanager
async def served(processes: Processes, directory: Path, database: str, runs: int) -> AsyncIterator[Sized[Kagzi]]:
    cluster = Cluster(processes, database, directory, "--lease", "15s", "--heartbeat", "5s", "--retention", CENTURY)
    await cluster.add_server()
    await cluster.worker(module=flows.__name__)
    async with cluster.client() as client:
        yield Sized(client, runs)


async def ask_servers(part: str, directory: Path, small: str, large: str) -> dict[str, Any]:
    async with (
        Processes(directory) as processes,
        served(processes, directory, small, SMALL_RUNS) as few,
        served(processes, directory, large, RUNS) as many,
    ):
        return await compare(Figures("million-served"), part, QUESTIONS, few, many)


@pytest.mark.timeout(LIMIT_S)
async def test_sqlite(tmp_path: Path) -> None:
    measured = Figures("million-served").known("sqlite")
    if measured is None:
        directory = crowd_directory(tmp_path)
        small, large = [await kept_sqlite_store(directory, runs, SystemRng()) for runs in (SMALL_RUNS, RUNS)]
        measured = await ask_servers("sqlite", tmp_path, f"sqlite:///{small}", f"sqlite:///{large}")
    check(measured, least_difference_ms=LEAST_DIFFERENCE_MS)


@pytest.mark.timeout(LIMIT_S)
async def test_postgresql(postgres: Databases, tmp_path: Path) -> None:
    measured = Figures("million-served").known("postgresql")
    if measured is None:
        with postgres.database() as small, postgres.database() as large:
            await fill_postgres_store(small, SMALL_RUNS, SystemRng())
            await fill_postgres_store(large, RUNS, SystemRng())
            measured = await ask_servers("postgresql", tmp_path, small, large)
    check(measured, least_difference_ms=LEAST_DIFFERENCE_MS)
