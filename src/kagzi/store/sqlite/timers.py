"""What the clock does to runs, and what is ahead."""

from collections.abc import Sequence

import msgspec

from ...core.errors import ErrorCode, ErrorDetail, ErrorKind
from ...core.records import Held, Lease, RunEnd, RunKey
from ...core.states import CODE_OF_RUN_STATUS, RunStatus
from ...core.times import Timestamp, to_datetime
from ..protocol import Fired, Horizon, TypeKey, WorkerBeat
from .connection import Database
from .rows import write_error, write_json
from .wave import Writer

_decode_triples = msgspec.json.Decoder(list[tuple[str, str, str]]).decode
_decode_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode


def fire(writer: Writer, now: Timestamp, end_leases: bool, limit: int) -> Fired:
    """See Store.fire."""
    ended = _pass_deadlines(writer, now, limit)
    ended += _pass_cancel_limits(writer, now, limit - len(ended))
    left = limit - len(ended)
    woken = _wake(writer, now, left)
    left -= sum(woken.values())
    types = dict.fromkeys(woken)
    lost: list[Held] = []
    if end_leases:
        lost = _end_leases(writer, now, left, types)
        left -= len(lost)
    return Fired(tuple(types), tuple(ended), tuple(lost), left <= 0)


def _pass_deadlines(writer: Writer, now: Timestamp, limit: int) -> list[RunEnd]:
    ends: list[RunEnd] = []
    for run_id, namespace, deadline_at in writer.database.rows("past_deadline", (now, limit)):
        error = ErrorDetail(
            code=ErrorCode.TIMEOUT,
            kind=ErrorKind.TIMEOUT,
            message=f"the run did not end by its deadline, {to_datetime(deadline_at).isoformat()}",
            subject="deadline",
            subject_id=to_datetime(deadline_at).isoformat(),
        )
        ends.append(end(writer, RunKey(namespace, run_id), RunStatus.FAILED, error, now))
    return ends


def _pass_cancel_limits(writer: Writer, now: Timestamp, limit: int) -> list[RunEnd]:
    ends: list[RunEnd] = []
    for run_id, namespace, reason, cancel_by in writer.database.rows("past_cancel_limit", (now, limit)):
        error = cancelled(reason or "", f"cleanup did not end by {to_datetime(cancel_by).isoformat()}")
        ends.append(end(writer, RunKey(namespace, run_id), RunStatus.CANCELLED, error, now))
    return ends


def cancelled(reason: str, note: str = "") -> ErrorDetail:
    """The error of a run that was cancelled without its worker's word."""
    message = "; ".join(part for part in (reason or "the run was cancelled", note) if part)
    return ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message=message)


def end(writer: Writer, run: RunKey, status: RunStatus, error: ErrorDetail, now: Timestamp) -> RunEnd:
    """End an open run without its worker."""
    given = {"run_id": run.run_id, "status": CODE_OF_RUN_STATUS[status], "error": write_error(error), "now": now}
    writer.database.run("end_run", given)
    writer.fences.forget(run.run_id)
    return RunEnd(run=run, status=status, error=error)


def _wake(writer: Writer, now: Timestamp, limit: int) -> dict[TypeKey, int]:
    """Sleepers that are due become PENDING; answers how many of each type."""
    if limit <= 0:
        return {}
    row = writer.database.row("due_sleepers", (now, limit))
    due = _decode_triples(row[0]) if row else []
    if not due:
        return {}
    given = {"run_ids": write_json([run_id for run_id, _, _ in due]), "now": now}
    writer.database.run("wake_runs", given)
    writer.database.run("complete_due_sleeps", given)
    woken: dict[TypeKey, int] = {}
    for _, namespace, workflow_type in due:
        key = TypeKey(namespace, workflow_type)
        woken[key] = woken.get(key, 0) + 1
    return woken


def _end_leases(writer: Writer, now: Timestamp, limit: int, types: dict[TypeKey, None]) -> list[Held]:
    if limit <= 0:
        return []
    lost: list[Held] = []
    for run_id, namespace, workflow_type, lease, nonce in writer.database.rows("expired_leases", (now, limit)):
        lost.append(Held(RunKey(namespace, run_id), Lease(lease, nonce)))
        types[TypeKey(namespace, workflow_type)] = None
        writer.fences.forget(run_id)
    if lost:
        ids = write_json([one.run.run_id for one in lost])
        writer.database.run("end_leases", {"run_ids": ids, "now": now})
    return lost


def note_beats(writer: Writer, beats: Sequence[WorkerBeat]) -> None:
    rows = [(beat.worker_id, beat.active_count, beat.completed_delta, beat.failed_delta, beat.at) for beat in beats]
    writer.database.run("note_beats", {"rows": write_json(rows)})


def look(database: Database) -> Horizon:
    """See Store.look."""
    row = database.row("look")
    assert row is not None  # it has no condition
    due = [at for at in row[1:5] if at is not None]
    pending = tuple(TypeKey(*pair) for pair in _decode_pairs(row[5]))
    return Horizon(row[0], min(due, default=None), pending)
