"""A lost connection is told in our words, and the next call has a new one."""

import asyncio
import contextlib

import asyncpg
import pytest

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.errors import InvalidArgument, Unavailable
from kagzi.core.records import RunFilter
from kagzi.core.run.outcomes import Begun, Recorded
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.store.postgres.connection.connection import HOT_SETTINGS, Counters, Session
from kagzi.store.postgres.connection.target import Target
from kagzi.system import SystemRng
from tests.support.postgres import Databases
from tests.support.timeouts import LOADED_MACHINE_S

from .verbs import NOW, begin, complete, running, write

TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid "
    "<> pg_backend_pid()"
)


async def test_a_call_whose_connection_breaks_is_unavailable_and_the_next_one_works(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    [leased] = await running(store, 1)
    async with connection.transaction():
        await connection.execute("SELECT 1 FROM runs FOR UPDATE")
        cancelling = asyncio.create_task(store.cancel_run(leased.run, "enough", NOW, NOW + 1))
        async with asyncio.timeout(LOADED_MACHINE_S):
            while not await connection.fetchval(TERMINATE + " AND wait_event_type = 'Lock'"):
                pass
        with pytest.raises(Unavailable, match="PostgreSQL at"):
            await cancelling
    assert await store.cancel_run(leased.run, "enough", NOW, NOW + 1) != (None, NO_EFFECTS)


async def test_every_kind_of_connection_comes_back(store: PostgresStore, connection: asyncpg.Connection) -> None:
    [leased] = await running(store, 1)
    await store.get_namespace("default")
    await connection.execute(TERMINATE)
    for call in (
        lambda: write(store, begin(leased, "a")),
        lambda: store.poll([], NOW),
        lambda: store.get_namespace("default"),
    ):
        with contextlib.suppress(Unavailable):  # unless the loss was noticed before the call
            await call()
        await call()


async def test_a_statement_is_parsed_once_for_a_connection(url: str) -> None:
    connection = await Target(url).connect(HOT_SETTINGS)
    session = Session(connection, Counters(), None)
    for _ in range(3):
        await session.read("server_settings")
        await session.read("namespaces_after", namespace="", limit=1)
    used = await connection.fetch("SELECT name, generic_plans FROM pg_prepared_statements ORDER BY name")
    await connection.close()
    assert [tuple(row) for row in used] == [("namespaces_after", 3), ("server_settings", 3)]


async def test_text_that_cannot_be_queried_is_an_invalid_argument(store: PostgresStore) -> None:
    with pytest.raises(InvalidArgument):
        await store.list_runs("default", RunFilter(workflow_id="nul\x00"), None, 10)


async def test_a_pooler_in_transaction_mode_needs_no_session(url: str) -> None:
    """Nothing is kept in the session: no prepared statements, settings with every transaction."""
    store = PostgresStore(f"{url}&pgbouncer=true", rng=SystemRng())
    await store.open()
    [leased] = await running(store, 1)
    assert await write(store, begin(leased, "a"), complete(leased, "a")) == [Begun(1, NOW, 1), Recorded(2, NOW)]
    await store.close()


async def test_a_session_commits_synchronously_whatever_the_database_is_set_to(
    url: str, connection: asyncpg.Connection
) -> None:
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    assert "synchronous_commit=off" in store.warnings[0]
    async with store._hot.use() as session:
        assert await session._connection.fetchval("SHOW synchronous_commit") == "on"
    await store.close()


async def test_a_store_on_a_missing_database_is_unavailable(postgres: Databases) -> None:
    with postgres.database() as url:
        pass
    store = PostgresStore(url, rng=SystemRng())
    with pytest.raises(Unavailable):
        await store.open()
    with pytest.raises(Unavailable):
        await PostgresMigrator(url).migrate()


def test_options_of_ours_are_not_sent_to_the_driver() -> None:
    target = Target("postgresql://user:pw@/db?host=/var/run/pg&pgbouncer=true")
    assert target.pooled
    assert target.hosts.order[0].url == "postgresql://user:pw@/db?host=/var/run/pg"
    assert target.place == "PostgreSQL at /var/run/pg/db"


@pytest.mark.parametrize("special", "/?#@[ ")
async def test_no_error_shows_a_piece_of_a_password(special: str) -> None:
    url = f"postgresql://user:topsecret{special}hushhush@127.0.0.1:1/db"
    with pytest.raises((InvalidArgument, Unavailable)) as refusal:
        await Target(url).connect(HOT_SETTINGS)
    assert not any(piece in str(refusal.value) for piece in ("topsecret", "hushhush"))
