"""Control of runs: cancel, terminate, pause, resume, adopt; and the effects on their children."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ....core.effects import NO_EFFECTS, Effects, merge, pending_effects
from ....core.error_details import ErrorDetail
from ....core.ids import is_uuid
from ....core.keys.audit import AuditEntry
from ....core.pages.pauses import PAUSED, RESUMED, pause_note
from ....core.records import RunKey, Served
from ....core.run.control import (
    after_cancel,
    after_pause,
    after_terminate,
    can_resume,
    cancel_effects,
    cancelled_error,
    decide_adoption,
    end_effects,
    pause_effects,
    reopen_effects,
    terminated_error,
)
from ....core.run.outcomes import Refused
from ....core.run.refusals import cascade_reason
from ....core.states import RUN_STATUS_OF_CODE, RunCode, RunStatus
from ....core.times import Timestamp
from ...operate.audit import note_audit
from ...protocol import TypeKey
from ...rows import write_error
from ..connection.connection import Row, Session
from ..connection.failures import CONTENTION
from ..write.endings import MovedError, lock_family, note_pause, notify_parents, run_head, run_locked
from ..write.handing_on import hand_on

_TRIES = 3

Answer = TypeVar("Answer")


async def with_run(
    session: Session, run: RunKey, act: Callable[[Row], Awaitable[tuple[Answer, Effects]]]
) -> tuple[Answer | None, Effects]:
    """Run `act` in a transaction that has locked the run and those that wait for its end. None: no such run."""
    if not is_uuid(run.run_id):
        return None, NO_EFFECTS
    for _ in range(_TRIES):
        try:
            async with session.transaction():
                row = (await lock_family(session, [run.run_id], [run.run_id])).get(run.run_id)
                if row is None or row["namespace"] != run.namespace:
                    return None, NO_EFFECTS
                return await act(row)
        except (*CONTENTION, MovedError):
            continue
    raise run_locked(run.run_id)


async def cancel_run(
    session: Session, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp
) -> tuple[RunStatus | None, Effects]:
    return await with_run(session, run, lambda row: cancel_locked(session, row, reason, now, cancel_by))


async def cancel_locked(
    session: Session, row: Row, reason: str, now: Timestamp, cancel_by: Timestamp
) -> tuple[RunStatus, Effects]:
    """`row` comes from `lock_family`."""
    then = after_cancel(row["status"], row["lease"])
    if then is None:
        return _unchanged(row)
    error = cancelled_error(reason) if then is RunCode.CANCELLED else None
    await session.read(
        "cancel_run",
        run_id=row["run_id"],
        now=now,
        cancel_by=cancel_by,
        reason=reason,
        status=int(then),
        error=write_error(error),
    )
    effects = [cancel_effects(run_head(row), then, reason, cancel_by)]
    if then is RunCode.CANCELLED:
        effects.append(await _after_end(session, row, error, now))
    return RUN_STATUS_OF_CODE[then], merge(effects)


async def _after_end(session: Session, row: Row, error: ErrorDetail | None, now: Timestamp) -> Effects:
    """The run has just been ended: what follows for others."""
    notified = await notify_parents(session, [(row["run_id"], RunCode.CANCELLED, error)], now)
    return merge([notified, await hand_on(session, [row["run_id"]] if row["unread_signals"] else [], now)])


async def terminate_run(session: Session, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
    return await with_run(session, run, lambda row: _terminate(session, row, reason, now))


async def _terminate(session: Session, row: Row, reason: str, now: Timestamp) -> tuple[RunStatus, Effects]:
    if after_terminate(row["status"]) is None:
        return _unchanged(row)
    error = terminated_error(reason)
    await session.read("terminate_run", run_id=row["run_id"], now=now, error=write_error(error))
    after = await _after_end(session, row, error, now)
    return RunStatus.CANCELLED, merge([end_effects(run_head(row), RunStatus.CANCELLED, error), after])


async def pause_run(session: Session, run: RunKey, reason: str, now: Timestamp) -> tuple[RunStatus | None, Effects]:
    return await with_run(session, run, lambda row: _pause(session, row, reason, now))


async def _pause(session: Session, row: Row, reason: str, now: Timestamp) -> tuple[RunStatus, Effects]:
    cancel_requested = row["cancel_requested_at"] is not None
    then = after_pause(row["status"], pause_requested=row["pause_requested"], cancel_requested=cancel_requested)
    if then is None:
        return _unchanged(row)
    await session.read("pause_run", run_id=row["run_id"], reason=reason, now=now)
    await note_pause(session, row["run_id"], PAUSED, now, pause_note(row["run_id"], reason))
    return RUN_STATUS_OF_CODE[then], pause_effects(run_head(row), reason)


async def resume_run(session: Session, run: RunKey, now: Timestamp) -> tuple[RunStatus | None, Effects]:
    return await with_run(session, run, lambda row: _resume(session, row, now))


async def _resume(session: Session, row: Row, now: Timestamp) -> tuple[RunStatus, Effects]:
    if not can_resume(row["status"], pause_requested=row["pause_requested"]):
        return _unchanged(row)
    [resumed] = await session.read("resume_run", run_id=row["run_id"], now=now)
    await note_pause(session, row["run_id"], RESUMED, now, pause_note(row["run_id"]))
    status = RUN_STATUS_OF_CODE[resumed["status"]]
    return status, reopen_effects(run_head(row), status)


async def adopt_run(
    session: Session, run: RunKey, build_id: str, now: Timestamp, *, audit: AuditEntry | None = None
) -> tuple[RunStatus | Refused | None, Effects]:
    return await with_run(session, run, lambda row: _adopt(session, row, build_id, now, audit))


async def _adopt(
    session: Session, row: Row, build_id: str, now: Timestamp, audit: AuditEntry | None
) -> tuple[RunStatus | Refused, Effects]:
    run_id = row["run_id"]
    [pinned] = await session.read("pinned_build", run_id=run_id)
    adoption = decide_adoption(run_id, row["status"], pinned["pinned_build"], build_id)
    if isinstance(adoption, Refused):
        return adoption, NO_EFFECTS
    if not adoption.changes:
        return _unchanged(row)
    await session.read("pin_build", run_id=run_id, build_id=adoption.build_id)
    await note_audit(session, audit)
    if adoption.resumes:
        return await _resume(session, row, now)
    status = RUN_STATUS_OF_CODE[row["status"]]
    return status, reopen_effects(run_head(row), status)


async def resume_diverged(
    session: Session, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp
) -> Effects:
    pairs = sorted({(each.workflow_type, each.version) for each in served})
    types, versions = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows = await session.write(
        "resume_diverged",
        namespace=namespace,
        workflow_types=types,
        versions=versions,
        build_id=build_id,
        now=now,
        resumed=RESUMED,
        note=write_error(pause_note("")),
    )
    return pending_effects(TypeKey(row["namespace"], row["workflow_type"]) for row in rows)


async def cascade(session: Session, now: Timestamp, cancel_by: Timestamp, limit: int) -> tuple[bool, Effects]:
    """Never waits for a lock: a locked run keeps its mark and is processed later."""
    async with session.transaction():
        parents = [row["run_id"] for row in await session.read("lock_cascading", limit=limit)]
        if not parents:
            return False, NO_EFFECTS
        open_ids = [row["run_id"] for row in await session.read("children_to_cancel", parents=parents, limit=limit + 1)]
        children = await _lock_children(session, open_ids[:limit])
        cancelled = [
            (await cancel_locked(session, row, cascade_reason(row["parent_run_id"]), now, cancel_by))[1]
            for row in children
        ]
        left = len(open_ids) - len(children)
        if not left:
            await session.read("end_cascade", run_ids=parents)
    effects = merge(cancelled)
    return effects.children_due or bool(left and cancelled) or len(parents) == limit, effects


async def _lock_children(session: Session, run_ids: Sequence[str]) -> list[Row]:
    if not run_ids:
        return []
    children = await session.read("lock_children", run_ids=run_ids)
    locked = [row["run_id"] for row in children]
    blocked = {row["run_id"] for row in await session.read("lock_parents", run_ids=locked)}
    return [row for row in children if row["run_id"] not in blocked]


def _unchanged(row: Row) -> tuple[RunStatus, Effects]:
    return RUN_STATUS_OF_CODE[row["status"]], NO_EFFECTS
