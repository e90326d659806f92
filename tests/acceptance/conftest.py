"""Every promise is kept by real processes, on both stores, and by two servers on one PostgreSQL."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.migrated import copy_migrated_sqlite
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import Databases
from tests.support.processes import Processes

from .cluster import POOLED, SETUPS, Cluster


@pytest.fixture(scope="session")
def pgbouncer(postgres: Databases) -> Iterator[PgBouncer]:
    with PgBouncer(postgres.url) as pooler:
        yield pooler


@pytest.fixture(params=SETUPS)
def setup(request: pytest.FixtureRequest) -> str:
    if request.param != "sqlite":
        request.getfixturevalue("migrated_postgres_url")  # before a loop runs
    if request.param in POOLED:
        request.getfixturevalue("pgbouncer")
    return request.param


def migrated_database(setup: str, request: pytest.FixtureRequest, directory: Path) -> str:
    if setup != "sqlite":
        return request.getfixturevalue("migrated_postgres_url")
    copy_migrated_sqlite(directory / "kagzi.db")
    return f"sqlite:///{directory}/kagzi.db"


@pytest.fixture
async def cluster(setup: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    """A module may have SERVER_OPTIONS of its own."""
    database = migrated_database(setup, request, tmp_path)
    pooler = request.getfixturevalue("pgbouncer").through(database) if setup in POOLED else None
    options: list[str] = ["--db-direct", database] if setup == "pgbouncer-and-direct" else []
    options += getattr(request.module, "SERVER_OPTIONS", ())
    async with Processes(tmp_path) as processes:
        cluster = Cluster(processes, database, tmp_path, *options, pooler=pooler)
        for _ in range(1 if setup in ("sqlite", "postgres") else 2):
            await cluster.add_server()
        yield cluster
