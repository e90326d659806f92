"""Every statement can be prepared, and the hot ones go by the indexes whatever the tables held when they were
planned."""

import json
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from kagzi.store.postgres.connection.connection import HOT_SETTINGS, STATEMENTS
from tests.store.postgres.verbs import flatten

from .verbs import NOW

HOT = [
    "write_fast",
    "write_recorded",
    "lone_step",
    "lone_end",
    "read_for_write",
    "settle",
    "locked_runs",
    "start_runs",
    "start_plain_runs",
    "start_lone_run",
    "find_starts",
    "count_open_runs",
    "terminate_run",
    "claim_runs",
    "lock_blockers",
    "count_running_runs",
    "running_of_type",
    "pending_of_type",
    "going_on_of_type",
    "pending_by_key",
    "claim_chosen",
    "count_in_queue",
    "oldest_open_of_type",
    "oldest_open_of_key",
    "types_that_wait",
    "first_pages",
    "next_page",
    "renew_leases",
    "shorten_leases",
    "release_leases",
    "lost_before_ack",
    "events_after",
    "markers_of",
    "runs_leased_by",
    "lock_due_runs",
    "fire_runs",
    "poll",
    "unbound_signals",
    "lock_family",
    "lock_parents",
    "find_children",
    "link_children",
    "notify_parents",
    "continue_run",
    "lock_signalled_run",
    "ended_run_with_signal",
    "later_run_with_signal",
    "find_signal",
    "give_signal",
    "cancel_run",
    "lock_cascading",
    "children_to_cancel",
    "lock_children",
    "end_cascade",
    "timeline_older",
    "timeline_newer",
    "step_to_wake",
    "steps_to_wake",
]

# What must be read by which index: a plan by another one reads more than it needs.
INDEXES: dict[str, dict[str, set[str]]] = {
    "write_fast": {"runs": {"runs_pkey"}, "steps": {"steps_pkey"}},
    "write_recorded": {"runs": {"runs_pkey"}},
    "lone_step": {"runs": {"runs_pkey"}},
    "lone_end": {"runs": {"runs_pkey"}},
    "settle": {"runs": {"runs_pkey"}},
    "read_for_write": {"runs": {"runs_pkey"}, "steps": {"steps_pkey", "steps_due"}},
    "start_runs": {"runs": {"runs_ended_workflow_id"}, "steps": set(), "signals": {"signals_request_id"}},
    "start_plain_runs": {"runs": set(), "steps": set()},
    "start_lone_run": {"runs": set(), "steps": set()},
    "find_starts": {"runs": {"runs_request_id", "runs_open_workflow_id", "runs_ended_workflow_id"}},
    "next_page": {"runs": {"runs_pkey"}, "steps": {"steps_begun"}},
    "shorten_leases": {"runs": {"runs_pkey"}},
    "release_leases": {"runs": {"runs_pkey"}},
    "lost_before_ack": {"runs": {"runs_pkey"}},
    "events_after": {"runs": {"runs_pkey"}, "steps": {"steps_pkey", "steps_begun"}},
    "markers_of": {"runs": {"runs_pkey"}},
    "runs_leased_by": {"runs": {"runs_held"}},
    "lock_due_runs": {"runs": {"runs_pkey", "runs_to_wake", "runs_deadline", "runs_cancel_by", "runs_leased"}},
    "fire_runs": {"runs": {"runs_pkey"}, "steps": {"steps_due", "steps_pkey"}},
    "claim_runs": {"runs": {"runs_to_claim", "runs_pkey", "runs_held", "runs_leased"}},
    "lock_blockers": {"runs": {"runs_pkey"}},
    "count_running_runs": {"runs": {"runs_held", "runs_leased"}},
    "running_of_type": {"runs": {"runs_held", "runs_leased"}},
    "pending_of_type": {"runs": {"runs_to_claim"}},
    "going_on_of_type": {"runs": {"runs_to_go_on"}},
    "pending_by_key": {"runs": {"runs_by_key", "runs_held", "runs_leased", "runs_to_claim"}},
    "claim_chosen": {"runs": {"runs_pkey"}},
    "count_in_queue": {"runs": {"runs_to_claim", "runs_by_key", "runs_held", "runs_leased"}},
    "oldest_open_of_type": {
        "runs": {"runs_to_claim", "runs_held", "runs_leased", "runs_asleep_by_type", "runs_status"}
    },
    "oldest_open_of_key": {"runs": {"runs_open_by_key"}},
    "types_that_wait": {"runs": {"runs_to_claim"}},
    "first_pages": {"steps": {"steps_begun"}},
    "renew_leases": {"runs": {"runs_pkey"}, "steps": {"steps_due"}},
    "poll": {
        "runs": {"runs_to_claim", "runs_to_wake", "runs_deadline", "runs_cancel_by", "runs_leased", "runs_cascade"}
    },
    "unbound_signals": {"signals": {"signals_unbound"}},
    "lock_family": {"runs": {"runs_pkey", "runs_blocked"}, "child_links": {"child_links_pkey"}},
    "lock_parents": {"runs": {"runs_pkey", "runs_blocked"}, "child_links": {"child_links_pkey"}},
    "find_children": {
        "runs": {"runs_pkey", "runs_request_id", "runs_open_workflow_id"},
        "steps": {"steps_pkey"},
    },
    "link_children": {"runs": {"runs_pkey"}},
    "notify_parents": {
        "runs": {"runs_pkey", "runs_blocked"},
        "steps": {"steps_pkey"},
        "child_links": {"child_links_pkey"},
    },
    "continue_run": {
        "runs": {"runs_pkey", "runs_blocked"},
        "steps": {"steps_pkey"},
        "child_links": {"child_links_pkey"},
    },
    "lock_signalled_run": {"runs": {"runs_pkey", "runs_open_workflow_id", "runs_ended_workflow_id"}},
    "ended_run_with_signal": {"runs": {"runs_ended_workflow_id"}, "signals": {"signals_request_id"}},
    "later_run_with_signal": {"runs": {"runs_pkey"}, "signals": {"signals_request_id"}},
    "find_signal": {"steps": {"steps_due"}, "signals": {"signals_request_id", "signals_unbound"}},
    "give_signal": {"runs": {"runs_pkey"}, "steps": {"steps_pkey"}, "signals": {"signals_pkey"}},
    "lock_cascading": {"runs": {"runs_cascade"}},
    "children_to_cancel": {"runs": {"runs_pkey", "runs_parent"}, "steps": {"steps_pkey"}},
    "lock_children": {"runs": {"runs_pkey"}},
    "end_cascade": {"runs": {"runs_pkey"}},
    "timeline_older": {"steps": {"steps_begun"}},
    "timeline_newer": {"steps": {"steps_begun"}},
    "step_to_wake": {"steps": {"steps_pkey"}},
    "steps_to_wake": {"steps": {"steps_due"}},
}

TABLES = ("runs", "steps", "signals", "child_links")

FILL = [
    "INSERT INTO namespaces (namespace, created_at) VALUES ('default', 0)",
    f"""
    INSERT INTO runs (run_id, namespace, workflow_id, workflow_type, request_id, created_at, status, ready_at, lease,
        nonce,
        worker_id, lease_until, finished_at)
    SELECT gen_random_uuid(), 'default', 'id-' || i, 'type-' || i % 20, 'request-' || i, {NOW} + i,
        CASE WHEN i % 10 = 0 THEN 1 WHEN i % 10 = 1 THEN 2 ELSE 4 END,
        CASE WHEN i % 10 = 0 THEN {NOW} END, 1, 1, 'worker-' || i % 50,
        CASE WHEN i % 10 = 1 THEN {NOW} END, CASE WHEN i % 10 > 1 THEN {NOW} END
    FROM generate_series(1, 200000) AS i
    """,
    f"""
    INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, seq, created_at)
    SELECT run_id, 'charge', 'charge', 1, 3, 1, 2, {NOW} FROM runs
    """,
    f"""
    INSERT INTO signals (run_id, number, received_at, name, request_id, payload)
    SELECT run_id, 1, {NOW}, 'approved', 'request', '' FROM runs WHERE lease_until IS NOT NULL
    """,
    """
    INSERT INTO child_links (namespace, child_run_id, parent_run_id, parent_step_id)
    SELECT namespace, run_id, run_id, 'child' FROM runs WHERE lease_until IS NOT NULL
    """,
]


async def test_every_statement_can_be_prepared(connection: asyncpg.Connection) -> None:
    for name, statement in STATEMENTS.items():
        try:
            await connection.prepare(statement)
        except asyncpg.PostgresError as error:
            pytest.fail(f"{name}: {error}")


def test_every_statement_says_why() -> None:
    for name, statement in STATEMENTS.items():
        assert statement.startswith("-- "), f"{name} is not headed by a comment that says why it is so"


async def test_plans_use_indexes_on_empty_tables(connection: asyncpg.Connection) -> None:
    await assert_plans(connection)


async def test_plans_use_indexes_on_large_tables_analysed_or_not(connection: asyncpg.Connection) -> None:
    for table in TABLES:
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    for statement in FILL:
        await connection.execute(statement)
    await assert_plans(connection)
    await connection.execute("ANALYZE")
    await assert_plans(connection)


async def assert_plans(connection: asyncpg.Connection) -> None:
    for name, value in HOT_SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    for name in HOT:
        nodes = list(flatten(await plan_of(connection, name)))
        for node in nodes:
            table, how = node.get("Relation Name"), node["Node Type"]
            if table not in TABLES or how == "ModifyTable":
                continue
            assert "Index" in how, f"{name} reads {table} by {how}:\n{json.dumps(nodes[0], indent=1)}"
            allowed = INDEXES.get(name, {}).get(table)
            assert allowed is None or node["Index Name"] in allowed, f"{name} reads {table} by {node['Index Name']}"


async def plan_of(connection: asyncpg.Connection, name: str) -> dict[str, Any]:
    """The generic plan: the one a hot connection keeps."""
    statement = STATEMENTS[name]
    parameters = max((int(number) for number in re.findall(r"\$(\d+)", statement)), default=0)
    await connection.execute(f"PREPARE planned_{name} AS {statement}")
    arguments = f"({', '.join(['NULL'] * parameters)})" if parameters else ""
    text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE planned_{name}{arguments}")
    await connection.execute(f"DEALLOCATE planned_{name}")
    return json.loads(text)[0]["Plan"]


GROWING = (*TABLES, "step_attempts", "run_labels", "worker_events", "schedule_fires", "run_stats")
"""Tables that have as many rows as there were runs, steps, or minutes."""


async def test_no_statement_reads_a_whole_table_that_grows(connection: asyncpg.Connection) -> None:
    """All of them: lists, pages, counts, retention, exports. A plan without a condition on its index reads a table from
    one end, so it must be cut short."""
    for name, value in HOT_SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    await connection.execute("SET enable_bitmapscan = on")
    whole: dict[str, str] = {}
    for name in STATEMENTS:
        if name in SCHEMA:
            continue
        for node, limited in scans(await plan_of(connection, name)):
            table, how = node.get("Relation Name"), node["Node Type"]
            if table in GROWING and how != "ModifyTable" and not is_narrow(node, limited=limited):
                whole[f"{name}: {table}"] = f"{how} {node.get('Index Name', '')}"
    assert whole == {}


def scans(node: dict[str, Any], *, limited: bool = False) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every node of a plan, and whether a limit cuts short what it reads."""
    yield node, limited
    for child in node.get("Plans", []):
        yield from scans(child, limited=node["Node Type"] == "Limit" or (limited and node["Node Type"] not in BLOCKING))


def is_narrow(node: dict[str, Any], *, limited: bool) -> bool:
    if node["Node Type"] in ("Bitmap Heap Scan", "Tid Scan"):
        return True  # by the conditions of the bitmaps below it, or the rows of a subquery
    return "Index" in node["Node Type"] and ("Index Cond" in node or limited or node["Index Name"] in SMALL)


BLOCKING = ("Sort", "Aggregate", "Hash", "WindowAgg")
SMALL = ("runs_cascade",)  # runs whose children are being cancelled
SCHEMA = ("create_schema_table",)


async def test_runs_are_locked_in_the_order_of_the_batch(connection: asyncpg.Connection) -> None:
    """The groups of a batch come sorted: they must drive the join, or two servers could wait for each other."""
    for name, value in HOT_SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    for name in ("write_fast", "write_recorded", "settle"):
        join_nodes = [
            node
            for node in flatten(await plan_of(connection, name))
            if any(
                child.get("Relation Name") == "runs" and "Index" in child["Node Type"]
                for child in node.get("Plans", [])
            )
        ]
        assert [node["Node Type"] for node in join_nodes] == ["Nested Loop"]
        outer = join_nodes[0]["Plans"][0]
        assert outer["Node Type"] in ("CTE Scan", "Function Scan")
        assert outer.get("CTE Name", outer["Alias"]) == "g"
