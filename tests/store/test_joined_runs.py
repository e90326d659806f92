"""Namespaces see nothing of each other, so no statement brings rows of two runs together without comparing their
namespaces.

Every named statement of both stores is read (joined_runs.py says how); what is left is in EXEMPT, with its reason.
"""

import ast
import re
import sqlite3
from pathlib import Path

import pytest

from kagzi import store
from kagzi.store.postgres.statements import STATEMENTS
from kagzi.store.sqlite.statements import SQL, SQL_MANY
from tests.store.joined_runs import crossings
from tests.store.sql_reader import COLUMNS, OTHER_RUN, RUN_COLUMNS, TABLES

ALL: dict[str, dict[str, str]] = {
    "sqlite": {**SQL, **{name: texts[-1][1] for name, texts in SQL_MANY.items()}},
    "postgres": dict(STATEMENTS),
}

_COPY = "copies a run of the caller's into one that the caller has just made in the same namespace"
_STEP_OF_ERROR = "answers which of the run's own steps named that run; nothing of the other one is read"
_HANDED_ON = "moves what a run of the caller's has not read to the run that takes its place, in the same namespace"
_BY_CTID = "reads the rows of one namespace, and deletes the very same rows by their places"
EXEMPT = {
    ("sqlite", "copy_context"): _COPY,
    ("sqlite", "copy_state"): _COPY,
    ("sqlite", "fork_steps"): _COPY,
    ("sqlite", "fork_attempts"): _COPY,
    ("sqlite", "step_of_error"): _STEP_OF_ERROR,
    ("postgres", "copy_results"): _COPY,
    ("postgres", "step_of_error"): _STEP_OF_ERROR,
    ("postgres", "hand_on_signals"): _HANDED_ON,
    ("postgres", "start_next_run"): _HANDED_ON,
    ("postgres", "remove_schedule_fires"): _BY_CTID,
    ("postgres", "remove_workflow_versions"): _BY_CTID,
    ("postgres", "remove_child_links"): _BY_CTID,
}

# What the parser does not know: a join after a function in UPDATE ... FROM, and ON CONFLICT after a LATERAL.
_FUNCTION_FIRST = re.compile(r"FROM (unnest\([^;]*?\)\s+AS \w+ \([^)]*\))\s+JOIN (\w+ AS \w+) ON (\w+\.n = \w+\.n)")
_CONFLICT_AFTER_LATERAL = re.compile(r"(\) AS m)\s+ON CONFLICT")


def readable(sql: str) -> str:
    sql = _CONFLICT_AFTER_LATERAL.sub(r"\1 WHERE true ON CONFLICT", sql)
    before, marker, after = sql.partition("completed AS (") if "completed AS (" in sql else sql.partition("bound AS (")
    return before + marker + _FUNCTION_FIRST.sub(r"FROM \2 JOIN \1 ON \3", after, count=1)


def test_every_statement_compares_namespaces_where_runs_meet() -> None:
    crossings_by_statement = {
        (dialect, name): meetings
        for dialect, statements in ALL.items()
        for name, sql in statements.items()
        if (meetings := crossings(readable(sql), dialect))
    }
    wrong = [
        f"{store} {name}: {sorted(map(str, crossings_by_statement[store, name]))}"
        for store, name in crossings_by_statement.keys() - EXEMPT.keys()
    ]
    assert not wrong, "rows of two runs meet, and their namespaces are not compared:\n" + "\n".join(sorted(wrong))
    assert not EXEMPT.keys() - crossings_by_statement.keys(), "these need no exemption any more"


def test_enough_is_read() -> None:
    """Of both stores, and of what they do with relatives. If that were gone, the rule would hold for nothing."""
    for dialect, statements in ALL.items():
        relatives = [sql for sql in statements.values() if any(column in sql for column in OTHER_RUN)]
        assert len(statements) > 200, dialect
        assert len(relatives) > 20, dialect


def test_every_table_with_runs_in_it_is_known() -> None:
    database = sqlite3.connect(":memory:")
    for script in sorted((Path(store.__file__).parent / "sqlite" / "migrations").glob("*.sql")):
        database.executescript(script.read_text())
    columns_by_table: dict[str, set[str]] = {}
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        names = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        assert all(name in RUN_COLUMNS for name in names if name.endswith("run_id")), f"{table} names runs in a new way"
        if names.intersection(RUN_COLUMNS):
            columns_by_table[table] = names.intersection(COLUMNS)
    assert columns_by_table == {name: set(table.columns) for name, table in TABLES.items()}


def test_there_is_no_other_sql_about_runs() -> None:
    about_runs = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE) ({'|'.join(TABLES)})\b")
    for path in Path(store.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert about_runs.search(node.value) is None, (
                    f"{path.name}:{node.lineno}: put it into a named statement"
                )


BAD = {
    "a child's row": "SELECT c.status FROM steps AS s JOIN runs AS c ON c.run_id = s.child_run_id WHERE s.run_id = $1",
    "a child's output": (
        "SELECT o.output FROM steps AS s JOIN steps AS o ON o.run_id = s.child_run_id WHERE s.run_id = $1 "
        "AND o.step_id = $2"
    ),
    "a parent, by two names": (
        "SELECT p.status FROM runs AS c, runs AS p WHERE p.run_id = c.parent_run_id AND c.run_id = $1"
    ),
    "only one is in the namespace": (
        "SELECT p.status FROM runs AS c JOIN runs AS p ON p.run_id = c.parent_run_id WHERE c.run_id = $1 AND "
        "c.namespace = $2"
    ),
    "each in one of several": (
        "SELECT p.status FROM runs AS c JOIN runs AS p ON p.run_id = c.parent_run_id "
        "WHERE c.namespace = ANY ($1) AND p.namespace = ANY ($1)"
    ),
    "compared, or not": (
        "SELECT p.status FROM runs AS c JOIN runs AS p ON p.run_id = c.parent_run_id AND (p.namespace = "
        "c.namespace OR $1)"
    ),
    "watched by id": (
        "UPDATE runs SET watched = true WHERE run_id IN (SELECT child_run_id FROM steps WHERE run_id = $1 AND kind = 4)"
    ),
    "who is blocked": "UPDATE runs SET blocked_by = NULL WHERE blocked_by = $1",
    "links by id": "SELECT parent_run_id FROM child_links WHERE child_run_id = $1",
    "a copy into another run": (
        "UPDATE steps SET output = (SELECT o.output FROM steps AS o WHERE o.run_id = $1 AND o.step_id = '$output') "
        "WHERE run_id = $2 AND step_id = $3"
    ),
    "through a CTE": (
        "WITH kids AS (SELECT child_run_id AS kid FROM steps WHERE run_id = $1) "
        "UPDATE runs AS r SET watched = true FROM kids WHERE r.run_id = kids.kid"
    ),
    "one branch of a union": (
        "WITH w AS (SELECT r.parent_run_id AS parent, r.namespace AS home FROM runs AS r WHERE r.run_id = $1 "
        "UNION SELECT l.parent_run_id, l.namespace FROM child_links AS l WHERE l.child_run_id = $1) "
        "SELECT p.status FROM w JOIN runs AS p ON p.run_id = w.parent AND p.namespace = w.home"
    ),
    "there is none": (
        "SELECT 1 FROM steps AS s WHERE s.run_id = $1 AND NOT EXISTS (SELECT 1 FROM runs AS c WHERE c.run_id "
        "= s.child_run_id)"
    ),
    "signals of another": (
        "SELECT g.payload FROM signals AS g JOIN runs AS r ON g.run_id = r.forked_from WHERE r.run_id = $1"
    ),
    "rows of the caller": (
        "SELECT p.run_id FROM unnest($1::uuid[]) AS g (run_id) JOIN runs AS c ON c.run_id = g.run_id "
        "JOIN runs AS p ON p.run_id = c.parent_run_id"
    ),
}

GOOD = {
    "compared": (
        "SELECT p.status FROM runs AS c JOIN runs AS p ON p.run_id = c.parent_run_id AND p.namespace = c.namespace"
    ),
    "both in the caller's": (
        "SELECT p.status FROM runs AS c JOIN runs AS p ON p.run_id = c.parent_run_id WHERE c.namespace = $1 "
        "AND p.namespace = $1"
    ),
    "a run and its steps": "SELECT s.output FROM runs AS r JOIN steps AS s ON s.run_id = r.run_id WHERE r.run_id = $1",
    "one's own steps by the same id": (
        "SELECT s.output FROM steps AS s WHERE s.run_id = $1 AND EXISTS (SELECT 1 FROM signals AS g WHERE "
        "g.run_id = $1)"
    ),
    "children of the caller's run": (
        "SELECT c.status FROM steps AS s JOIN runs AS c ON c.run_id = s.child_run_id AND c.namespace = $2 "
        "WHERE s.run_id = $1"
    ),
    "who is blocked": "UPDATE runs SET blocked_by = NULL WHERE blocked_by = $1 AND namespace = $2",
    "counted apart": (
        "SELECT (SELECT count(*) FROM runs WHERE status = 1), (SELECT count(*) FROM runs WHERE status = 2)"
    ),
}


@pytest.mark.parametrize("sql", BAD.values(), ids=BAD.keys())
def test_what_compares_none_is_noticed(sql: str) -> None:
    assert crossings(sql, "postgres")


@pytest.mark.parametrize("sql", GOOD.values(), ids=GOOD.keys())
def test_what_compares_them_is_not(sql: str) -> None:
    assert not crossings(sql, "postgres")


RELATIVES = {
    "sqlite": (
        "links_of unlink unblock_runs waiting_parent give_child_result children_to_cancel delete_links_from "
        "lost_children "
        "ended_children disown_children waiting_steps_of follow_child move_links move_blocked watch_children"
    ),
    "postgres": (
        "children_to_cancel lock_family lock_parents find_children notify_parents continue_run delete_runs "
        "forget_steps "
        "ended_children watch_children"
    ),
}
_COMPARISON = re.compile(r"(\b\w+\.|\+)?\bnamespace (=|IS NOT DISTINCT FROM) (\S+?::text|[\w.:$?]+)")


@pytest.mark.parametrize("dialect", ALL)
def test_each_of_todays_comparisons_is_needed(dialect: str) -> None:
    """Without any one of them the statement is noticed."""
    missed: list[str] = []
    for name in RELATIVES[dialect].split():
        sql = ALL[dialect][name]
        comparisons = list(_COMPARISON.finditer(sql))
        assert comparisons, name
        without = {
            comparison: sql[: comparison.start()] + "true" + sql[comparison.end() :] for comparison in comparisons
        }
        missed += [
            f"{name}: {comparison[0]}" for comparison, bare in without.items() if not crossings(readable(bare), dialect)
        ]
    assert missed == NOT_NEEDED[dialect]


NOT_NEEDED: dict[str, list[str]] = {
    "sqlite": [],
    "postgres": [
        "find_children: n.namespace = g.namespace",  # no run is in these tables
        "find_children: t.namespace = g.namespace",
        "notify_parents: l.namespace = r.namespace",  # the parent itself is compared, too
        "continue_run: p.namespace IS NOT DISTINCT FROM w.namespace",  # compared before, where watchers are found
        "delete_runs: l.namespace = $5::text",  # labels: by their whole key
        "delete_runs: l.namespace = $5",  # links that belong to the very runs that go
    ],
}
