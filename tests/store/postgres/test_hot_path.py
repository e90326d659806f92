"""What the hot path costs, counted: statements, commits, and new versions of rows."""

import asyncpg

from kagzi.core.run.commands import Command, CompleteRun
from kagzi.core.run.outcomes import Begun, Recorded, RunClosed
from kagzi.core.states import RunStatus
from kagzi.store.postgres import PostgresStore

from .verbs import NOW, OUTPUT, TERMS, begin, complete, running, start, write


async def test_a_hundred_steps_of_a_hundred_runs_are_one_statement_and_one_commit(store: PostgresStore) -> None:
    holdings = await running(store, 100)
    commands: list[Command] = [
        command for leased in holdings for command in (begin(leased, "a"), complete(leased, "a"))
    ]
    statements, transactions = store.statements, store.transactions
    outcomes, _ = await store.write(commands, NOW, TERMS)
    assert outcomes == [Begun(1, NOW, 1), Recorded(2, NOW)] * 100
    assert (store.statements - statements, store.transactions - transactions) == (1, 1)


async def test_the_end_of_a_run_rides_with_its_last_step(store: PostgresStore) -> None:
    [leased] = await running(store, 1)
    statements = store.statements
    end = CompleteRun(run=leased.run, lease=leased.lease, output=OUTPUT)
    outcomes, _ = await store.write([begin(leased, "a"), complete(leased, "a"), end], NOW, TERMS)
    assert outcomes == [Begun(1, NOW, 1), Recorded(2, NOW), RunClosed(3, NOW, RunStatus.COMPLETED)]
    assert store.statements - statements == 1


async def test_the_end_of_a_run_waits_for_a_step_that_is_half_recorded(store: PostgresStore) -> None:
    """The begin was recorded and its answer lost: sent again with the rest, all of it is kept."""
    [leased] = await running(store, 1)
    await write(store, begin(leased, "a"))
    end = CompleteRun(run=leased.run, lease=leased.lease, output=OUTPUT)
    outcomes, _ = await store.write([begin(leased, "a"), complete(leased, "a"), end], NOW, TERMS)
    assert outcomes == [Begun(1, NOW, 1), Recorded(2, NOW), RunClosed(3, NOW, RunStatus.COMPLETED)]
    step = await store.get_step(leased.run, "a")
    assert step is not None
    assert step.output == OUTPUT


async def test_starts_of_a_batch_are_one_statement(store: PostgresStore) -> None:
    await write(store, start())
    statements = store.statements
    await write(store, *(start() for _ in range(100)))
    assert store.statements - statements == 1


async def test_looking_ahead_is_one_statement(store: PostgresStore) -> None:
    statements = store.statements
    await store.poll([], NOW)
    assert store.statements - statements == 1


async def test_steps_change_run_rows_without_touching_an_index(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    holdings = await running(store, 20)
    for n in range(50):
        await write(store, *(begin(leased, f"step-{n}") for leased in holdings))
        await write(store, *(complete(leased, f"step-{n}") for leased in holdings))
    await store.close()  # a backend reports its figures at the latest when it ends
    query = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1"
    runs = await settled(connection, query, "runs", 20 * 100)
    steps = await settled(connection, query, "steps", 20 * 50)
    assert runs["n_tup_hot_upd"] >= 0.95 * runs["n_tup_upd"]
    assert steps["n_tup_hot_upd"] >= 0.5 * steps["n_tup_upd"]


async def settled(connection: asyncpg.Connection, query: str, table: str, updates: int) -> asyncpg.Record:
    """The figures of a table once all updates are in them."""
    while True:
        row = await connection.fetchrow(query, table)
        assert row is not None
        if row["n_tup_upd"] >= updates:
            return row
        await connection.execute("SELECT pg_stat_clear_snapshot(), pg_sleep(0.02)")
