"""Runs as people see them: get, list, count, how they ended."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from ....core.pages.cursor import Cursor
from ....core.records import Rows, RunEnd, RunFilter, RunKey, RunRecord
from ....core.states import CODE_OF_RUN_STATUS, RUN_STATUS_OF_CODE, RunStatus
from ...rows import read_error, read_payload, read_run, write_json
from ..connection.connection import Database, Record, rows_within

_BEGINNING, _END = -(1 << 62), 1 << 62
_MOST_MERGED = 16  # types read by index and merged; beyond that the list is read in order of time and filtered


def get_run(database: Database, namespace: str, run_id: str, workflow_id: str) -> RunRecord | None:
    """See Store.get_run."""
    if run_id:
        row = database.record("get_run", (run_id, namespace))
    else:
        row = database.record("get_run_of_workflow", (namespace, workflow_id))
    if row is None:
        return None
    payloads = {name: read_payload(row[name], row[f"{name}_meta"]) for name in ("input", "context", "output")}
    record = msgspec.structs.replace(read_run(row), **payloads)
    if record.status is not RunStatus.SLEEPING:
        return record
    waits = database.rows("waits_of", {"run_id": record.run.run_id})
    return msgspec.structs.replace(record, waits=tuple(step_id for (step_id,) in waits))


def list_runs(
    database: Database, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int
) -> Rows[RunRecord]:
    """See Store.list_runs."""
    newer = cursor is not None and cursor.direction == "prev"
    verb = "newer_runs" if newer else "older_runs"
    parameters = _parameters(namespace, where, cursor) | {"limit": limit + 1}
    rows: list[Record] = []
    boundaries: list[tuple[int, str]] = []  # the last rows of lists that go on
    for source, bound in _sources(where):
        part, more = database.page(f"{verb}_by_{source}", parameters | bound, limit)
        rows += part
        if more:
            boundaries.append(_list_order(part[-1]))
    rows.sort(key=_list_order, reverse=not newer)
    page = _before(rows, min(boundaries) if newer else max(boundaries), newer=newer) if boundaries else rows
    kept = rows_within(page, limit)
    more = bool(boundaries) or kept < len(page)
    page = page[:kept]
    if newer:
        page.reverse()
    return Rows(tuple(map(read_run, page)), more)


def _before(rows: list[Record], end: tuple[int, str], *, newer: bool) -> list[Record]:
    """Up to where the first of several lists was cut: beyond it, its rows are missing between the others'."""
    return [row for row in rows if (_list_order(row) <= end if newer else _list_order(row) >= end)]


def count_runs(database: Database, namespace: str, where: RunFilter, cap: int) -> int:
    """See Store.count_runs."""
    parameters = _parameters(namespace, where, None)
    counted = 0
    for source, bound in _sources(where):
        row = database.row(f"count_runs_by_{source}", parameters | bound | {"limit": cap - counted})
        counted += row[0] if row else 0
    return counted


_list_order: Callable[[Record], tuple[int, str]] = itemgetter("created_at", "run_id")


def _sources(where: RunFilter) -> Iterator[tuple[str, dict[str, Any]]]:
    """Which index reads the list, the narrowest that applies; several values of one column are several reads."""
    by_type = 0 < len(where.workflow_types) <= _MOST_MERGED
    if (narrow := _narrow_source(where)) is not None:
        yield narrow
    elif where.version and not where.workflow_types and not where.has_rare_status:
        yield "version", {}
    elif where.has_rare_status or (where.statuses and not by_type):
        for status in dict.fromkeys(where.statuses):
            yield "status", {"status": CODE_OF_RUN_STATUS[status]}
    elif by_type:
        for workflow_type in dict.fromkeys(where.workflow_types):
            yield "type_version" if where.version else "type", {"workflow_type": workflow_type}
    else:
        yield "created", {}


def _narrow_source(where: RunFilter) -> tuple[str, dict[str, Any]] | None:
    """By something that few runs have."""
    for source, parameters in (
        ("workflow_id", where.workflow_id),
        ("parent", where.parent_run_id),
        ("problem", where.has_problem),
        ("key", where.concurrency_key),
        ("schedule", where.schedule_id),
    ):
        if parameters:
            return source, {}
    if not where.labels or where.has_rare_status:
        return None
    key, value = next(iter(where.labels.items()))
    return "label", {"label_key": key, "label_value": value}


def _parameters(namespace: str, where: RunFilter, cursor: Cursor | None) -> dict[str, Any]:
    upper = (_END if where.created_before is None else where.created_before, "")
    lower = (_BEGINNING if where.created_after is None else where.created_after, "")
    if cursor is not None and cursor.direction == "next":
        upper = min(upper, (cursor.at, cursor.id))
    elif cursor is not None:
        lower = max(lower, (cursor.at, cursor.id))
    return {
        "namespace": namespace,
        "upper_at": upper[0],
        "upper_id": upper[1],
        "lower_at": lower[0],
        "lower_id": lower[1],
        "statuses": write_json([CODE_OF_RUN_STATUS[status] for status in where.statuses]) if where.statuses else None,
        "workflow_types": write_json(where.workflow_types) if where.workflow_types else None,
        "labels": write_json(dict(where.labels)) if where.labels else None,
        "workflow_id": where.workflow_id or None,
        "version": where.version or None,
        "parent_run_id": where.parent_run_id or None,
        "schedule_id": where.schedule_id or None,
        "concurrency_key": where.concurrency_key or None,
        "has_problem": where.has_problem,
    }


def endings_of(database: Database, runs: Sequence[RunKey]) -> list[RunEnd | RunStatus | None]:
    """See Store.endings_of."""
    ids = write_json([run.run_id for run in runs])
    rows, more = database.page("endings_of", (ids,), len(runs))
    by_id: dict[str, Record] = {row["run_id"]: row for row in rows}
    answered = runs[: rows[-1]["n"] + 1] if more else runs
    return [_end_of(run, by_id.get(run.run_id)) for run in answered]


def _end_of(run: RunKey, row: Record | None) -> RunEnd | RunStatus | None:
    if row is None or row["namespace"] != run.namespace:
        return None
    status = RUN_STATUS_OF_CODE[row["status"]]
    if not status.ended:
        return status
    output = read_payload(row["output"], row["output_meta"])
    return RunEnd(
        run=run, status=status, output=output, error=read_error(row["error"]), continued_as=row["continued_as"]
    )
