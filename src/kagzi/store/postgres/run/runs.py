"""Questions about runs."""

from collections.abc import Sequence

import msgspec

from ....core.ids import is_uuid
from ....core.pages.cursor import Cursor
from ....core.records import Payload, Rows, RunEnd, RunFilter, RunKey, RunRecord
from ....core.states import CODE_OF_RUN_STATUS, RUN_STATUS_OF_CODE, RunCode, RunStatus
from ...rows import read_error, read_payload, read_run
from ..connection.connection import Session
from ..statements import list_name
from .pages import read_page

_WAITS_SHOWN = 100
_MOST_MERGED = 16  # types whose lists are merged; beyond that runs are read in order of time and filtered


async def get_run(session: Session, namespace: str, *, run_id: str, workflow_id: str) -> RunRecord | None:
    if run_id and not is_uuid(run_id):
        return None
    if run_id:
        rows = await session.read("get_run", namespace=namespace, run_id=run_id)
    else:
        rows = await session.read("get_latest_run", namespace=namespace, workflow_id=workflow_id)
    if not rows:
        return None
    payloads: dict[str, Payload | None] = {
        row["name"]: read_payload(row["output"], row["output_meta"])
        for row in await session.read("run_payloads", run_id=rows[0]["run_id"])
    }
    waits: tuple[str, ...] = ()
    if rows[0]["status"] == RunCode.SLEEPING:
        waits = tuple(
            row["step_id"] for row in await session.read("open_waits", run_id=rows[0]["run_id"], limit=_WAITS_SHOWN)
        )
    return msgspec.structs.replace(read_run(rows[0]), waits=waits, **payloads)


async def list_runs(
    session: Session, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int
) -> Rows[RunRecord]:
    if where.parent_run_id and not is_uuid(where.parent_run_id):
        return Rows((), has_more=False)
    newer = cursor is not None and cursor.direction == "prev"
    how_status, status = _statuses(where)
    how_type, workflow_type = _types(where)
    name = list_name(
        labelled=_by_label(where), order="newer" if newer else "older", status=how_status, workflow_type=how_type
    )
    rows, more = await read_page(
        session,
        name,
        limit,
        namespace=namespace,
        statuses=status,
        workflow_types=workflow_type,
        cursor_at=None if cursor is None else cursor.at,
        cursor_id=None if cursor is None else cursor.id,
        limit=limit + 1,
        **_conditions(where),
    )
    records = [read_run(row) for row in rows]
    if newer:
        records.reverse()
    return Rows(tuple(records), has_more=more)


async def count_runs(session: Session, namespace: str, where: RunFilter, cap: int) -> int:
    if where.parent_run_id and not is_uuid(where.parent_run_id):
        return 0
    name = "count_labelled_runs" if _by_label(where) else "count_runs"
    statuses = [CODE_OF_RUN_STATUS[status] for status in where.statuses] or None
    types = list(where.workflow_types) or None
    parameters = _conditions(where)
    [row] = await session.read(
        name, namespace=namespace, statuses=statuses, workflow_types=types, limit=cap, **parameters
    )
    counted: int = row["runs"]
    return counted


def _by_label(where: RunFilter) -> bool:
    """Whether the first label drives the list: unless something that fewer runs have does."""
    narrow = (where.workflow_id, where.parent_run_id, where.has_problem, where.concurrency_key, where.schedule_id)
    return bool(where.labels) and not any(narrow) and not where.has_rare_status


def _statuses(where: RunFilter) -> tuple[str, int | list[int] | None]:
    """Which statement, and its parameter: one value, or several whose lists are merged."""
    codes = [CODE_OF_RUN_STATUS[status] for status in dict.fromkeys(where.statuses)]
    if len(codes) > 1:
        return "each_status", codes
    return "one_status", codes[0] if codes else None


def _types(where: RunFilter) -> tuple[str, str | list[str] | None]:
    """As `_statuses`; very many types are looked for in the order of time."""
    types = list(dict.fromkeys(where.workflow_types))
    if len(types) > 1:
        return "each_type" if len(types) <= _MOST_MERGED else "any_type", types
    return "one_type", types[0] if types else None


def _conditions(where: RunFilter) -> dict[str, object]:
    return {
        "created_after": where.created_after,
        "created_before": where.created_before,
        "workflow_id": where.workflow_id or None,
        "version": where.version or None,
        "parent_run_id": where.parent_run_id or None,
        "schedule_id": where.schedule_id or None,
        "concurrency_key": where.concurrency_key or None,
        "with_problem": where.has_problem,
        "label_keys": list(where.labels) or None,
        "label_values": list(where.labels.values()) or None,
    }


async def endings_of(session: Session, runs: Sequence[RunKey]) -> Sequence[RunEnd | RunStatus | None]:
    answers: list[RunEnd | RunStatus | None] = [None] * len(runs)
    valid = [(index, run) for index, run in enumerate(runs) if is_uuid(run.run_id)]
    run_ids, namespaces = [run.run_id for _, run in valid], [run.namespace for _, run in valid]
    rows, more = await read_page(session, "endings_of", len(runs), run_ids=run_ids, namespaces=namespaces)
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
    return answers[: valid[rows[-1]["n"] - 1][0] + 1] if more else answers
