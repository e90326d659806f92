"""A migrated database and a store on it; commands as short as they can be."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from kagzi.store.postgres import PostgresStore
from kagzi.system import SystemRng


@pytest.fixture
def url(migrated_postgres_url: str) -> str:
    return migrated_postgres_url


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Somebody else's connection to the same database."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()
