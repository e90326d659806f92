"""The PostgreSQL that tests stand on: were it not durable, isolated or tidy, other tests would prove nothing."""

import os
from pathlib import Path

import asyncpg
import psutil
import pytest

from tests.support.postgres import MAX_CONNECTIONS, URL_VARIABLE, Databases, PostgresServer, temporary_postgres


async def test_the_database_is_empty_durable_and_has_free_connections(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        assert await connection.fetch("select * from pg_tables where schemaname = 'public'") == []
        assert int(await connection.fetchval("show max_connections")) >= MAX_CONNECTIONS
        assert await connection.fetchval("show fsync") == "on"
        assert await connection.fetchval("show synchronous_commit") == "on"
    finally:
        await connection.close()


async def test_databases_are_apart_and_a_template_is_copied(postgres: Databases) -> None:
    with postgres.database() as first, postgres.database() as second:
        await execute(first, "create table mark (n int)")
        assert await tables(second) == []
        with postgres.database(template=first) as copy:
            assert await tables(copy) == ["mark"]


async def test_a_database_is_dropped_under_an_open_connection(postgres: Databases) -> None:
    url = postgres.create()
    connection = await asyncpg.connect(url)
    postgres.drop(url)
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(url)
    await connection.close()


async def test_what_is_committed_survives_a_kill() -> None:
    server = PostgresServer()
    try:
        server.start()
        url = Databases(server.url).create()
        await execute(url, "create table mark (n int)")
        killed = server.pid
        server.kill()
        with pytest.raises(OSError, match=r"."):
            await asyncpg.connect(url)
        server.start()
        assert server.pid != killed
        assert await tables(url) == ["mark"]
    finally:
        server.close()


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with temporary_postgres(settings={"max_connections": "10"}) as url:
        directory = Path(url.split("host=")[1].split("&")[0])
        started = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
        assert started
        assert directory.is_dir()
    assert not any(child.is_running() for child in started)
    assert not directory.exists()


def test_the_named_server_is_used(monkeypatch: pytest.MonkeyPatch, postgres: Databases) -> None:
    monkeypatch.setitem(os.environ, URL_VARIABLE, postgres.url)
    with temporary_postgres() as url:
        assert url.split("?")[1:] == postgres.url.split("?")[1:]


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def tables(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        return [
            row["tablename"] for row in await connection.fetch("select * from pg_tables where schemaname = 'public'")
        ]
    finally:
        await connection.close()
