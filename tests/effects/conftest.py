"""The user's database: a new file of SQLite, or one of PostgreSQL that is emptied."""

from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.postgres import Databases

from .databases import SOME, SQLITE, made


@pytest.fixture(scope="session")
def shared_url(postgres: Databases) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture
async def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of the database that `kind` is of, with the user's own table in it."""
    if kind in SQLITE:
        path = str(tmp_path / "shop.db")
        await made(kind, path)
        return path
    shared: str = request.getfixturevalue("shared_url")
    connection = await asyncpg.connect(shared)
    try:
        await connection.execute(
            "drop table if exists payments, kagzi_effects, kagzi_outbox; create table payments (order_id text)"
        )
    finally:
        await connection.close()
    return shared


@pytest.fixture(params=SOME)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param
