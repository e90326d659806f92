"""Timers: what is due, and when something is due next."""

from collections.abc import Sequence
from typing import NamedTuple

from ....core.effects import Effects, merge
from ....core.error_details import ErrorDetail
from ....core.events import LOST_RETRY_AT
from ....core.limits import LOST_ATTEMPT_NUMBERS, POLL_TYPES
from ....core.pages.pauses import PAUSED
from ....core.records import HOLDER_DIED, Lease, RunKey, RunLease
from ....core.run.control import after_lost_lease, cancelled_error, deadline_error, fire_effects
from ....core.run.refusals import lost_attempt
from ....core.states import RunCode, require_transition
from ....core.times import Timestamp
from ...protocol import ExpiredLease, Fired, Heartbeat, PendingWork, TypeKey
from ...rows import write_error
from ..connection.connection import Row, Session
from ..write.endings import End, note_pause, notify_parents, run_head
from ..write.handing_on import hand_on

_BEFORE_ALL_TYPES = TypeKey("", "")
_ENDED = (RunCode.FAILED, RunCode.CANCELLED)


class _Due(NamedTuple):
    """What happens to a run that is due."""

    row: Row
    status: RunCode
    error: ErrorDetail | None = None  # why it ends, or is paused
    lost: bool = False  # its worker's lease ended


async def fire(
    session: Session, now: Timestamp, *, end_leases: bool, limit: int, claim_cap: int = 10
) -> tuple[Fired, Effects]:
    """Lock what is due, then process it: the second statement sees everything recorded before the locks were held."""
    async with session.transaction():
        ended_by = now if end_leases else HOLDER_DIED
        rows = await session.read("lock_due_runs", now=now, limit=limit, leases_ended_by=ended_by)
        due = [each for row in rows if (each := _due(row, now, ended_by=ended_by, claim_cap=claim_cap)) is not None]
        if due:
            due = await _with_parents(session, due)
        if due:
            if lost := [_run(each).run_id for each in due if each.lost]:
                error = write_error(lost_attempt())
                await session.read(
                    "keep_lost_attempts",
                    now=now,
                    run_ids=lost,
                    error=error,
                    most_attempts=LOST_ATTEMPT_NUMBERS,
                    retry_at=LOST_RETRY_AT,
                )
            for each in due:
                require_transition(each.row["status"], each.status)
            runs = [
                {
                    "run_id": _run(each).run_id,
                    "status": int(each.status),
                    "error": write_error(each.error),
                    "lost": int(each.lost),
                }
                for each in due
            ]
            await session.read("fire_runs", now=now, runs=runs)
            for each in due:
                if each.status is RunCode.PAUSED and each.error is not None:
                    await note_pause(session, _run(each).run_id, PAUSED, now, each.error)
        ended = [each for each in due if each.status in _ENDED]
        endings: list[End] = [(_run(e).run_id, e.status, e.error) for e in ended if e.row["watched"]]
        notified = await notify_parents(session, endings, now)
        unread = await hand_on(session, [_run(e).run_id for e in ended if e.row["unread_signals"]], now)
    effects = [fire_effects(run_head(each.row), each.status, each.error, lost=each.lost) for each in due]
    expired = tuple(_expired(each) for each in due if each.lost)
    return Fired(expired, more=len(rows) >= limit), merge([*effects, notified, unread])


def _expired(due: _Due) -> ExpiredLease:
    row = due.row
    return ExpiredLease(
        leased=RunLease(_run(due), Lease(row["lease"], row["nonce"])),
        workflow_id=row["workflow_id"],
        workflow_type=row["workflow_type"],
        times=row["lost_leases"] + 1,
        problem=due.error,
    )


def _run(due: _Due) -> RunKey:
    return RunKey(due.row["namespace"], due.row["run_id"])


def _due(row: Row, now: Timestamp, *, ended_by: Timestamp, claim_cap: int) -> _Due | None:
    """`ended_by`: leases that ended by then are taken back."""
    if (end := _end_of(row, now)) is not None:
        return _Due(row, *end)
    if row["status"] != RunCode.RUNNING:
        return _Due(row, RunCode.PENDING)
    if row["lease_until"] > ended_by:
        return None
    times = row["lost_leases"] + 1
    then, problem = after_lost_lease(row["run_id"], times, claim_cap, pause_requested=row["pause_requested"])
    return _Due(row, then, problem, lost=True)


async def _with_parents(session: Session, due: list[_Due]) -> list[_Due]:
    """Leaves out runs whose end a locked run waits for; they are due again next time. This never waits for a lock,
    since it locks parents after their children."""
    ending = [_run(each).run_id for each in due if each.status in _ENDED and each.row["watched"]]
    if not ending:
        return due
    blocked = {row["run_id"] for row in await session.read("lock_parents", run_ids=ending)}
    return [each for each in due if _run(each).run_id not in blocked]


def _end_of(row: Row, now: Timestamp) -> tuple[RunCode, ErrorDetail] | None:
    """How the run ends, if it does. A deadline or cancel limit takes precedence over its lease."""
    deadline_at, cancel_by = row["deadline_at"], row["cancel_by"]
    if deadline_at is not None and deadline_at <= now:
        return RunCode.FAILED, deadline_error(deadline_at)
    if cancel_by is not None and cancel_by <= now:
        return RunCode.CANCELLED, cancelled_error(row["cancel_reason"] or "", cancel_by)
    return None


async def poll(
    session: Session, heartbeats: Sequence[Heartbeat], now: Timestamp, after: TypeKey | None = None
) -> PendingWork:
    namespace, workflow_type = after or _BEFORE_ALL_TYPES
    rows = [
        {
            "worker_id": beat.worker_id,
            "active_count": beat.active_count,
            "completed": beat.completed_delta,
            "failed": beat.failed_delta,
            "at": beat.at,
            "namespace": beat.namespace,
        }
        for beat in heartbeats
    ]
    [row] = await session.write(
        "poll", heartbeats=rows, namespace=namespace, workflow_type=workflow_type, most_types=POLL_TYPES
    )
    session.note_standbys(row["standby_names"])
    pending = zip(row["namespaces"] or (), row["workflow_types"] or (), strict=True)
    types = tuple(TypeKey(*pair) for pair in pending)
    draining = tuple((namespace, worker_id) for namespace, worker_id in row["draining"] or ())
    return PendingWork(
        row["store_now"],
        row["next_due_at"],
        types,
        cascade=row["cascade"],
        draining=draining,
        bulk=row["bulk"],
        next_schedule_at=row["next_schedule_at"],
    )
