"""The schema: brought up to date by any number of servers at once, and refused when it is not what the code knows."""

import asyncio

import asyncpg
import pytest

from kagzi.core.errors import SchemaMismatch, Unavailable
from kagzi.core.states import StepStatus
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.store.postgres.connection.connection import STATEMENTS
from kagzi.store.protocol import Want
from kagzi.store.sql_files import load_migrations
from kagzi.system import SystemRng

OLD_RUN = """
INSERT INTO namespaces (namespace, created_at) VALUES ('default', 0);
INSERT INTO runs (run_id, namespace, workflow_id, workflow_type, request_id, created_at, status, wait_reason, due_at,
    seq, lease)
VALUES ('019b7ca9-8f2e-7e6a-8000-000000000001', 'default', 'id', 'ship', 'request', 0, 3, 1, 1, 1, 1);
INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, created_at, wake_at, due_at)
VALUES ('019b7ca9-8f2e-7e6a-8000-000000000001', 'nap', 'nap', 2, 2, 1, 0, 1, 1);
"""


async def test_an_empty_database_is_migrated_once_by_all_who_try(postgres_url: str) -> None:
    before = await PostgresMigrator(postgres_url).status()
    assert (before.current, before.pending[0]) == (0, "0001_backbone")
    states = await asyncio.gather(*(PostgresMigrator(postgres_url).migrate() for _ in range(8)))
    assert {(state.current, state.pending) for state in states} == {(before.latest, ())}


async def test_migrating_again_changes_nothing(url: str) -> None:
    assert await PostgresMigrator(url).migrate() == await PostgresMigrator(url).status()


async def test_what_an_older_schema_holds_goes_on(postgres_url: str) -> None:
    first = load_migrations("kagzi.store.postgres")[0]
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(STATEMENTS["create_schema_table"])
        await connection.execute(first.sql)
        await connection.execute(STATEMENTS["note_migration"], first.version, first.name, first.checksum)
        await connection.execute(OLD_RUN)
    finally:
        await connection.close()
    await PostgresMigrator(postgres_url).migrate()
    store = PostgresStore(postgres_url, rng=SystemRng())
    await store.open()
    try:
        _, effects = await store.fire(2, end_leases=True, limit=10)
        assert effects.pending == (("default", "ship"),)
        [claimed] = (await store.claim([Want("default", "ship", ("1",), "worker", 1)], 5, 2, 3)).runs
        assert [(step.step_id, step.status) for step in claimed.history.steps] == [("nap", StepStatus.COMPLETED)]
    finally:
        await store.close()


async def test_a_store_does_not_open_on_an_empty_database(postgres_url: str) -> None:
    store = PostgresStore(postgres_url, rng=SystemRng())
    with pytest.raises(SchemaMismatch, match="kagzi db migrate"):
        await store.open()
    await store.close()


async def test_a_newer_schema_is_refused(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("INSERT INTO schema_migrations (version, name, checksum) VALUES (99, 'later', 'x')")
    for refused in (PostgresMigrator(url).status(), PostgresMigrator(url).migrate()):
        with pytest.raises(SchemaMismatch, match="newer"):
            await refused


async def test_an_edited_migration_is_noticed(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("UPDATE schema_migrations SET checksum = 'other' WHERE version = 1")
    with pytest.raises(SchemaMismatch, match=r"0001_backbone.*checksum"):
        await PostgresMigrator(url).migrate()


async def test_an_unreachable_database_is_unavailable_and_no_secret_is_disclosed() -> None:
    url = "postgresql://kagzi:s3cret@127.0.0.1:1/kagzi"
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1") as caught:
        await PostgresMigrator(url).status()
    assert "s3cret" not in str(caught.value)
