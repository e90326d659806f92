"""Reads of runs."""

from collections.abc import Sequence

import msgspec

from ....core import limits
from ....core.ids import is_uuid, texts_from, uuids_from
from ....core.pages.cursor import Cursor
from ....core.records import Payload, Rows, RunEnd, RunFilter, RunKey, RunOrder, RunRecord
from ....core.run.wakes import WOKEN
from ....core.states import CODE_OF_RUN_STATUS, RUN_STATUS_OF_CODE, RunCode, RunStatus
from ...protocol import RequestVerb
from ...rows import read_error, read_payload, read_run
from ..connection.connection import Session
from ..statements import ended_list_name, list_name

_WAITS_SHOWN = 100
_MOST_MERGED = 16  # beyond this many types, runs are read by time and filtered instead of merging a list per type


async def get_run(session: Session, namespace: str, *, run_id: str, workflow_id: str) -> RunRecord | None:
    if run_id and not is_uuid(run_id):
        return None
    if run_id:
        rows = await session.read("get_run", namespace=namespace, run_id=run_id)
    else:
        rows = await session.read("get_run_of_workflow", namespace=namespace, workflow_id=workflow_id)
    if not rows:
        return None
    payload_rows = await session.read("run_payloads", run_id=rows[0]["run_id"])
    payloads: dict[str, Payload | None] = {
        row["name"]: read_payload(row["output"], row["output_meta"]) for row in payload_rows
    }
    state_at = next((row["finished_at"] for row in payload_rows if row["name"] == "state"), None)
    waits: tuple[str, ...] = ()
    if rows[0]["status"] == RunCode.SLEEPING:
        waits = tuple(
            row["step_id"] for row in await session.read("open_waits", run_id=rows[0]["run_id"], limit=_WAITS_SHOWN)
        )
    return msgspec.structs.replace(read_run(rows[0]), waits=waits, state_at=state_at, **payloads)


async def ended_run_of_request(
    session: Session, namespace: str, workflow_id: str, verb: RequestVerb, request_id: str
) -> RunKey | None:
    ids = {
        "namespace": namespace,
        "workflow_id": workflow_id,
        "request_id": request_id,
        "most_runs": limits.REQUEST_RUNS,
    }
    if verb == "wake":
        rows = await session.read("ended_run_with_wake", woken=WOKEN, **ids)
    else:
        rows = await session.read("ended_run_with_retry", **ids)
    return RunKey(namespace, rows[0]["run_id"]) if rows else None


async def list_runs(
    session: Session,
    namespace: str,
    where: RunFilter,
    cursor: Cursor | None,
    limit: int,
    *,
    order: RunOrder = "created",
) -> Rows[RunRecord]:
    if where.parent_run_id and not is_uuid(where.parent_run_id):
        return Rows((), has_more=False)
    if where.id_prefix:
        rows, more = await session.page("search_runs", limit, namespace=namespace, **_searched(where))
        return Rows(tuple(map(read_run, rows)), has_more=more)
    newer = cursor is not None and cursor.direction == "prev"
    towards = "newer" if newer else "older"
    statuses = where.ended_statuses if order == "ended" else where.statuses
    if order == "ended" and not statuses:
        return Rows((), has_more=False)
    how_status, status = _statuses(statuses)
    if order == "ended":
        name = ended_list_name(order=towards, status=how_status)
        workflow_type: dict[str, object] = {"workflow_types": list(where.workflow_types) or None}
    else:
        how_type, workflow_type = _types(where)
        name = list_name(labelled=_by_label(where), order=towards, status=how_status, workflow_type=how_type)
    rows, more = await session.page(
        name,
        limit,
        namespace=namespace,
        statuses=status,
        cursor_at=None if cursor is None else cursor.at,
        cursor_id=None if cursor is None else cursor.id,
        **workflow_type,
        **_conditions(where),
    )
    records = [read_run(row) for row in rows]
    if newer:
        records.reverse()
    return Rows(tuple(records), has_more=more)


async def count_runs(session: Session, namespace: str, where: RunFilter, cap: int) -> int:
    if where.parent_run_id and not is_uuid(where.parent_run_id):
        return 0
    if where.id_prefix:
        [row] = await session.read("count_searched_runs", namespace=namespace, limit=cap, **_searched(where))
        matches: int = row["runs"]
        return min(matches, cap)
    if not where.reads_sleeping_by_type:
        return await _count(session, namespace, where, cap)
    asleep, others = where.split_sleeping()  # those that sleep have an index of their own
    counted = await _count(session, namespace, asleep, cap)
    if others is not None and counted < cap:
        counted += await _count(session, namespace, others, cap - counted)
    return counted


async def _count(session: Session, namespace: str, where: RunFilter, cap: int) -> int:
    statuses = [CODE_OF_RUN_STATUS[status] for status in where.statuses] or None
    if where.by_end:  # with a status the index of ended runs applies
        statuses = [CODE_OF_RUN_STATUS[status] for status in where.ended_statuses]
    types: dict[str, object] = {"workflow_types": list(where.workflow_types) or None}
    if _by_label(where):
        name = "count_labelled_runs"
    elif _types(where)[0] == "all_types":
        name, types = "count_runs_of_version", {}
    else:
        name = "count_runs"
    [row] = await session.read(name, namespace=namespace, statuses=statuses, limit=cap, **types, **_conditions(where))
    counted: int = row["runs"]
    return counted


def _by_label(where: RunFilter) -> bool:
    """Whether the list is read by its first label: unless a narrower condition is given."""
    return bool(where.labels) and not _is_narrow(where)


def _is_narrow(where: RunFilter) -> bool:
    """Whether a condition matches few runs, whatever their labels, types and versions."""
    narrow = (
        where.workflow_id,
        where.run_ids,
        where.parent_run_id,
        where.has_problem,
        where.concurrency_key,
        where.schedule_id,
        where.worker_id,
    )
    return any(narrow) or bool(where.failing) or bool(where.waiting) or where.has_rare_status


def _searched(where: RunFilter) -> dict[str, object]:
    run_ids = uuids_from(where.id_prefix) or (None, None)
    first_id, end_of_ids = texts_from(where.id_prefix)
    return {
        "first_run_id": run_ids[0],
        "last_run_id": run_ids[1],
        "first_id": first_id,
        "end_of_ids": end_of_ids,
        "most_ids": limits.SEARCHED_IDS,
        "statuses": [CODE_OF_RUN_STATUS[status] for status in where.statuses] or None,
        "workflow_types": list(where.workflow_types) or None,
        **_conditions(where),
    }


def _statuses(statuses: Sequence[RunStatus]) -> tuple[str, int | list[int] | None]:
    """Which statement to use, and its parameter: one value, or several whose lists are merged."""
    codes = [CODE_OF_RUN_STATUS[status] for status in dict.fromkeys(statuses)]
    if len(codes) > 1:
        return "each_status", codes
    return "one_status", codes[0] if codes else None


def _types(where: RunFilter) -> tuple[str, dict[str, object]]:
    """Like `_statuses`. With very many types, runs are read by time and filtered. The index of types and versions has
    the order of the list only within one version of a type: unless both, or a narrower condition, are given, the lists
    of the existing versions are merged."""
    types = list(dict.fromkeys(where.workflow_types))
    if len(types) > _MOST_MERGED:
        return "any_type", {"workflow_types": types}
    if not where.labels and not _is_narrow(where):
        if types and not where.version and not where.reads_sleeping_by_type:
            return "each_version", {"workflow_types": types}
        if where.version and not types:
            return "all_types", {}
    if len(types) > 1:
        return "each_type", {"workflow_types": types}
    return "one_type", {"workflow_types": types[0] if types else None}


def _conditions(where: RunFilter) -> dict[str, object]:
    return {
        "created_after": where.created_after,
        "created_before": where.created_before,
        "run_ids": [run_id for run_id in where.run_ids if is_uuid(run_id)] if where.run_ids else None,
        "workflow_id": where.workflow_id or None,
        "version": where.version or None,
        "parent_run_id": where.parent_run_id or None,
        "schedule_id": where.schedule_id or None,
        "concurrency_key": where.concurrency_key or None,
        "worker_id": where.worker_id or None,
        "with_problem": where.has_problem,
        "failing": where.failing,
        "waiting": where.waiting,
        "ended_after": where.ended_after,
        "ended_before": where.ended_before,
        "label_keys": list(where.labels) or None,
        "label_values": list(where.labels.values()) or None,
    }


async def endings_of(session: Session, runs: Sequence[RunKey]) -> Sequence[RunEnd | RunStatus | None]:
    answers: list[RunEnd | RunStatus | None] = [None] * len(runs)
    valid = [(index, run) for index, run in enumerate(runs) if is_uuid(run.run_id)]
    run_ids, namespaces = [run.run_id for _, run in valid], [run.namespace for _, run in valid]
    rows = await session.read("endings_of", run_ids=run_ids, namespaces=namespaces, page_bytes=limits.PAGE_BYTES)
    for row in rows:
        number: int = row["n"]
        index, run = valid[number - 1]
        status = RUN_STATUS_OF_CODE[row["status"]]
        if not status.ended:
            answers[index] = status
            continue
        output = read_payload(row["output"], row["output_meta"])
        answers[index] = RunEnd(
            run=run, status=status, output=output, error=read_error(row["error"]), continued_as=row["continued_as"]
        )
    more = bool(rows) and rows[0]["page_rows"] > len(rows)
    return answers[: valid[rows[-1]["n"] - 1][0] + 1] if more else answers
