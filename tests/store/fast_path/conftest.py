"""Twins on each set-up: SQLite in memory, SQLite in a file, PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.store.conformance.places import connected, migrate_postgres
from tests.support.migrated import copy_migrated_sqlite
from tests.support.postgres import Databases

from .setups import PostgresTwins, SqliteTwins
from .twins import Twins


@pytest.fixture(scope="session")
def postgres_pair(postgres: Databases) -> Iterator[tuple[str, str]]:
    with postgres.database() as first, ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(lambda: asyncio.run(migrate_postgres(first))).result()
        with postgres.database(template=first) as second:
            yield first, second


@pytest.fixture(params=("sqlite-memory", "sqlite-file", "postgres"))
def setup(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        request.getfixturevalue("postgres_pair")  # before a loop runs
    return request.param


@pytest.fixture
async def twins(setup: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Twins]:
    async with AsyncExitStack() as stack:
        if setup == "postgres":
            urls = request.getfixturevalue("postgres_pair")
            connections = [await stack.enter_async_context(connected(url)) for url in urls]
            pair = PostgresTwins(urls, (connections[0], connections[1]))
            stack.push_async_callback(pair.close)
            await pair.open()
            yield pair
            return
        template = tmp_path / "template.db" if setup == "sqlite-file" else None
        if template is not None:
            copy_migrated_sqlite(template)
        alike = SqliteTwins(template)
        stack.push_async_callback(alike.close)
        yield alike
