"""Histories divided by a hash of the run id: the same schema version, the same rows, the same work."""

import asyncpg
import pytest

from kagzi.core.errors import InvalidArgument, PreconditionFailed, SchemaMismatch
from kagzi.core.run.outcomes import Begun, Recorded
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.store.postgres.partition import TABLES, PostgresPartitioner
from kagzi.system import SystemRng

from .verbs import NOW, begin, complete, running, write

SHAPE = """
SELECT c.relname, i.relname AS index, pg_get_indexdef(i.oid) AS definition
FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS c ON c.oid = x.indrelid
WHERE c.relname = ANY ($1) ORDER BY 1, 2
"""
CHECKS = (
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE "
    "contype = 'c' AND conrelid::regclass::text = ANY ($1) ORDER BY 1, 2"
)


async def test_everything_is_as_before_but_divided(url: str) -> None:
    """Other connections than ours may stay: they are none of our servers."""
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    leased = await running(store, 20)
    for each in leased:
        await write(store, begin(each, "a"), complete(each, "a"))
    await store.close()

    connection = await asyncpg.connect(url)
    shape = [tuple(row) for row in await connection.fetch(SHAPE, list(TABLES))]
    checks = [tuple(row) for row in await connection.fetch(CHECKS, list(TABLES))]
    rows = await connection.fetch("SELECT * FROM steps ORDER BY run_id, step_id")

    assert await PostgresPartitioner(url).partition(4)
    after = [tuple(row) for row in await connection.fetch(SHAPE, list(TABLES))]
    assert [(table, name, text.replace(" ON ONLY ", " ON ")) for table, name, text in after] == shape
    assert [tuple(row) for row in await connection.fetch(CHECKS, list(TABLES))] == checks
    assert await connection.fetch("SELECT * FROM steps ORDER BY run_id, step_id") == rows
    used = await connection.fetch("SELECT tableoid::regclass::text AS part, count(*) FROM steps GROUP BY 1")
    assert {row["part"] for row in used} == {f"steps_{part}" for part in range(4)}
    options = await connection.fetchval("SELECT reloptions FROM pg_class WHERE relname = 'steps_0'")
    assert options == ["fillfactor=85"]
    assert await connection.fetchval("SELECT to_regclass('steps_whole')") is None
    await connection.close()

    status = await PostgresMigrator(url).status()
    assert status.current == status.latest
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    assert await write(store, begin(leased[0], "b"), complete(leased[0], "b")) == [Begun(3, NOW, 1), Recorded(4, NOW)]
    await store.close()


async def test_a_second_time_there_is_nothing_to_do_and_another_number_is_refused(url: str) -> None:
    assert await PostgresPartitioner(url).partition(2)
    assert not await PostgresPartitioner(url).partition(2)
    with pytest.raises(PreconditionFailed, match="already has 2 partitions"):
        await PostgresPartitioner(url).partition(3)


async def test_not_while_servers_run(store: PostgresStore, url: str) -> None:
    with pytest.raises(PreconditionFailed, match="Stop all servers"):
        await PostgresPartitioner(url).partition(2)


async def test_not_before_everything_is_migrated(postgres_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="kagzi db migrate"):
        await PostgresPartitioner(postgres_url).partition(2)


@pytest.mark.parametrize("parts", [0, 1, 257])
async def test_the_number_of_parts_has_bounds(url: str, parts: int) -> None:
    with pytest.raises(InvalidArgument, match=r"2\.\.256"):
        await PostgresPartitioner(url).partition(parts)
