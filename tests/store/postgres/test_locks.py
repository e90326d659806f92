"""A row that somebody else holds delays its own run only."""

import asyncio

import asyncpg

from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.outcomes import Begun, Busy, Recorded
from kagzi.core.states import RunCode
from kagzi.store.postgres import PostgresStore
from kagzi.store.protocol import Signalled, Want
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE_S

from .verbs import LEASE_US, NOW, begin, complete, running, signal, start, write


async def lock(connection: asyncpg.Connection, leased: RunLease) -> None:
    await connection.execute("SELECT 1 FROM runs WHERE run_id = $1 FOR UPDATE", leased.run.run_id)


async def test_commands_of_a_locked_run_are_busy_and_their_neighbours_recorded(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    first, locked, last = await running(store, 3)
    async with connection.transaction():
        await lock(connection, locked)
        async with asyncio.timeout(LOADED_MACHINE_S):
            outcomes = await write(
                store,
                begin(first, "a"),
                begin(locked, "a"),
                complete(locked, "a"),
                begin(last, "a"),
                complete(last, "a"),
            )
        assert outcomes == [Begun(1, NOW, 1), Busy(), Busy(), Begun(1, NOW, 1), Recorded(2, NOW)]
    assert await write(store, begin(locked, "a"), complete(locked, "a")) == [Begun(1, NOW, 1), Recorded(2, NOW)]


async def test_a_row_that_was_locked_is_checked_and_not_waited_for_again(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    locked, free = await running(store, 2)
    async with connection.transaction():
        await lock(connection, locked)
        await write(store, begin(locked, "a"))
        statements = store.statements
        assert await write(store, begin(locked, "a"), begin(free, "a")) == [Busy(), Begun(1, NOW, 1)]
        assert store.statements - statements == 2  # who is locked, then the batch: no statement ran into the lock
    assert await write(store, begin(locked, "a")) == [Begun(1, NOW, 1)]


async def test_a_claim_passes_over_locked_runs(store: PostgresStore, connection: asyncpg.Connection) -> None:
    locked, free = start(), start()
    await write(store, locked)
    await write(store, free)
    async with connection.transaction():
        await lock(connection, RunLease(locked.run, None))  # type: ignore[arg-type]
        claimed = (await store.claim([Want("default", "ship", ("1",), "worker", 10)], 5, NOW, NOW + LEASE_US)).runs
        assert [each.run for each in claimed] == [free.run]


async def test_a_heartbeat_neither_waits_for_a_locked_run_nor_calls_it_lost(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    locked, free = await running(store, 2)
    async with connection.transaction():
        await lock(connection, locked)
        async with asyncio.timeout(LOADED_MACHINE_S):
            assert (await store.renew([locked, free], NOW, NOW + LEASE_US)).lost == ()


async def test_a_signal_that_waited_for_a_run_that_continues_as_new_goes_to_the_successor(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    command = start(workflow_id="poll")
    await write(store, command)
    old, new = command.run.run_id, start().run.run_id
    async with connection.transaction():
        await connection.execute(
            f"CREATE TEMP TABLE successor ON COMMIT DROP AS SELECT * FROM runs WHERE run_id = '{old}'"
        )
        await connection.execute("UPDATE successor SET run_id = $1, request_id = 'another'", new)
        ended = "UPDATE runs SET status = $2, continued_as = $3, finished_at = 1, ready_at = NULL WHERE run_id = $1"
        await connection.execute(ended, old, int(RunCode.COMPLETED), new)
        await connection.execute("INSERT INTO runs SELECT * FROM successor")
        signalling = asyncio.create_task(store.signal_run("default", workflow_id="poll", signal=signal("go"), now=NOW))
        await until(lambda: waits_for_a_lock(connection))
    async with asyncio.timeout(LOADED_MACHINE_S):
        signalled, _ = await signalling
    assert signalled == Signalled(RunKey("default", new), delivered=False)


async def waits_for_a_lock(connection: asyncpg.Connection) -> bool:
    return bool(await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))
