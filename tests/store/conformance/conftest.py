"""Every test here runs three times: on PostgreSQL, on an SQLite file and on SQLite in memory."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kagzi.store.protocol import Store
from tests.support.clock import FakeClock
from tests.support.postgres import Databases
from tests.support.providers import CountingIds

from .places import (
    DURABLE,
    POOLED,
    SETUPS,
    Place,
    emptied_quickly,
    empty_postgres,
    file_place,
    memory_place,
    migrate_postgres,
    postgres_place,
)
from .verbs import StoreHarness


@pytest.fixture(scope="session")
def migrated_postgres(postgres: Databases) -> Iterator[str]:
    """One migrated database for the whole session: emptying it between tests is quicker than making new ones."""
    with postgres.database() as url, ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(lambda: asyncio.run(migrate_postgres(url))).result()
        with emptied_quickly(url):
            yield url


@pytest.fixture(scope="session")
def pooler_url(postgres: Databases, migrated_postgres: str) -> Iterator[str | None]:
    """The same database through PgBouncer, if that is what is to be tested."""
    if not POOLED:
        yield None
        return
    from tests.support.pgbouncer import PgBouncer

    with PgBouncer(postgres.url) as pooler:
        yield pooler.through(migrated_postgres)


async def _place_for(setup: str, request: pytest.FixtureRequest, directory: Path) -> Place:
    if setup == "sqlite-memory":
        return memory_place()
    if setup == "sqlite-file":
        return await file_place(directory)
    url = request.getfixturevalue("migrated_postgres")
    await empty_postgres(url)
    return postgres_place(url, request.getfixturevalue("pooler_url"))


@pytest.fixture(params=SETUPS)
def setup(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        request.getfixturevalue("pooler_url")  # before a loop runs
    return request.param


@pytest.fixture
async def place(setup: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    place = await _place_for(setup, request, tmp_path)
    yield place
    await place.close()


@pytest.fixture(params=DURABLE)
def durable_setup(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        request.getfixturevalue("pooler_url")
    return request.param


@pytest.fixture
async def durable_place(durable_setup: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """A place whose data outlive the store object."""
    place = await _place_for(durable_setup, request, tmp_path)
    yield place
    await place.close()


@pytest.fixture
async def postgres_alone(migrated_postgres: str, pooler_url: str | None) -> AsyncIterator[Place]:
    """PostgreSQL, for what only several processes on one database can do to each other."""
    await empty_postgres(migrated_postgres)
    place = postgres_place(migrated_postgres, pooler_url)
    yield place
    await place.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ids() -> CountingIds:
    return CountingIds()


@pytest.fixture
async def store(place: Place) -> Store:
    return await place.open()


@pytest.fixture
async def second_store(place: Place, store: Store) -> Store:
    """Another opener of the same database. SQLite has one opener: there it is the same store, used by another
    caller."""
    return await place.open() if place.shared else store


@pytest.fixture
def harness(store: Store, clock: FakeClock, ids: CountingIds) -> StoreHarness:
    return StoreHarness(store, clock, ids)


@pytest.fixture
def second_harness(second_store: Store, clock: FakeClock, ids: CountingIds) -> StoreHarness:
    return StoreHarness(second_store, clock, ids)
