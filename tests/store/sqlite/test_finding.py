"""Lists go by an index and do little more than they show, however many runs there are."""

import sqlite3
from collections.abc import Iterator

import pytest

from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import RunFilter, RunOrder
from kagzi.core.states import RunStatus
from kagzi.store.sql_files import load_migrations
from kagzi.store.sqlite.connection.connection import Database
from kagzi.store.sqlite.run.runs import count_runs, list_runs
from kagzi.store.sqlite.statements import PACKAGE

pytestmark = pytest.mark.xdist_group("finding-sqlite")  # they share a large database, made once

RUNS = 200_000
NOW = 1_767_323_045_000_000
PAGE = 50

# Of ten one sleeps, the rest has completed, but for a few: pending, running, failed, cancelled, paused with a problem.
# Pending ones have no version yet; one type has had forty, and another version is that of eighty types.
FILL = [
    f"""
    INSERT INTO runs (run_id, namespace, workflow_id, workflow_type, request_id, version, created_at, status,
        ready_at, worker_id,
        lease_until, wait_reason, due_at, finished_at, error, problem, schedule_id, concurrency_key, labels,
        awaits_signal, retrying_steps)
    SELECT printf('%08x-0000-7000-8000-000000000000', i), 'default', 'id-' || i,
        CASE WHEN i % 1000 = 7 THEN 'rare' WHEN i % 50 = 13 THEN 'often deployed'
            WHEN i % 50 = 14 THEN 'one of many-' || (i / 50 % 80) WHEN i % 10 = 8 THEN 'sleepless'
            ELSE 'type-' || (i % 3) END,
        'request-' || i,
        CASE WHEN i % 2000 = 9 THEN '2' WHEN i % 50 = 13 THEN 'v' || (i / 50 % 40) WHEN i % 50 = 14 THEN 'many'
            WHEN status <> 1 THEN '1' END,
        {NOW} + i, status,
        iif(status = 1, {NOW}, NULL), iif(status = 2, 'worker', NULL), iif(status = 2, {NOW}, NULL),
        iif(status = 3, 1, NULL), iif(status = 3, {NOW}, NULL), iif(status IN (4, 5, 6), {NOW} + i, NULL),
        iif(status IN (5, 6), '{{}}', NULL), iif(status = 7, '{{}}', NULL), iif(i % 100 = 3, 'nightly', NULL),
        iif(i % 100 = 4, 'tenant-' || (i % 7), NULL), json_object('team', iif(i % 1000 = 0, 'x', 'y')),
        iif(i % 500 = 0, 1, 0), iif(i % 1000 = 10 OR status = 2, 1, 0)
    FROM (
        WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {RUNS})
        SELECT i, CASE WHEN i % 10 = 0 THEN 3 WHEN i % 4000 = 1 THEN 1 WHEN i % 4000 = 2 THEN 2 WHEN i % 4000 = 5 THEN 5
            WHEN i % 4000 = 6 THEN 6 WHEN i % 4000 = 7 THEN 7 ELSE 4 END AS status FROM numbers)
    """,
    "INSERT INTO run_labels SELECT namespace, 'team', labels ->> 'team', created_at, run_id FROM runs",
]

OPEN = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SLEEPING, RunStatus.PAUSED)
NAMED = RunFilter(run_ids=tuple(f"{n:08x}-0000-7000-8000-000000000000" for n in range(0, 100_000, 1_000)))

FILTERS = {
    "all": RunFilter(),
    **{str(status): RunFilter(statuses=(status,)) for status in RunStatus},
    "open": RunFilter(statuses=OPEN),
    "type": RunFilter(workflow_types=("type-1",)),
    "types": RunFilter(workflow_types=("type-1", "rare")),
    "rare type, completed": RunFilter(workflow_types=("rare",), statuses=(RunStatus.COMPLETED,)),
    "type, failed": RunFilter(workflow_types=("type-1",), statuses=(RunStatus.FAILED,)),
    "type, asleep": RunFilter(workflow_types=("type-1",), statuses=(RunStatus.SLEEPING,)),
    "type that never sleeps, asleep": RunFilter(workflow_types=("sleepless",), statuses=(RunStatus.SLEEPING,)),
    "type that never sleeps, open": RunFilter(workflow_types=("sleepless",), statuses=OPEN),
    "types, open": RunFilter(workflow_types=("sleepless", "rare"), statuses=OPEN),
    "version of a type that never sleeps, open": RunFilter(workflow_types=("sleepless",), statuses=OPEN, version="1"),
    "version": RunFilter(version="1"),
    "rare version": RunFilter(version="2"),
    "no such version": RunFilter(version="never"),
    "version of many types": RunFilter(version="many"),
    "version of one of many versions": RunFilter(version="v3"),
    "type of many versions": RunFilter(workflow_types=("often deployed",)),
    "types of many versions": RunFilter(workflow_types=("often deployed", "rare", "one of many-7")),
    "no such type": RunFilter(workflow_types=("never",)),
    "version, completed or asleep": RunFilter(version="v3", statuses=(RunStatus.COMPLETED, RunStatus.SLEEPING)),
    "rare version of a type": RunFilter(workflow_types=("type-1",), version="2"),
    "version of a rare type": RunFilter(workflow_types=("rare",), version="1"),
    "rare version, completed": RunFilter(version="2", statuses=(RunStatus.COMPLETED,)),
    "label": RunFilter(labels={"team": "y"}),
    "rare label": RunFilter(labels={"team": "x"}),
    "label, failed": RunFilter(labels={"team": "y"}, statuses=(RunStatus.FAILED,)),
    "schedule": RunFilter(schedule_id="nightly"),
    "key": RunFilter(concurrency_key="tenant-4"),
    "worker": RunFilter(worker_id="worker"),
    "worker, completed": RunFilter(worker_id="worker", statuses=(RunStatus.COMPLETED,)),
    "worker, label": RunFilter(worker_id="worker", labels={"team": "y"}),
    "nobody": RunFilter(worker_id="nobody"),
    "problem": RunFilter(has_problem=True),
    "no problem": RunFilter(has_problem=False),
    "since": RunFilter(created_after=NOW + 150_000),
    "until": RunFilter(created_before=NOW + 50_000),
    "workflow id": RunFilter(workflow_id="id-77"),
    "named": NAMED,
    "failing": RunFilter(failing=True),
    "not failing": RunFilter(failing=False),
    "failing, type": RunFilter(failing=True, workflow_types=("type-1",)),
    "waiting": RunFilter(waiting=True),
    "not waiting": RunFilter(waiting=False),
    "waiting, asleep": RunFilter(waiting=True, statuses=(RunStatus.SLEEPING,)),
}

ENDED_FILTERS = {
    "all": RunFilter(),
    **{str(status): RunFilter(statuses=(status,)) for status in RunStatus},
    "trouble": RunFilter(statuses=(RunStatus.FAILED, RunStatus.CANCELLED)),
    "failed since": RunFilter(statuses=(RunStatus.FAILED,), ended_after=NOW + 150_000),
    "since": RunFilter(ended_after=NOW + 150_000),
    "until": RunFilter(ended_before=NOW + 50_000),
    "span": RunFilter(ended_after=NOW + 89_000, ended_before=NOW + 91_000),
    "failed, type": RunFilter(statuses=(RunStatus.FAILED,), workflow_types=("type-1",)),
    "type": RunFilter(workflow_types=("type-1",)),
    "workflow id": RunFilter(workflow_id="id-77"),
    "named": NAMED,
    "worker": RunFilter(worker_id="worker"),
    "worker, since": RunFilter(worker_id="worker", ended_after=NOW),
    "problem": RunFilter(has_problem=True),
    "failing": RunFilter(failing=True),
}

SEARCHES = {
    "one workflow id": RunFilter(id_prefix="id-77777"),
    "some workflow ids": RunFilter(id_prefix="id-777"),
    "all workflow ids": RunFilter(id_prefix="id-"),
    "failed among all": RunFilter(id_prefix="id-", statuses=(RunStatus.FAILED,)),
    "one run id": RunFilter(id_prefix="00012fd1-"),
    "all run ids": RunFilter(id_prefix="0"),
    "failed among all run ids": RunFilter(id_prefix="0", statuses=(RunStatus.FAILED,)),
    "nothing": RunFilter(id_prefix="zzz"),
}

INSTRUCTIONS = 1_000
SEARCH_AT_MOST = 3_000
COUNT_AT_MOST = 120
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


class Work:
    """Thousands of instructions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.done = 0
        connection.set_progress_handler(self._note, INSTRUCTIONS)

    def _note(self) -> int:
        self.done += 1
        return 0


@pytest.mark.parametrize("name", FILTERS)
def test_lists_do_little_more_than_they_show(connection: sqlite3.Connection, name: str) -> None:
    check_pages(connection, FILTERS[name], "created")


@pytest.mark.parametrize("name", ENDED_FILTERS)
def test_lists_by_end_do_little_more_than_they_show(connection: sqlite3.Connection, name: str) -> None:
    check_pages(connection, ENDED_FILTERS[name], "ended")


def check_pages(connection: sqlite3.Connection, where: RunFilter, order: RunOrder) -> None:
    middle = Cursor(NOW + 90_000, "00000000-0000-7000-8000-000000000000")
    for cursor in (None, middle, Cursor(middle.at, middle.id, "prev")):
        work = Work(connection)
        list_runs(Database(connection), "default", where, cursor, PAGE, order=order)
        assert work.done <= AT_MOST, cursor


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_look_at_few_ids(connection: sqlite3.Connection, name: str) -> None:
    """Of what else is asked for nothing is known before: then so many ids are looked at, and no more."""
    where = SEARCHES[name]
    work = Work(connection)
    rows = list_runs(Database(connection), "default", where, None, PAGE).rows
    assert len(rows) <= PAGE
    assert work.done <= (SEARCH_AT_MOST if where.statuses else AT_MOST)


@pytest.mark.parametrize("name", [name for name, where in FILTERS.items() if where.reads_sleeping_by_type])
def test_counts_of_open_runs_of_types_read_no_others(connection: sqlite3.Connection, name: str) -> None:
    work = Work(connection)
    count_runs(Database(connection), "default", FILTERS[name], 1_000)
    assert work.done <= COUNT_AT_MOST


@pytest.mark.parametrize("name", ENDED_FILTERS)
def test_counts_by_end_do_little_more_than_they_count(connection: sqlite3.Connection, name: str) -> None:
    if ENDED_FILTERS[name].by_end:
        work = Work(connection)
        count_runs(Database(connection), "default", ENDED_FILTERS[name], 1_000)
        assert work.done <= COUNT_AT_MOST
