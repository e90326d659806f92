"""Through a pooler in transaction mode a session keeps nothing: what must hold, holds in every transaction."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import asyncpg
import pytest

from kagzi.core.records import RunFilter
from kagzi.core.run.outcomes import Begun, Recorded
from kagzi.store.postgres import PostgresBus, PostgresMigrator, PostgresStore
from kagzi.store.postgres.connection.connection import HOT_SETTINGS, Session
from kagzi.store.postgres.connection.target import Target
from kagzi.store.protocol import POLL_AGAIN, TypeKey, Wake
from kagzi.system import SystemRng
from tests.support.timeouts import LOADED_MACHINE_S

from .verbs import NOW, begin, complete, running, write

# What a client of the same pooler may leave behind in the sessions it is given.
LEFT_BEHIND = "SET synchronous_commit = off; SET statement_timeout = '1h'; SET enable_seqscan = on"

WATCH = """
CREATE TABLE seen (synchronous_commit text, lock_timeout text, at_table text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen VALUES (current_setting('synchronous_commit'), current_setting('lock_timeout'), TG_TABLE_NAME);
    RETURN NULL;
END $$;
"""


async def watch(connection: asyncpg.Connection) -> None:
    """From now on every statement that writes to a table of ours tells under which settings."""
    await connection.execute(WATCH)
    tables = await connection.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'seen'"
    )
    for row in tables:
        table = row["tablename"]
        await connection.execute(
            f"CREATE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION see()"
        )


@pytest.fixture
async def pooled(url: str) -> AsyncIterator[PostgresStore]:
    """A store that takes its PostgreSQL for a pooler; its sessions were set otherwise by somebody else."""
    store = PostgresStore(f"{url}&pgbouncer=true", rng=SystemRng())
    await store.open()
    for link in (store._hot, store._duty, *store._questions.links, *store._readers.links):
        async with link.use() as session:
            await session._connection.execute(LEFT_BEHIND)
    yield store
    await store.close()


async def test_every_transaction_commits_synchronously_whatever_its_session_was_set_to(
    pooled: PostgresStore, connection: asyncpg.Connection
) -> None:
    await watch(connection)
    leased, other = await running(pooled, 2)
    assert await write(pooled, begin(leased, "a"), complete(leased, "a")) == [Begun(1, NOW, 1), Recorded(2, NOW)]
    await pooled.cancel_run(other.run, "enough", NOW, NOW + 1)
    await pooled.renew([leased], NOW, NOW + 10_000_000)
    await pooled.fire(NOW + 20_000_000, end_leases=True, limit=10)
    seen = await connection.fetch("SELECT DISTINCT synchronous_commit, at_table FROM seen")
    assert {row["synchronous_commit"] for row in seen} == {"on"}
    assert {row["at_table"] for row in seen} >= {"runs", "steps"}
    waits = {row["lock_timeout"] for row in await connection.fetch("SELECT DISTINCT lock_timeout FROM seen")}
    assert waits == {"50ms", "2s"}


async def test_a_session_that_waits_for_standbys_to_apply_goes_on_doing_so(
    pooled: PostgresStore, connection: asyncpg.Connection
) -> None:
    await watch(connection)
    async with pooled._hot.use() as session:
        await session._connection.execute("SET synchronous_commit = remote_apply")
    await running(pooled, 1)  # the start goes by the hot link, the claim by the other
    starts = await connection.fetch("SELECT synchronous_commit FROM seen WHERE at_table = 'steps'")
    assert {row["synchronous_commit"] for row in starts} == {"remote_apply"}


async def test_reads_use_our_settings_and_leave_nothing_open(pooled: PostgresStore) -> None:
    await pooled.list_runs("default", RunFilter(), None, 10)
    async with pooled._questions.use() as session:
        assert await session.read("server_settings")
        assert not session._connection.is_in_transaction()
        async with session.transaction():
            assert await session._connection.fetchval("SHOW statement_timeout") == "15s"
        assert await session._connection.fetchval("SHOW statement_timeout") == "1h"


async def test_a_transaction_that_fails_is_undone_and_the_connection_goes_on(pooled: PostgresStore) -> None:
    async def fail(session: Session) -> None:
        async with session.transaction():
            await session.read("notify", channel="nobody", payload="never")
            raise ZeroDivisionError

    async with pooled._hot.use() as session:
        with pytest.raises(ZeroDivisionError):
            await fail(session)
        assert not session._connection.is_in_transaction()
    [leased] = await running(pooled, 1)
    assert await write(pooled, begin(leased, "a")) == [Begun(1, NOW, 1)]


class Refusing:
    """The door of a database whose pooler refuses settings, or swallows them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, aloud: bool) -> None:
        self._connect = asyncpg.connect
        self._aloud = aloud
        self.refused = 0
        monkeypatch.setattr(asyncpg, "connect", self)

    async def __call__(
        self, dsn: str, *, server_settings: Mapping[str, str] | None = None, **options: Any
    ) -> asyncpg.Connection:
        if set(server_settings or ()) - {"application_name"}:
            self.refused += 1
            if self._aloud:
                raise asyncpg.ProtocolViolationError("unsupported startup parameter: jit")
        return await self._connect(dsn, server_settings={"application_name": "kagzi"}, **options)


@pytest.fixture(params=["refused", "swallowed"])
def refusing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Refusing:
    return Refusing(monkeypatch, aloud=request.param == "refused")


async def test_a_pooler_is_noticed_by_what_it_does_with_settings(refusing: Refusing, url: str) -> None:
    target = Target(url)
    for _ in range(2):
        connection = await target.connect(HOT_SETTINGS)
        assert target.pooled
        await connection.close()
    assert refusing.refused == 1  # the next connection knows


async def test_a_bus_behind_a_pooler_sends_and_polls_for_itself(
    refusing: Refusing, url: str, connection: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    received: asyncio.Queue[str] = asyncio.Queue()

    def receive(_connection: object, _pid: int, _channel: str, payload: object) -> None:
        received.put_nowait(str(payload))

    await connection.add_listener("kagzi_wake", receive)
    bus = PostgresBus(url, server_id="deaf")
    wakes: asyncio.Queue[Wake] = asyncio.Queue()
    await bus.open(wakes.put_nowait)
    await bus.publish(Wake(pending=frozenset([TypeKey("default", "order")])))
    assert "order" in await asyncio.wait_for(received.get(), LOADED_MACHINE_S)
    assert await asyncio.wait_for(wakes.get(), LOADED_MACHINE_S) == POLL_AGAIN
    await bus.close()
    assert "--db-direct" in caplog.text
    assert wakes.empty()


async def test_a_pooled_database_is_migrated(refusing: Refusing, postgres_url: str) -> None:
    states = await asyncio.gather(*(PostgresMigrator(postgres_url).migrate() for _ in range(4)))
    assert {state.pending for state in states} == {()}
    assert await PostgresMigrator(postgres_url).status() == states[0]
