"""Every statement can be prepared, says why it is there, and the hot ones read no table from end to end."""

import re
import sqlite3
from collections.abc import Iterator

import pytest

from kagzi.store.sql_files import load_migrations, load_statements
from kagzi.store.sqlite.statements import ENDED_SOURCES, PACKAGE, SQL, SQL_MANY

TEXTS = {**SQL, **{f"{name}_{rows}": text for name, texts in SQL_MANY.items() for rows, text in texts}}

# Read by people, in pages or by name: these may look at what they filter.
UNHURRIED = {"get_namespace", "list_older_workers", "list_newer_workers", "note_heartbeats"}
# Done once an hour, over a table with a few rows for each API key.
UNHURRIED |= {"forget_secrets"}


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    for migration in load_migrations(PACKAGE):
        connection.executescript(migration.sql)
    yield connection
    connection.close()


def parameters(text: str) -> list[None] | dict[str, None]:
    named = set(re.findall(r":([a-z_][a-z0-9_]*)", text))
    return dict.fromkeys(named) if named else [None] * text.count("?")


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_every_statement_prepares(database: sqlite3.Connection, name: str) -> None:
    database.execute(f"EXPLAIN {TEXTS[name]}", parameters(TEXTS[name]))


@pytest.mark.parametrize("name", sorted(set(TEXTS) - UNHURRIED))
def test_no_statement_reads_a_whole_table(database: sqlite3.Connection, name: str) -> None:
    rows = database.execute(f"EXPLAIN QUERY PLAN {TEXTS[name]}", parameters(TEXTS[name])).fetchall()
    plan = [row[3] for row in rows]
    tables = r"(runs|steps|run_labels|step_attempts|signals|child_links|workers|r|s|l|i|c|o|a|had)"
    scans = [line for line in plan if re.match(rf"SCAN {tables}\b", line) and not reads_one_end(name, line)]
    assert not scans, plan


def reads_one_end(name: str, line: str) -> bool:
    """The first entries of an index, or one that holds only what is asked for: SQLite calls that a scan."""
    if line == "SCAN runs USING INDEX runs_cascade":
        return name in ("poll", "cascades")
    if line == "SCAN workers USING INDEX workers_present":
        return name in ("expire_workers", "worker_gauges")
    return name in ("poll", "pending_types") and line == "SCAN runs USING INDEX runs_pending"


# Indexes that hold few of the runs of a namespace, or in which no more is read than a limit says.
OF_A_NAMESPACE = {
    *("runs_failing", "runs_waiting", "runs_by_problem", "runs_active"),
    *("runs_by_created", "runs_by_type_version"),  # the first entry
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_no_statement_reads_all_runs_of_a_namespace(database: sqlite3.Connection, name: str) -> None:
    """The planner calls that a search."""
    rows = database.execute(f"EXPLAIN QUERY PLAN {TEXTS[name]}", parameters(TEXTS[name])).fetchall()
    searched = [re.search(r"INDEX (runs\w*) \(namespace=\?\)$", row[3]) for row in rows]
    assert {match[1] for match in searched if match is not None} <= OF_A_NAMESPACE, rows


@pytest.mark.parametrize(
    "name",
    [
        "insert_steps_64",
        "complete_steps_64",
        "advance_runs",
        "complete_runs",
        "advance_run",
        "complete_run",
    ],
)
def test_the_hottest_statements_need_no_index_made_on_the_fly(database: sqlite3.Connection, name: str) -> None:
    plan = database.execute(f"EXPLAIN QUERY PLAN {TEXTS[name]}", parameters(TEXTS[name])).fetchall()
    assert not [row for row in plan if "AUTOMATIC" in row[3]], plan


@pytest.mark.parametrize("name", ["next_signal", "waiting_step", "history_after", "cascades"])
def test_what_is_taken_in_order_lies_in_order(database: sqlite3.Connection, name: str) -> None:
    plan = database.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", parameters(SQL[name])).fetchall()
    assert not [row for row in plan if "TEMP B-TREE" in row[3]], plan


# By end, what few runs have in common is sorted: of these the index has another order.
SORTED = {
    f"{verb}_ended_runs_by_{source}" for verb in ("older", "newer") for source in ENDED_SOURCES if source != "end"
} | {
    *("older_runs_by_run_ids", "newer_runs_by_run_ids"),  # of those that are named, a thousand at most
}


@pytest.mark.parametrize(
    "name", [name for name in sorted({*SQL} - SORTED) if "_runs_by_" in name and "count" not in name]
)
def test_lists_come_in_order_from_their_index(database: sqlite3.Connection, name: str) -> None:
    plan = database.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", parameters(SQL[name])).fetchall()
    assert not [row for row in plan if "TEMP B-TREE FOR ORDER BY" in row[3]], plan


def test_every_statement_says_why_it_is_there() -> None:
    silent = [name for name, text in load_statements(PACKAGE).items() if not re.match(r"-- \w", text)]
    assert silent == []
