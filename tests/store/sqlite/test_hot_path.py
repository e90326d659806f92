"""What the hot verbs cost, counted: transactions, and statements, which do not grow with what is written at once."""

import pytest

from kagzi.core.records import RunLease
from kagzi.core.run.commands import Command
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.statements import ROWS_AT_ONCE
from tests.store.conformance.verbs import StoreHarness, begin, complete, complete_run, leased, park, payload, sleep


def inserts(rows: int) -> int:
    """Statements for so many rows: the largest ones, and the rest by halves."""
    return rows // ROWS_AT_ONCE[0] + (rows % ROWS_AT_ONCE[0]).bit_count()


class Counts:
    """What was done since it was made."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self._statements, self._transactions = store, store.statements, store.transactions

    @property
    def transactions(self) -> int:
        return self._store.transactions - self._transactions

    @property
    def statements(self) -> int:
        return self._store.statements - self._statements


async def running(harness: StoreHarness, count: int) -> list[RunLease]:
    await harness.start_many(count, input=payload("1"))
    return [leased(claimed) for claimed in await harness.claim(limit=count)]


@pytest.mark.parametrize("count", [1, 2, 10, 64, 100, 200])
async def test_a_batch_of_steps_is_one_transaction(store: SqliteStore, harness: StoreHarness, count: int) -> None:
    holdings = await running(harness, count)
    commands: list[Command] = [
        command for holding in holdings for command in (begin(holding, "a"), complete(holding, "a"))
    ]
    counts = Counts(store)
    await harness.write(*commands)
    assert counts.transactions == 1
    assert counts.statements == inserts(count) + 1, "rows of steps, and one for all runs"


async def test_who_is_alone_writes_no_json(store: SqliteStore, harness: StoreHarness) -> None:
    """It costs more than the row that is in it."""
    [holding] = await running(harness, 1)
    await harness.write(begin(holding, "a"), complete(holding, "a"))  # from here on its fence is known
    assert store._writer is not None
    texts: list[str] = []
    store._writer.database._connection.set_trace_callback(texts.append)
    await harness.write(begin(holding, "b"), complete(holding, "b"))
    await harness.write(begin(holding, "c"), complete(holding, "c"), complete_run(holding))
    assert [text for text in texts if text.startswith("UPDATE runs")]
    assert not [text for text in texts if "json_each" in text]


@pytest.mark.parametrize("count", [1, 10, 100])
async def test_results_of_steps_begun_before_are_one_transaction(
    store: SqliteStore, harness: StoreHarness, count: int
) -> None:
    holdings = await running(harness, count)
    await harness.write(*(begin(holding, "a") for holding in holdings))
    counts = Counts(store)
    await harness.write(*(complete(holding, "a") for holding in holdings))
    assert counts.transactions == 1
    assert counts.statements == inserts(count) + 1


@pytest.mark.parametrize("count", [1, 10, 100])
async def test_the_end_of_a_run_rides_with_its_last_step(store: SqliteStore, harness: StoreHarness, count: int) -> None:
    holdings = await running(harness, count)
    commands: list[Command] = []
    for holding in holdings:
        commands += (begin(holding, "a"), complete(holding, "a"), complete_run(holding))
    counts = Counts(store)
    await harness.write(*commands)
    assert counts.transactions == 1
    assert counts.statements == inserts(2 * count) + 1, "rows of steps and outputs, and one for all runs"


@pytest.mark.parametrize("count", [1, 10, 100, 200])
async def test_starts_of_a_batch_are_one_transaction(store: SqliteStore, harness: StoreHarness, count: int) -> None:
    await harness.start()
    counts = Counts(store)
    await harness.start_many(count, input=payload("1"))
    assert counts.transactions == 1
    assert counts.statements == 2 * inserts(count), "rows of runs, and of their inputs"


async def test_an_ordinary_run_is_in_few_indexes(store: SqliteStore, harness: StoreHarness) -> None:
    """Each one is a page that a single start writes: see docs/adr/0066."""
    await harness.start(assignment=harness.assignment())
    assert store._writer is not None
    database = store._writer.database
    indexes = {
        name: "" if sql is None else sql.partition(" WHERE ")[2]
        for name, sql in database.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'runs'"
        )
    }
    written = {
        name
        for name, predicate in indexes.items()
        if not predicate or database.execute(f"SELECT 1 FROM runs WHERE {predicate}")
    }
    assert written == {
        *("sqlite_autoindex_runs_1", "runs_active", "runs_request", "runs_lease"),
        *("runs_by_created", "runs_by_status", "runs_by_type_version", "runs_by_workflow_id"),
    }


@pytest.mark.parametrize("count", [2, 10, 100, 500])
async def test_waking_and_claiming_cost_the_same_for_one_and_for_many(
    store: SqliteStore, harness: StoreHarness, count: int
) -> None:
    holdings = await running(harness, count)
    await harness.write(*(sleep(holding, "nap", s=60) for holding in holdings))
    await harness.write(*(park(holding, "nap") for holding in holdings))
    harness.clock.advance(s=61)
    counts = Counts(store)
    await harness.fire()
    assert counts.transactions == 1
    assert counts.statements <= 8
    counts = Counts(store)
    claimed = await harness.claim(limit=count)
    assert [[step.step_id for step in one.history.steps] for one in claimed] == [["nap"]] * count
    assert counts.transactions == 1
    assert counts.statements <= 10
