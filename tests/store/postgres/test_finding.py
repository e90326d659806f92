"""Lists go by an index and read little more than they show, however many runs there are."""

import json
from typing import Any

import asyncpg
import pytest

from kagzi.core.limits import SEARCHED_IDS
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import RunFilter
from kagzi.core.states import RunStatus
from kagzi.store.postgres.connection.connection import QUERY_SETTINGS, Session
from kagzi.store.postgres.run.runs import count_runs, list_runs
from kagzi.store.postgres.statements import PARAMETERS, STATEMENTS
from tests.store.postgres.verbs import flatten

from .verbs import NOW

pytestmark = pytest.mark.xdist_group("finding-postgres")  # they share a large database, made once

RUNS = 200_000
FRESH_RUNS = 3_000
PAGE = 50

FILL = [
    "INSERT INTO namespaces (namespace, created_at) VALUES ('default', 0)",
    # Of ten one sleeps, the rest has completed, but for a few: pending, running, failed, cancelled, paused with a
    # problem. Pending ones have no version yet; one type has had forty.
    f"""
    INSERT INTO runs (run_id, namespace, workflow_id, workflow_type, request_id, version, created_at, status, ready_at,
        lease, nonce, worker_id, lease_until, wait_reason, due_at, finished_at, error, problem, schedule_id,
        concurrency_key, labels, awaits_signal, retrying_steps)
    SELECT gen_random_uuid(), 'default', 'id-' || i,
        CASE WHEN i % 1000 = 7 THEN 'rare' WHEN i % 50 = 13 THEN 'often deployed' WHEN i % 10 = 8 THEN 'sleepless'
            ELSE 'type-' || i % 3 END,
        'request-' || i,
        CASE WHEN i % 2000 = 9 THEN '2' WHEN i % 50 = 13 THEN 'v' || i / 50 % 40 WHEN s.status <> 1 THEN '1' END,
        {NOW} + i, s.status,
        CASE WHEN s.status = 1 THEN {NOW} END, 1, 1, 'worker', CASE WHEN s.status = 2 THEN {NOW} END,
        CASE WHEN s.status = 3 THEN 1 END, CASE WHEN s.status = 3 THEN {NOW} END,
        CASE WHEN s.status IN (4, 5, 6) THEN {NOW} + i END, CASE WHEN s.status IN (5, 6) THEN '{{}}'::json END,
        CASE WHEN s.status = 7 THEN '{{}}'::json END, CASE WHEN i % 100 = 3 THEN 'nightly' END,
        CASE WHEN i % 100 = 4 THEN 'tenant-' || i % 7 END,
        json_build_object('team', CASE WHEN i % 1000 = 0 THEN 'x' ELSE 'y' END,
            'env', CASE WHEN i < 100000 THEN 'prod' ELSE 'test' END),
        CASE WHEN i % 500 = 0 THEN 1 ELSE 0 END, CASE WHEN i % 1000 = 10 OR s.status = 2 THEN 1 ELSE 0 END
    FROM generate_series(1, {RUNS}) AS i
    CROSS JOIN LATERAL (SELECT CASE WHEN i % 10 = 0 THEN 3 WHEN i % 4000 = 1 THEN 1 WHEN i % 4000 = 2 THEN 2
        WHEN i % 4000 = 5 THEN 5 WHEN i % 4000 = 6 THEN 6 WHEN i % 4000 = 7 THEN 7 ELSE 4 END AS status) AS s
    """,
    """
    INSERT INTO run_labels (namespace, key, value, created_at, run_id)
    SELECT namespace, l.key, l.value, created_at, run_id FROM runs CROSS JOIN LATERAL json_each_text(labels) AS l
    """,
]

OPEN = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SLEEPING, RunStatus.PAUSED)
NAMED = RunFilter(run_ids=tuple(f"{n:08x}-0000-7000-8000-000000000000" for n in range(0, 100_000, 1_000)))

FILTERS = {
    "all": RunFilter(),
    **{str(status): RunFilter(statuses=(status,)) for status in RunStatus},
    "open": RunFilter(statuses=OPEN),
    "trouble": RunFilter(statuses=(RunStatus.FAILED, RunStatus.CANCELLED)),
    "type": RunFilter(workflow_types=("type-1",)),
    "rare type": RunFilter(workflow_types=("rare",)),
    "types": RunFilter(workflow_types=("type-1", "rare")),
    "rare type, completed": RunFilter(workflow_types=("rare",), statuses=(RunStatus.COMPLETED,)),
    "type, failed": RunFilter(workflow_types=("type-1",), statuses=(RunStatus.FAILED,)),
    "type, asleep": RunFilter(workflow_types=("type-1",), statuses=(RunStatus.SLEEPING,)),
    "type that never sleeps, asleep": RunFilter(workflow_types=("sleepless",), statuses=(RunStatus.SLEEPING,)),
    "type that never sleeps, open": RunFilter(workflow_types=("sleepless",), statuses=OPEN),
    "types, open": RunFilter(workflow_types=("sleepless", "rare"), statuses=OPEN),
    "version": RunFilter(version="1"),
    "rare version": RunFilter(version="2"),
    "rare version of a type": RunFilter(workflow_types=("type-1",), version="2"),
    "version of a rare type": RunFilter(workflow_types=("rare",), version="1"),
    "type of many versions": RunFilter(workflow_types=("often deployed",)),
    "version of another type": RunFilter(workflow_types=("type-1",), version="v3"),
    "types, completed": RunFilter(workflow_types=("type-1", "rare"), statuses=(RunStatus.COMPLETED,)),
    "version, completed or asleep": RunFilter(version="v3", statuses=(RunStatus.COMPLETED, RunStatus.SLEEPING)),
    "rare version, completed": RunFilter(version="2", statuses=(RunStatus.COMPLETED,)),
    "label": RunFilter(labels={"team": "y"}),
    "rare label": RunFilter(labels={"team": "x"}),
    "old label": RunFilter(labels={"env": "prod"}),
    "labels": RunFilter(labels={"env": "prod", "team": "y"}),
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
}

SEARCHES = {
    "one workflow id": RunFilter(id_prefix="id-77777"),
    "some workflow ids": RunFilter(id_prefix="id-777"),
    "all workflow ids": RunFilter(id_prefix="id-"),
    "failed among all": RunFilter(id_prefix="id-", statuses=(RunStatus.FAILED,)),
    "some run ids": RunFilter(id_prefix="ab"),
    "all ids": RunFilter(id_prefix="0"),
    "failed among some run ids": RunFilter(id_prefix="a", statuses=(RunStatus.FAILED,)),
    "nothing": RunFilter(id_prefix="zzz"),
}

READ_AT_MOST = 3_000


class Explained(Session):
    """Instead of rows: the plan, as it was carried out."""

    plan: dict[str, Any]

    async def read(self, name: str, /, **parameters: object) -> Any:
        statement = f"EXPLAIN (ANALYZE, FORMAT JSON) {STATEMENTS[name]}"
        text = await self._connection.fetchval(statement, *PARAMETERS[name].in_order(parameters))
        self.plan = json.loads(text)[0]["Plan"]
        return [{"runs": 0}] if "count" in name else []


def rows_read(plan: dict[str, Any]) -> int:
    """How many rows of runs and labels were looked at."""
    return sum(
        node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for node in flatten(plan)
        if node.get("Relation Name") in ("runs", "run_labels")
    )


@pytest.fixture
async def filled(connection: asyncpg.Connection) -> asyncpg.Connection:
    for table in ("runs", "run_labels"):
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    for statement in FILL:
        await connection.execute(statement)
    for name, value in QUERY_SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    return connection


@pytest.fixture
async def fresh(connection: asyncpg.Connection) -> asyncpg.Connection:
    """A few thousand runs that came just now: PostgreSQL has no figures of the tables."""
    for table in ("runs", "run_labels"):
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    for statement in FILL:
        await connection.execute(statement.replace(f"generate_series(1, {RUNS})", f"generate_series(1, {FRESH_RUNS})"))
    for name, value in QUERY_SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    return connection


async def test_lists_and_counts_of_fresh_runs_read_each_run_a_few_times_at_most(fresh: asyncpg.Connection) -> None:
    session = Explained(fresh, counters=None, opening=None)  # type: ignore[arg-type]
    too_much: dict[str, int] = {}
    for name, where in FILTERS.items():
        await count_runs(session, "default", where, 10_000)
        if (read := rows_read(session.plan)) > 3 * FRESH_RUNS:
            too_much[f"count, {name}"] = read
        await list_runs(session, "default", where, None, PAGE)
        if (read := rows_read(session.plan)) > 3 * FRESH_RUNS:
            too_much[name] = read
    assert not too_much


async def test_lists_read_little_more_than_they_show(filled: asyncpg.Connection) -> None:
    await filled.execute("ANALYZE")
    session = Explained(filled, counters=None, opening=None)  # type: ignore[arg-type]
    middle = Cursor(NOW + 90_000, "00000000-0000-7000-8000-000000000000")
    too_much: dict[str, int] = {}
    for name, where in FILTERS.items():
        for cursor in (None, middle, Cursor(middle.at, middle.id, "prev")):
            await list_runs(session, "default", where, cursor, PAGE)
            if (read := rows_read(session.plan)) > READ_AT_MOST:
                too_much[f"{name}, {cursor}"] = read
    for name, where in ENDED_FILTERS.items():
        for cursor in (None, middle, Cursor(middle.at, middle.id, "prev")):
            session.plan = {}
            await list_runs(session, "default", where, cursor, PAGE, order="ended")
            if session.plan and (read := rows_read(session.plan)) > READ_AT_MOST:
                too_much[f"by end, {name}, {cursor}"] = read
    for name, where in SEARCHES.items():
        await list_runs(session, "default", where, None, PAGE)
        most = 2 * SEARCHED_IDS + READ_AT_MOST if where.statuses else 4 * (PAGE + 1)
        if (read := rows_read(session.plan)) > most:
            too_much[f"search, {name}"] = read
    assert not too_much


async def test_a_count_reads_no_more_than_its_cap(filled: asyncpg.Connection) -> None:
    await filled.execute("ANALYZE")
    session = Explained(filled, counters=None, opening=None)  # type: ignore[arg-type]
    too_much: dict[str, int] = {}
    by_end = {f"by end, {name}": where for name, where in ENDED_FILTERS.items() if where.by_end}
    for name, where in {**FILTERS, **by_end}.items():
        await count_runs(session, "default", where, 1_000)
        if (read := rows_read(session.plan)) > 4 * READ_AT_MOST:
            too_much[name] = read
    assert not too_much


async def test_open_runs_by_type_are_counted_without_reading_finished_ones(filled: asyncpg.Connection) -> None:
    await filled.execute("ANALYZE")
    session = Explained(filled, counters=None, opening=None)  # type: ignore[arg-type]
    await session.read("open_by_type", namespace="default", cap=READ_AT_MOST)
    open_of_each_status = READ_AT_MOST + 3 * RUNS // 4_000  # asleep: the cap; pending, running and paused: all
    assert READ_AT_MOST <= rows_read(session.plan) <= open_of_each_status
