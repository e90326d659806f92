"""What the hot path costs, counted: statements, commits, and new versions of rows."""

from collections.abc import Awaitable

import asyncpg
import msgspec
import pytest

from kagzi.core.records import RunFilter
from kagzi.core.run.commands import Command, CompleteRun, RecordStep
from kagzi.core.run.outcomes import Begun, Recorded, RunClosed
from kagzi.core.states import RunStatus
from kagzi.store.postgres import PostgresStore
from kagzi.store.postgres.connection.connection import Rows, Session
from kagzi.store.postgres.statements import PARAMETERS
from kagzi.store.protocol import Want

from .verbs import LEASE_US, NOW, OUTPUT, TERMS, begin, complete, running, signal, start, write


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


async def test_who_is_alone_sends_no_arrays(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost the database and its driver more than the row that is in them."""
    await write(store, start())
    sent: list[str] = []
    read = Session.read

    async def noted(session: Session, name: str, /, **values: object) -> Rows:
        sent.append(name)
        return await read(session, name, **values)

    monkeypatch.setattr(Session, "read", noted)
    [leased] = await running(store, 1)
    step = RecordStep(run=leased.run, lease=leased.lease, step_id="a", name="a", output=OUTPUT)
    await write(store, step)
    last = msgspec.structs.replace(step, step_id="b", name="b")
    end = CompleteRun(run=leased.run, lease=leased.lease, output=OUTPUT, after_step="b")
    assert await write(store, last, end) == [Recorded(4, NOW), RunClosed(5, NOW, RunStatus.COMPLETED)]
    assert sent == ["start_lone_run", "lone_step", "lone_end"]
    assert not any(columns for name in sent for columns in PARAMETERS[name].columns.values())


async def test_what_each_operation_costs_in_statements_and_commits(store: PostgresStore) -> None:
    """Counted with BEGIN and COMMIT. A number that grows is a round trip more for everybody."""
    leased = await running(store, 3)
    costs: dict[str, tuple[int, int]] = {}

    async def cost(name: str, operation: Awaitable[object]) -> None:
        statements, transactions = store.statements, store.transactions
        await operation
        costs[name] = (store.statements - statements, store.transactions - transactions)

    one = leased[0]
    await cost("a step", write(store, begin(one, "a"), complete(one, "a")))
    await cost("steps of two runs", write(store, *(begin(each, "b") for each in leased[1:])))
    await cost("their results", write(store, *(complete(each, "b") for each in leased[1:])))
    await cost("a start", write(store, start()))
    labelled = msgspec.structs.replace(start(), labels={"team": "x"}, signal=signal("approved"))
    await cost("a start with labels and a signal", write(store, labelled))
    wants = [Want("default", "ship", ("1",), "worker", 10)]
    await cost("claims", store.claim(wants, 5, NOW, NOW + LEASE_US))
    await cost("nothing to claim", store.claim(wants, 5, NOW, NOW + LEASE_US))
    await cost("leases that end", store.fire(NOW + 2 * LEASE_US, end_leases=True, limit=10))
    await cost("nothing that is due", store.fire(NOW + 2 * LEASE_US, end_leases=True, limit=10))
    await cost("a list", store.list_runs("default", RunFilter(), None, 10))
    await cost("a list by type", store.list_runs("default", RunFilter(workflow_types=("ship",)), None, 10))
    await cost("a list by version", store.list_runs("default", RunFilter(version="1"), None, 10))
    assert costs == {
        "a step": (1, 1),
        "steps of two runs": (1, 1),
        "their results": (1, 1),
        "a start": (1, 1),
        "a start with labels and a signal": (1, 1),
        "claims": (4, 1),
        "nothing to claim": (3, 1),
        "leases that end": (5, 1),
        "nothing that is due": (3, 1),
        "a list": (1, 0),
        "a list by type": (1, 0),
        "a list by version": (1, 0),
    }


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
