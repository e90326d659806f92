"""What the clock does to runs, and what is ahead."""

from collections.abc import Sequence

import msgspec

from ....core.events import LOST_RETRY_AT
from ....core.limits import LOOK_TYPES, LOST_ATTEMPT_NUMBERS
from ....core.records import HOLDER_DIED, Held, Lease, RunEnd, RunKey
from ....core.run.control import after_lost_lease, cancelled_error, deadline_error
from ....core.run.refusals import lost_attempt
from ....core.states import RunCode, RunStatus
from ....core.times import Timestamp
from ...protocol import ExpiredLease, Fired, Horizon, TypeKey, WorkerBeat
from ...rows import write_error, write_json
from ..connection.connection import Database
from ..write.endings import Told, end
from ..write.fast_path import Writer

_BEFORE_ALL_TYPES = TypeKey("", "")
_decode_triples = msgspec.json.Decoder(list[tuple[str, str, str]]).decode
_decode_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode


def fire(writer: Writer, now: Timestamp, end_leases: bool, limit: int, claim_cap: int) -> Fired:
    """See Store.fire."""
    told = Told()
    ended = _pass_deadlines(writer, now, limit, told)
    ended += _pass_cancel_limits(writer, now, limit - len(ended), told)
    left = limit - len(ended)
    woken = _wake(writer, now, left)
    left -= sum(woken.values())
    types = dict.fromkeys(woken)
    expired = _end_leases(writer, now if end_leases else HOLDER_DIED, now, left, types, claim_cap)
    left -= len(expired)
    lost = tuple(each.held for each in expired)
    return Fired(tuple(types), tuple(ended), lost, left <= 0, told.stirred, told.has_children, tuple(expired))


def _pass_deadlines(writer: Writer, now: Timestamp, limit: int, told: Told) -> list[RunEnd]:
    ends: list[RunEnd] = []
    for run_id, namespace, deadline_at in writer.database.rows("past_deadline", (now, limit)):
        error = deadline_error(deadline_at)
        ends.append(end(writer, RunKey(namespace, run_id), RunStatus.FAILED, error, now, told))
    return ends


def _pass_cancel_limits(writer: Writer, now: Timestamp, limit: int, told: Told) -> list[RunEnd]:
    ends: list[RunEnd] = []
    for run_id, namespace, reason, cancel_by in writer.database.rows("past_cancel_limit", (now, limit)):
        error = cancelled_error(reason or "", cancel_by)
        ends.append(end(writer, RunKey(namespace, run_id), RunStatus.CANCELLED, error, now, told))
    return ends


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
    writer.database.run("end_due_waits", given)
    woken: dict[TypeKey, int] = {}
    for _, namespace, workflow_type in due:
        key = TypeKey(namespace, workflow_type)
        woken[key] = woken.get(key, 0) + 1
    return woken


def _end_leases(  # noqa: PLR0917  what the clock knows
    writer: Writer, ended_by: Timestamp, now: Timestamp, limit: int, types: dict[TypeKey, None], claim_cap: int
) -> list[ExpiredLease]:
    """Runs whose holder did not renew: PENDING; PAUSED if that was asked for, or if nobody gets on with it."""
    if limit <= 0:
        return []
    expired: list[ExpiredLease] = []
    back: list[str] = []
    paused: list[tuple[str, str | None]] = []
    for run_id, namespace, workflow_type, workflow_id, lease, nonce, lost_leases, pause in writer.database.rows(
        "expired_leases", (ended_by, limit)
    ):
        times: int = lost_leases + 1
        then, problem = after_lost_lease(run_id, times, claim_cap, pause_requested=bool(pause))
        expired.append(
            ExpiredLease(
                held=Held(RunKey(namespace, run_id), Lease(lease, nonce)),
                workflow_id=workflow_id,
                workflow_type=workflow_type,
                times=times,
                problem=problem,
            )
        )
        writer.fences.forget(run_id)
        if then is RunCode.PAUSED:
            paused.append((run_id, None if problem is None else write_error(problem)))
        else:
            back.append(run_id)
            types[TypeKey(namespace, workflow_type)] = None
    if expired:
        _keep_lost_attempts(writer, [one.held.run.run_id for one in expired], now)
    for run_id, written in paused:
        writer.database.run("end_lease_paused", {"run_id": run_id, "problem": written})
    if back:
        writer.database.run("end_leases", {"run_ids": write_json(back), "now": now})
    return expired


def _keep_lost_attempts(writer: Writer, run_ids: list[str], now: Timestamp) -> None:
    """Before their leases end: what was begun under them, and not reported, is told in the history."""
    given = {"run_ids": write_json(run_ids), "now": now, "numbers": LOST_ATTEMPT_NUMBERS, "retry_at": LOST_RETRY_AT}
    if writer.database.run("keep_lost_attempts", given | {"error": write_error(lost_attempt())}):
        writer.database.run("number_lost_attempts", {"run_ids": given["run_ids"]})


def note_beats(writer: Writer, beats: Sequence[WorkerBeat]) -> None:
    rows = [
        (beat.worker_id, beat.active_count, beat.completed_delta, beat.failed_delta, beat.at, beat.namespace)
        for beat in beats
    ]
    writer.database.run("note_beats", {"rows": write_json(rows)})


def look(database: Database, after: TypeKey | None) -> Horizon:
    """See Store.look."""
    namespace, workflow_type = after or _BEFORE_ALL_TYPES
    row = database.row("look", {"namespace": namespace, "workflow_type": workflow_type, "limit": LOOK_TYPES})
    assert row is not None  # it has no condition
    due = [at for at in row[1:5] if at is not None]
    pending = tuple(TypeKey(*pair) for pair in _decode_pairs(row[5]))
    return Horizon(row[0], min(due, default=None), pending, bool(row[6]), bulk=bool(row[7]), next_schedule_at=row[8])
