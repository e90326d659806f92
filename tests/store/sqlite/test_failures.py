"""What is an outage, what is contention and what is a fault; and that a row that fails costs its own run only."""

import sqlite3

import pytest

from kagzi.core.errors import Contended, KagziError, StatementFailed, Unavailable
from kagzi.core.run.outcomes import Begun, Failed, Recorded, Started
from kagzi.store.sqlite import SqliteStore
from kagzi.store.sqlite.connection.failures import Failure, driver_error, failure_of, failure_of_code
from tests.store.conformance.verbs import StoreHarness, begin, complete

LOST, CONTENDED, FAULT = Failure.LOST, Failure.CONTENDED, Failure.FAULT

RULES = {
    "SQLITE_ERROR": FAULT,
    "SQLITE_INTERNAL": LOST,
    "SQLITE_PERM": LOST,
    "SQLITE_BUSY": CONTENDED,
    "SQLITE_BUSY_SNAPSHOT": CONTENDED,
    "SQLITE_LOCKED": CONTENDED,
    "SQLITE_NOMEM": LOST,
    "SQLITE_READONLY": LOST,
    "SQLITE_READONLY_DBMOVED": LOST,
    "SQLITE_INTERRUPT": LOST,
    "SQLITE_IOERR": LOST,
    "SQLITE_IOERR_FSYNC": LOST,
    "SQLITE_CORRUPT": LOST,
    "SQLITE_FULL": LOST,
    "SQLITE_CANTOPEN": LOST,
    "SQLITE_PROTOCOL": LOST,
    "SQLITE_NOTADB": LOST,
    "SQLITE_CONSTRAINT": FAULT,
    "SQLITE_CONSTRAINT_TRIGGER": FAULT,
    "SQLITE_MISMATCH": FAULT,
    "SQLITE_MISUSE": FAULT,
    "SQLITE_RANGE": FAULT,
    "SQLITE_TOOBIG": FAULT,
}
RAISED = {LOST: Unavailable, CONTENDED: Contended, FAULT: StatementFailed}


@pytest.mark.parametrize(("name", "expected"), RULES.items())
def test_a_result_code_is_what_the_rule_says(name: str, expected: Failure) -> None:
    assert failure_of_code(getattr(sqlite3, name)) is expected
    error = sqlite3.OperationalError("words")
    error.sqlite_errorcode, error.sqlite_errorname = getattr(sqlite3, name), name
    translated: KagziError = driver_error(error)
    assert type(translated) is RAISED[expected]
    assert name in translated.message


def test_an_error_without_a_code_is_judged_by_its_class() -> None:
    assert failure_of(sqlite3.OperationalError("disk I/O error")) is LOST
    assert failure_of(sqlite3.ProgrammingError("Cannot operate on a closed database.")) is FAULT


async def test_a_row_that_fails_costs_its_own_run_only(store: SqliteStore, harness: StoreHarness) -> None:
    first, bad, last = [await harness.running() for _ in range(3)]
    assert store._writer is not None
    execute = store._writer.database.execute
    await store._writing.call(
        execute,
        "CREATE TRIGGER fail_step BEFORE INSERT ON steps WHEN NEW.step_id = 'bad' BEGIN SELECT RAISE(ABORT, "
        "'inside'); END",
    )
    outcomes = await harness.write(
        begin(first, "a"),
        begin(bad, "fine"),
        begin(bad, "bad"),
        complete(bad, "bad"),
        begin(bad, "after"),
        begin(last, "a"),
        complete(last, "a"),
        harness.start_command("neighbour"),
    )
    assert [type(outcome) for outcome in outcomes] == [Begun, Begun, Failed, Failed, Failed, Begun, Recorded, Started]
    await store._writing.call(execute, "DROP TRIGGER fail_step")
    again = await harness.write(begin(bad, "bad"), complete(bad, "bad"), begin(bad, "after"))
    assert [type(outcome) for outcome in again] == [Begun, Recorded, Begun]


async def test_a_read_only_file_is_an_outage_and_passes(store: SqliteStore, harness: StoreHarness) -> None:
    holding = await harness.running()
    assert store._writer is not None
    execute = store._writer.database.execute
    await store._writing.call(execute, "PRAGMA query_only = ON")
    with pytest.raises(Unavailable, match="readonly"):
        await harness.write(begin(holding, "a"))
    with pytest.raises(Unavailable, match="readonly"):
        await harness.cancel(holding.run)
    await store._writing.call(execute, "PRAGMA query_only = OFF")
    assert [type(outcome) for outcome in await harness.write(begin(holding, "a"))] == [Begun]


async def test_a_statement_that_is_refused_is_no_outage(store: SqliteStore, harness: StoreHarness) -> None:
    holding = await harness.running()
    assert store._writer is not None
    execute = store._writer.database.execute
    await store._writing.call(execute, "ALTER TABLE signals RENAME TO hidden")
    with pytest.raises(StatementFailed, match="SQLITE_ERROR"):
        await store.signal_run("default", run_id=holding.run.run_id, signal=harness.signal_request(), now=harness.now)
    await store._writing.call(execute, "ALTER TABLE hidden RENAME TO signals")
    await store.signal_run("default", run_id=holding.run.run_id, signal=harness.signal_request(), now=harness.now)
