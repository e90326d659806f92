"""Reads of runs: get, list, count, how they ended."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from ....core import limits
from ....core.ids import texts_from, uuids_from
from ....core.pages.cursor import Cursor
from ....core.records import Rows, RunEnd, RunFilter, RunKey, RunOrder, RunRecord
from ....core.run.wakes import WOKEN
from ....core.states import CODE_OF_RUN_STATUS, RUN_STATUS_OF_CODE, RunStatus
from ...protocol import RequestVerb
from ...rows import read_error, read_payload, read_run, write_json
from ..connection.connection import Database, Record, rows_within
from ..statements import ENDED_SOURCES

_BEGINNING, _END = -(1 << 62), 1 << 62
_MOST_MERGED = 16  # beyond this many types, runs are read by time and filtered instead of merging a list per type


def get_run(database: Database, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
    """See Store.get_run."""
    if run_id:
        row = database.record("get_run", (run_id, namespace))
    else:
        row = database.record("get_run_of_workflow", {"namespace": namespace, "workflow_id": workflow_id})
    if row is None:
        return None
    payloads = {name: read_payload(row[name], row[f"{name}_meta"]) for name in ("input", "context", "output", "state")}
    record = msgspec.structs.replace(read_run(row), **payloads, state_at=row["state_at"])
    if record.status is not RunStatus.SLEEPING:
        return record
    waits = database.rows("waits_of", {"run_id": record.run.run_id})
    return msgspec.structs.replace(record, waits=tuple(step_id for (step_id,) in waits))


def ended_run_of_request(
    database: Database, namespace: str, workflow_id: str, verb: RequestVerb, request_id: str
) -> RunKey | None:
    """See Store.ended_run_of_request."""
    ids = {
        "namespace": namespace,
        "workflow_id": workflow_id,
        "request_id": request_id,
        "most_runs": limits.REQUEST_RUNS,
    }
    if verb == "wake":
        row = database.row("ended_run_with_wake", ids | {"woken": WOKEN})
    else:
        row = database.row("ended_run_with_retry", ids)
    return None if row is None else RunKey(namespace, row[0])


def list_runs(
    database: Database,
    namespace: str,
    where: RunFilter,
    cursor: Cursor | None,
    limit: int,
    *,
    order: RunOrder = "created",
) -> Rows[RunRecord]:
    """See Store.list_runs."""
    if where.id_prefix:
        return _search(database, namespace, where, limit)
    newer = cursor is not None and cursor.direction == "prev"
    verb = f"{'newer' if newer else 'older'}_{'ended_' if order == 'ended' else ''}runs"
    parameters = _parameters(namespace, where, cursor, order) | {"limit": limit + 1}
    merged = _MergedPage(parameters, order, limit, newer=newer)
    for source, bound in _sources(database, namespace, where, order):
        merged.add(*database.page(f"{verb}_by_{source}", parameters | bound, limit))
    kept = rows_within(merged.rows, limit)
    page = merged.rows[:kept]
    if newer:
        page.reverse()
    return Rows(tuple(map(read_run, page)), merged.more or kept < len(merged.rows))


class _MergedPage:
    """Merges the first pages of several lists. Each added list is read only as far as the merged page reaches, so that
    many lists cost little more than one: `add` sets the bound in the parameters of the next read."""

    def __init__(self, parameters: dict[str, Any], order: RunOrder, limit: int, *, newer: bool) -> None:
        self.rows: list[Record] = []
        self.more = False
        self._parameters = parameters
        self._place = _PLACES[order]
        self._limit = limit
        self._newer = newer

    def add(self, rows: list[Record], goes_on: bool) -> None:
        """`goes_on`: the list has more rows after these."""
        if not rows:
            return
        place, merged = self._place, sorted(self.rows + rows, key=self._place, reverse=not self._newer)
        size = min(len(merged), self._limit)
        if goes_on:  # rows of the same list after the last of these are missing
            end = place(rows[-1])
            size = min(size, next(count for count, row in enumerate(merged, 1) if place(row) == end))
        self.rows = merged[:size]
        if goes_on or size < len(merged):
            self.more = True
            side = "upper" if self._newer else "lower"
            self._parameters[f"{side}_at"], self._parameters[f"{side}_id"] = place(merged[size - 1])


def _search(database: Database, namespace: str, where: RunFilter, limit: int) -> Rows[RunRecord]:
    parameters = _parameters(namespace, where, None, "created") | _ids_of(where) | {"limit": limit + 1}
    by_id: dict[str, Record] = {}
    more = False
    for ids in ("run_id", "workflow_id"):
        rows, more_rows = database.page(f"some_runs_by_{ids}_prefix", parameters, limit)
        by_id |= {row["run_id"]: row for row in rows}
        more = more or more_rows
    page = sorted(by_id.values(), key=_PLACES["created"], reverse=True)
    kept = rows_within(page, limit)
    return Rows(tuple(map(read_run, page[:kept])), more or kept < len(page))


def _ids_of(where: RunFilter) -> dict[str, Any]:
    run_ids = uuids_from(where.id_prefix) or (None, None)
    first_id, end_of_ids = texts_from(where.id_prefix)
    ids = {"first_run_id": run_ids[0], "last_run_id": run_ids[1], "first_id": first_id, "end_of_ids": end_of_ids}
    return ids | {"most_ids": limits.SEARCHED_IDS}


def count_runs(database: Database, namespace: str, where: RunFilter, cap: int) -> int:
    """See Store.count_runs."""
    order = where.order
    parameters = _parameters(namespace, where, None, order)
    if where.id_prefix:
        row = database.row("count_runs_by_prefix", parameters | _ids_of(where) | {"limit": cap})
        return row[0] if row else 0
    verb = "count_ended_runs" if order == "ended" else "count_runs"
    counted = 0
    for source, bound in _sources(database, namespace, where, order):
        row = database.row(f"{verb}_by_{source}", parameters | bound | {"limit": cap - counted})
        counted += row[0] if row else 0
        if counted >= cap:
            break
    return counted


_PLACES: dict[RunOrder, Callable[[Record], tuple[int, str]]] = {
    "created": itemgetter("created_at", "run_id"),
    "ended": itemgetter("finished_at", "run_id"),
}


def _sources(
    database: Database, namespace: str, where: RunFilter, order: RunOrder
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The index to read the list from, the narrowest that applies; several values of one column are several reads."""
    if order == "ended":
        yield from _ended_sources(where)
        return
    by_type = 0 < len(where.workflow_types) <= _MOST_MERGED
    if (narrow := _narrow_source(where)) is not None:
        yield narrow
    elif where.version and not where.workflow_types and not where.has_rare_status:
        for (workflow_type,) in database.rows("types_of_version", {"namespace": namespace, "version": where.version}):
            yield "type_version", {"workflow_type": workflow_type, "of_version": where.version}
    elif where.has_rare_status or (where.statuses and not by_type) or where.reads_sleeping_by_type:
        yield from _status_sources(where, by_type=by_type)
    elif by_type:
        for workflow_type in dict.fromkeys(where.workflow_types):
            for version in _versions(database, namespace, workflow_type, where):
                yield "type_version", {"workflow_type": workflow_type, "of_version": version}
    else:
        yield "created", {}


def _status_sources(where: RunFilter, *, by_type: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for status in dict.fromkeys(where.statuses):
        if by_type and status is RunStatus.SLEEPING:
            for workflow_type in dict.fromkeys(where.workflow_types):
                yield "type_asleep", {"workflow_type": workflow_type}
        else:
            yield "status", {"status": CODE_OF_RUN_STATUS[status]}


def _versions(database: Database, namespace: str, workflow_type: str, where: RunFilter) -> list[str | None]:
    """The versions of a type that may be in the list; None: runs that have none yet."""
    if where.version:
        return [where.version]
    rows = database.rows("versions_of_type", {"namespace": namespace, "workflow_type": workflow_type})
    return [version for (version,) in rows]


def _ended_sources(where: RunFilter) -> Iterator[tuple[str, dict[str, Any]]]:
    """The index of ended runs has the order of the list. Only the few runs of a narrow condition are sorted instead."""
    narrow = _narrow_source(where)
    if narrow is not None and narrow[0] in ENDED_SOURCES:
        yield narrow
        return
    for status in where.ended_statuses:
        yield "end", {"status": CODE_OF_RUN_STATUS[status]}


def _narrow_source(where: RunFilter) -> tuple[str, dict[str, Any]] | None:
    """The index of a condition that few runs match."""
    for source, value in (
        ("run_ids", where.run_ids),
        ("workflow_id", where.workflow_id),
        ("worker", where.worker_id),
        ("parent", where.parent_run_id),
        ("problem", where.has_problem),
        ("failing", where.failing),
        ("waiting", where.waiting),
        ("key", where.concurrency_key),
        ("schedule", where.schedule_id),
    ):
        if value:
            return source, {}
    if not where.labels or where.has_rare_status:
        return None
    key, value = next(iter(where.labels.items()))
    return "label", {"label_key": key, "label_value": value}


def _parameters(namespace: str, where: RunFilter, cursor: Cursor | None, order: RunOrder) -> dict[str, Any]:
    spans = {"created": (where.created_after, where.created_before), "ended": (where.ended_after, where.ended_before)}
    after, before = spans[order]
    upper = (_END if before is None else before, "")
    lower = (_BEGINNING if after is None else after, "")
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
        "run_ids": write_json(list(dict.fromkeys(where.run_ids))) if where.run_ids else None,
        "workflow_id": where.workflow_id or None,
        "version": where.version or None,
        "parent_run_id": where.parent_run_id or None,
        "schedule_id": where.schedule_id or None,
        "concurrency_key": where.concurrency_key or None,
        "worker_id": where.worker_id or None,
        "has_problem": where.has_problem,
        "failing": where.failing,
        "waiting": where.waiting,
        "created_after": where.created_after,
        "created_before": where.created_before,
        "ended_after": where.ended_after,
        "ended_before": where.ended_before,
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
