"""Questions about runs, and the request to stop one."""

from collections.abc import Sequence

from ...core.cursor import Cursor
from ...core.errors import ErrorCode, ErrorDetail, ErrorKind, Unavailable
from ...core.ids import is_uuid
from ...core.records import Held, Lease, Payload, Rows, RunEnd, RunFilter, RunKey, RunRecord
from ...core.states import CODE_OF_RUN_STATUS, RUN_STATUS_OF_CODE, KindCode, RunCode, RunStatus
from ...core.times import Timestamp
from ..protocol import Cancelled, TypeKey
from .connections import CONTENTION, Row, Session
from .rows import read_error, read_payload, read_run, write_error

_CANCEL_TRIES = 3


async def get_run(session: Session, namespace: str, *, run_id: str, workflow_id: str) -> RunRecord | None:
    if run_id and not is_uuid(run_id):
        return None
    if run_id:
        rows = await session.read("get_run", namespace, run_id)
    else:
        rows = await session.read("get_latest_run", namespace, workflow_id)
    if not rows:
        return None
    payloads: dict[int, Payload | None] = {
        row["kind"]: read_payload(row["output"], row["output_meta"])
        for row in await session.read("run_payloads", rows[0]["run_id"])
    }
    return read_run(
        rows[0],
        input=payloads.get(KindCode.INPUT),
        context=payloads.get(KindCode.CONTEXT),
        output=payloads.get(KindCode.OUTPUT),
    )


async def list_runs(
    session: Session, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int
) -> Rows[RunRecord]:
    if where.parent_run_id and not is_uuid(where.parent_run_id):
        return Rows((), has_more=False)
    newer = cursor is not None and cursor.direction == "prev"
    rows = await session.read(
        f"list_{'labelled_' if where.labels else ''}runs_{'newer' if newer else 'older'}",
        *_conditions(namespace, where),
        None if cursor is None else cursor.at,
        None if cursor is None else cursor.id,
        limit + 1,
    )
    records = [read_run(row) for row in rows[:limit]]
    if newer:
        records.reverse()
    return Rows(tuple(records), has_more=len(rows) > limit)


async def count_runs(session: Session, namespace: str, where: RunFilter, cap: int) -> int:
    if where.parent_run_id and not is_uuid(where.parent_run_id):
        return 0
    name = "count_labelled_runs" if where.labels else "count_runs"
    [row] = await session.read(name, *_conditions(namespace, where), cap)
    counted: int = row["runs"]
    return counted


def _conditions(namespace: str, where: RunFilter) -> tuple[object, ...]:
    return (
        namespace,
        [CODE_OF_RUN_STATUS[status] for status in where.statuses] or None,
        list(where.workflow_types) or None,
        where.created_after,
        where.created_before,
        where.workflow_id or None,
        where.version or None,
        where.parent_run_id or None,
        list(where.labels) or None,
        list(where.labels.values()) or None,
    )


async def ends_of(session: Session, runs: Sequence[RunKey]) -> Sequence[RunEnd | RunStatus | None]:
    answers: list[RunEnd | RunStatus | None] = [None] * len(runs)
    asked = [(index, run) for index, run in enumerate(runs) if is_uuid(run.run_id)]
    rows = await session.read("ends_of", [run.run_id for _, run in asked], [run.namespace for _, run in asked])
    for row in rows:
        number: int = row["n"]
        index, run = asked[number - 1]
        status = RUN_STATUS_OF_CODE[row["status"]]
        if not status.ended:
            answers[index] = status
            continue
        output = read_payload(row["output"], row["output_meta"])
        answers[index] = RunEnd(run=run, status=status, output=output, error=read_error(row["error"]))
    return answers


async def cancel_run(
    session: Session, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp
) -> Cancelled | None:
    if not is_uuid(run.run_id):
        return None
    for _ in range(_CANCEL_TRIES):
        try:
            async with session.transaction():
                rows = await session.read("lock_run", run.namespace, run.run_id)
                return await _cancel_locked(session, rows[0], reason, now, cancel_by) if rows else None
        except CONTENTION:
            continue
    raise Unavailable(f"run {run.run_id} is locked by somebody else: try again")


async def _cancel_locked(session: Session, row: Row, reason: str, now: Timestamp, cancel_by: Timestamp) -> Cancelled:
    status = RunCode(row["status"])
    if RUN_STATUS_OF_CODE[status].ended:
        return Cancelled(RUN_STATUS_OF_CODE[status])
    never_claimed = row["lease"] == 0
    then = RunCode.CANCELLED if never_claimed else RunCode.RUNNING if status is RunCode.RUNNING else RunCode.PENDING
    error = ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message=reason or "cancelled")
    await session.read(
        "cancel_run", row["run_id"], now, cancel_by, reason, int(then), write_error(error) if never_claimed else None
    )
    if never_claimed:
        return Cancelled(RunStatus.CANCELLED, ended=True)
    if then is RunCode.RUNNING:
        holder = Held(RunKey(row["namespace"], row["run_id"]), Lease(row["lease"], row["nonce"]))
        return Cancelled(RunStatus.RUNNING, holder=holder, worker_id=row["worker_id"])
    woken = None if status is RunCode.PENDING else TypeKey(row["namespace"], row["workflow_type"])
    return Cancelled(RunStatus.PENDING, woken=woken)
