"""What the clock does to runs, and what is ahead."""

from collections.abc import Sequence

from ...core.errors import ErrorCode, ErrorDetail, ErrorKind
from ...core.records import Held, Lease, RunEnd, RunKey
from ...core.states import RUN_STATUS_OF_CODE, RunCode
from ...core.times import Timestamp, to_datetime
from ..protocol import Fired, Horizon, TypeKey, WorkerBeat
from .connections import Row, Session
from .rows import write_error


async def fire(session: Session, now: Timestamp, *, end_leases: bool, limit: int) -> Fired:
    """Lock what is due, then do it: the second statement sees everything recorded before the locks were held."""
    woken: set[TypeKey] = set()
    ended: list[RunEnd] = []
    lost: list[Held] = []
    changes: list[tuple[str, int, str | None, int]] = []
    async with session.transaction():
        rows = await session.read("lock_due_runs", now, limit, end_leases)
        for row in rows:
            run = RunKey(row["namespace"], row["run_id"])
            if (end := _end_of(row, now)) is not None:
                status, error = end
                changes.append((run.run_id, int(status), write_error(error), 0))
                ended.append(RunEnd(run=run, status=RUN_STATUS_OF_CODE[status], error=error))
                continue
            if row["status"] == RunCode.RUNNING:
                if not end_leases:
                    continue
                lost.append(Held(run, Lease(row["lease"], row["nonce"])))
            changes.append((run.run_id, int(RunCode.PENDING), None, int(row["status"] == RunCode.RUNNING)))
            woken.add(TypeKey(row["namespace"], row["workflow_type"]))
        if changes:
            await session.read("fire_runs", now, *zip(*changes, strict=True))
    return Fired(tuple(sorted(woken)), tuple(ended), tuple(lost), more=len(rows) >= limit)


def _end_of(row: Row, now: Timestamp) -> tuple[RunCode, ErrorDetail] | None:
    """How the run ends, if it is one that does: what it is about comes before who holds it."""
    deadline_at, cancel_by = row["deadline_at"], row["cancel_by"]
    if deadline_at is not None and deadline_at <= now:
        message = f"the run did not end before its deadline, {to_datetime(deadline_at).isoformat()}"
        return RunCode.FAILED, ErrorDetail(code=ErrorCode.TIMEOUT, kind=ErrorKind.TIMEOUT, message=message)
    if cancel_by is not None and cancel_by <= now:
        reason = row["cancel_reason"] or "cancelled"
        message = f"{reason} (its cleanup had not ended by {to_datetime(cancel_by).isoformat()})"
        return RunCode.CANCELLED, ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message=message)
    return None


async def look(session: Session, beats: Sequence[WorkerBeat]) -> Horizon:
    [row] = await session.write(
        "look",
        [beat.worker_id for beat in beats],
        [beat.active_count for beat in beats],
        [beat.completed_delta for beat in beats],
        [beat.failed_delta for beat in beats],
        [beat.at for beat in beats],
    )
    pending = zip(row["namespaces"] or (), row["workflow_types"] or (), strict=True)
    return Horizon(row["store_now"], row["next_due_at"], tuple(TypeKey(*pair) for pair in pending))
