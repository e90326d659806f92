"""Timers: what is due, and when something is due next."""

from collections.abc import Sequence

import msgspec

from ....core.effects import Effects, merge, pending_effects
from ....core.error_details import ErrorDetail
from ....core.events import LOST_RETRY_AT
from ....core.limits import LOST_ATTEMPT_NUMBERS, POLL_TYPES
from ....core.pages.pauses import PAUSED
from ....core.records import HOLDER_DIED, RunLease
from ....core.run.control import after_lost_lease, cancelled_error, deadline_error, fire_effects
from ....core.run.refusals import lost_attempt
from ....core.states import RunCode, RunStatus
from ....core.times import Timestamp
from ...protocol import ExpiredLease, Fired, Heartbeat, PendingWork, TypeKey
from ...rows import write_error, write_json
from ..connection.connection import Database
from ..write.endings import end, note_pause, run_head
from ..write.fast_path import Writer

_BEFORE_ALL_TYPES = TypeKey("", "")
_decode_triples = msgspec.json.Decoder(list[tuple[str, str, str]]).decode
_decode_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode


def fire(writer: Writer, now: Timestamp, *, end_leases: bool, limit: int, claim_cap: int = 10) -> tuple[Fired, Effects]:
    """See Store.fire."""
    effects = [
        end(writer, run_head(row), RunStatus.FAILED, deadline_error(row[8]), now)
        for row in writer.database.rows("past_deadline", (now, limit))
    ]
    effects += [
        end(writer, run_head(row), RunStatus.CANCELLED, cancelled_error(row[9] or "", row[8]), now)
        for row in writer.database.rows("past_cancel_limit", (now, limit - len(effects)))
    ]
    left = limit - len(effects)
    woken = _wake(writer, now, left)
    effects.append(pending_effects(woken))
    left -= len(woken)
    expired = _end_leases(writer, now if end_leases else HOLDER_DIED, now, left, effects, claim_cap)
    return Fired(tuple(expired), more=left <= len(expired)), merge(effects)


def _wake(writer: Writer, now: Timestamp, limit: int) -> list[TypeKey]:
    """Sleeping runs that are due become PENDING; returns the type of each."""
    if limit <= 0:
        return []
    row = writer.database.row("due_sleepers", (now, limit))
    due = _decode_triples(row[0]) if row else []
    if due:
        runs = {"run_ids": write_json([run_id for run_id, _, _ in due]), "now": now}
        writer.database.run("wake_runs", runs)
        writer.database.run("end_due_waits", runs)
    return [TypeKey(namespace, workflow_type) for _, namespace, workflow_type in due]


def _end_leases(  # noqa: PLR0917  the verb's arguments, and its effects
    writer: Writer, ended_by: Timestamp, now: Timestamp, limit: int, effects: list[Effects], claim_cap: int
) -> list[ExpiredLease]:
    """Runs whose lease was not renewed become PENDING; or PAUSED, on request or after too many lost leases."""
    if limit <= 0:
        return []
    expired: list[ExpiredLease] = []
    back: list[str] = []
    paused: list[tuple[str, ErrorDetail | None]] = []
    for row in writer.database.rows("expired_leases", (ended_by, limit)):
        head = run_head(row)
        run_id, workflow_id, times = head.run.run_id, row[8], row[9] + 1
        then, problem = after_lost_lease(run_id, times, claim_cap, pause_requested=bool(row[10]))
        expired.append(
            ExpiredLease(
                leased=RunLease(head.run, head.lease),
                workflow_id=workflow_id,
                workflow_type=head.workflow_type,
                times=times,
                problem=problem,
            )
        )
        effects.append(fire_effects(head, then, problem, lost=True))
        writer.fences.forget(run_id)
        if then is RunCode.PAUSED:
            paused.append((run_id, problem))
        else:
            back.append(run_id)
    if expired:
        _keep_lost_attempts(writer, [one.leased.run.run_id for one in expired], now)
    for run_id, problem in paused:
        written = None if problem is None else write_error(problem)
        writer.database.run("end_lease_paused", {"run_id": run_id, "problem": written})
        if problem is not None:
            note_pause(writer, run_id, PAUSED, now, problem)
    if back:
        writer.database.run("end_leases", {"run_ids": write_json(back), "now": now})
    return expired


def _keep_lost_attempts(writer: Writer, run_ids: list[str], now: Timestamp) -> None:
    """Before leases end, record as lost the attempts that were begun under them and not reported."""
    parameters = {
        "run_ids": write_json(run_ids),
        "now": now,
        "numbers": LOST_ATTEMPT_NUMBERS,
        "retry_at": LOST_RETRY_AT,
    }
    if writer.database.run("keep_lost_attempts", parameters | {"error": write_error(lost_attempt())}):
        writer.database.run("number_lost_attempts", {"run_ids": parameters["run_ids"]})


def note_heartbeats(writer: Writer, heartbeats: Sequence[Heartbeat]) -> None:
    rows = [
        (beat.worker_id, beat.active_count, beat.completed_delta, beat.failed_delta, beat.at, beat.namespace)
        for beat in heartbeats
    ]
    writer.database.run("note_heartbeats", {"rows": write_json(rows)})


def poll(database: Database, after: TypeKey | None) -> PendingWork:
    """See Store.poll."""
    namespace, workflow_type = after or _BEFORE_ALL_TYPES
    row = database.row("poll", {"namespace": namespace, "workflow_type": workflow_type, "limit": POLL_TYPES})
    assert row is not None  # the statement always returns a row
    due = [at for at in row[1:5] if at is not None]
    pending = tuple(TypeKey(*pair) for pair in _decode_pairs(row[5]))
    return PendingWork(
        row[0], min(due, default=None), pending, bool(row[6]), bulk=bool(row[7]), next_schedule_at=row[8]
    )
