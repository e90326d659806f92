"""Lists go by an index and do little more than they show, however many runs there are."""

import sqlite3
from collections.abc import Iterator

import pytest

from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import RunFilter
from kagzi.core.states import RunStatus
from kagzi.store.sql_files import load_migrations
from kagzi.store.sqlite.connection.connection import Database
from kagzi.store.sqlite.run.runs import list_runs
from kagzi.store.sqlite.statements import PACKAGE

RUNS = 200_000
NOW = 1_767_323_045_000_000
PAGE = 50

# Of ten one sleeps, the rest has completed, but for a few: pending, running, failed, cancelled, paused with a problem.
FILL = [
    f"""
    INSERT INTO runs (run_id, namespace, workflow_id, workflow_type, request_id, version, created_at, status,
        ready_at, worker_id,
        lease_until, wait_reason, due_at, finished_at, error, problem, schedule_id, concurrency_key, labels)
    SELECT printf('%08x-0000-7000-8000-000000000000', i), 'default', 'id-' || i,
        iif(i % 1000 = 7, 'rare', 'type-' || i % 3), 'request-' || i, iif(i % 2000 = 9, '2', '1'), {NOW} + i, status,
        iif(status = 1, {NOW}, NULL), iif(status = 2, 'worker', NULL), iif(status = 2, {NOW}, NULL),
        iif(status = 3, 1, NULL), iif(status = 3, {NOW}, NULL), iif(status IN (4, 5, 6), {NOW} + i, NULL),
        iif(status IN (5, 6), '{{}}', NULL), iif(status = 7, '{{}}', NULL), iif(i % 100 = 3, 'nightly', NULL),
        iif(i % 100 = 4, 'tenant-' || i % 7, NULL), json_object('team', iif(i % 1000 = 0, 'x', 'y'))
    FROM (
        WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {RUNS})
        SELECT i, CASE WHEN i % 10 = 0 THEN 3 WHEN i % 4000 = 1 THEN 1 WHEN i % 4000 = 2 THEN 2 WHEN i % 4000 = 5 THEN 5
            WHEN i % 4000 = 6 THEN 6 WHEN i % 4000 = 7 THEN 7 ELSE 4 END AS status FROM numbers)
    """,
    "INSERT INTO run_labels SELECT namespace, 'team', labels ->> 'team', created_at, run_id FROM runs",
]

FILTERS = {
    "all": RunFilter(),
    **{str(status): RunFilter(statuses=(status,)) for status in RunStatus},
    "open": RunFilter(statuses=(RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SLEEPING, RunStatus.PAUSED)),
    "type": RunFilter(workflow_types=("type-1",)),
    "types": RunFilter(workflow_types=("type-1", "rare")),
    "rare type, completed": RunFilter(workflow_types=("rare",), statuses=(RunStatus.COMPLETED,)),
    "type, failed": RunFilter(workflow_types=("type-1",), statuses=(RunStatus.FAILED,)),
    "version": RunFilter(version="1"),
    "rare version": RunFilter(version="2"),
    "rare version of a type": RunFilter(workflow_types=("type-1",), version="2"),
    "version of a rare type": RunFilter(workflow_types=("rare",), version="1"),
    "rare version, completed": RunFilter(version="2", statuses=(RunStatus.COMPLETED,)),
    "label": RunFilter(labels={"team": "y"}),
    "rare label": RunFilter(labels={"team": "x"}),
    "label, failed": RunFilter(labels={"team": "y"}, statuses=(RunStatus.FAILED,)),
    "schedule": RunFilter(schedule_id="nightly"),
    "key": RunFilter(concurrency_key="tenant-4"),
    "problem": RunFilter(has_problem=True),
    "no problem": RunFilter(has_problem=False),
    "since": RunFilter(created_after=NOW + 150_000),
    "until": RunFilter(created_before=NOW + 50_000),
    "workflow id": RunFilter(workflow_id="id-77"),
}

INSTRUCTIONS = 1_000
AT_MOST = 60  # thousand instructions of SQLite's machine; to read all runs takes thousands of thousands


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for migration in load_migrations(PACKAGE):
        connection.executescript(migration.sql)
    for statement in FILL:
        connection.execute(statement)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", FILTERS)
def test_lists_do_little_more_than_they_show(connection: sqlite3.Connection, name: str) -> None:
    worked = 0

    def note() -> int:
        nonlocal worked
        worked += 1
        return 0

    connection.set_progress_handler(note, INSTRUCTIONS)
    middle = Cursor(NOW + 90_000, "00000000-0000-7000-8000-000000000000")
    for cursor in (None, middle, Cursor(middle.at, middle.id, "prev")):
        worked = 0
        list_runs(Database(connection), "default", FILTERS[name], cursor, PAGE)
        assert worked <= AT_MOST, cursor
