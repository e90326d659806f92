"""What people do to runs: cancel, terminate, pause, resume; and what that does to their children."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from ....core.errors import Unavailable
from ....core.ids import is_uuid
from ....core.records import Held, Lease, RunKey, Served
from ....core.run.control import (
    after_cancel,
    after_pause,
    after_terminate,
    can_resume,
    cancelled_error,
    terminated_error,
)
from ....core.run.refusals import cascade_reason
from ....core.states import RUN_STATUS_OF_CODE, RunCode, RunStatus
from ....core.times import Timestamp
from ...protocol import Cancelled, Cascaded, Changed, TypeKey
from ...rows import write_error
from ..connection.connection import Row, Session
from ..connection.failures import CONTENTION
from ..write.endings import MovedError, lock_family, tell_parents

_TRIES = 3

Answer = TypeVar("Answer")


async def with_run(session: Session, run: RunKey, act: Callable[[Row], Awaitable[Answer]]) -> Answer | None:
    """Act on the run in a transaction that has locked it, and whoever waits for its end. None: there is no such run."""
    if not is_uuid(run.run_id):
        return None
    for _ in range(_TRIES):
        try:
            async with session.transaction():
                row = (await lock_family(session, [run.run_id], [run.run_id])).get(run.run_id)
                return None if row is None or row["namespace"] != run.namespace else await act(row)
        except (*CONTENTION, MovedError):
            continue
    raise Unavailable(f"run {run.run_id} is locked by somebody else: try again")


async def cancel_run(
    session: Session, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp
) -> Cancelled | None:
    return await with_run(session, run, lambda row: cancel_locked(session, row, reason, now, cancel_by))


async def cancel_locked(session: Session, row: Row, reason: str, now: Timestamp, cancel_by: Timestamp) -> Cancelled:
    """The row is one of `lock_family`."""
    then = after_cancel(row["status"], row["lease"])
    if then is None:
        return Cancelled(RUN_STATUS_OF_CODE[row["status"]])
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
    has_children: bool = row["has_children"]
    if then is RunCode.CANCELLED:
        stirred = await tell_parents(session, [(row["run_id"], RunCode.CANCELLED, error)], now)
        return Cancelled(RunStatus.CANCELLED, ended=True, stirred=stirred, has_children=has_children)
    if then is RunCode.RUNNING:
        return Cancelled(RunStatus.RUNNING, holder=_holder(row), worker_id=row["worker_id"], has_children=has_children)
    # Also if it was PENDING: a claim may just have passed it over, since it was locked.
    woken = TypeKey(row["namespace"], row["workflow_type"])
    return Cancelled(RunStatus.PENDING, woken=woken, has_children=has_children)


async def terminate_run(session: Session, run: RunKey, reason: str, now: Timestamp) -> Changed | None:
    return await with_run(session, run, lambda row: _terminate(session, row, reason, now))


async def _terminate(session: Session, row: Row, reason: str, now: Timestamp) -> Changed:
    if after_terminate(row["status"]) is None:
        return _unchanged(row)
    error = terminated_error(reason)
    await session.read("terminate_run", run_id=row["run_id"], now=now, error=write_error(error))
    stirred = await tell_parents(session, [(row["run_id"], RunCode.CANCELLED, error)], now)
    running = row["status"] == RunCode.RUNNING
    return Changed(
        RunStatus.CANCELLED,
        row["workflow_type"],
        changed=True,
        holder=_holder(row) if running else None,
        worker_id=row["worker_id"] if running else None,
        stirred=stirred,
        has_children=row["has_children"],
        error=error,
    )


async def pause_run(session: Session, run: RunKey, reason: str, now: Timestamp) -> Changed | None:
    return await with_run(session, run, lambda row: _pause(session, row, reason))


async def _pause(session: Session, row: Row, reason: str) -> Changed:
    cancel_requested = row["cancel_requested_at"] is not None
    then = after_pause(row["status"], pause_requested=row["pause_requested"], cancel_requested=cancel_requested)
    if then is None:
        return _unchanged(row)
    await session.read("pause_run", run_id=row["run_id"], reason=reason)
    running = then is RunCode.RUNNING
    return Changed(
        RUN_STATUS_OF_CODE[then],
        row["workflow_type"],
        changed=True,
        holder=_holder(row) if running else None,
        worker_id=row["worker_id"] if running else None,
    )


async def resume_run(session: Session, run: RunKey, now: Timestamp) -> Changed | None:
    return await with_run(session, run, lambda row: _resume(session, row, now))


async def _resume(session: Session, row: Row, now: Timestamp) -> Changed:
    if not can_resume(row["status"], pause_requested=row["pause_requested"]):
        return _unchanged(row)
    [resumed] = await session.read("resume_run", run_id=row["run_id"], now=now)
    return Changed(RUN_STATUS_OF_CODE[resumed["status"]], row["workflow_type"], changed=True)


async def resume_diverged(
    session: Session, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp
) -> Sequence[TypeKey]:
    pairs = sorted({(each.workflow_type, each.version) for each in served})
    types, versions = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows = await session.write(
        "resume_diverged", namespace=namespace, workflow_types=types, versions=versions, build_id=build_id, now=now
    )
    return tuple(sorted({TypeKey(row["namespace"], row["workflow_type"]) for row in rows}))


async def cascade(session: Session, now: Timestamp, cancel_by: Timestamp, limit: int) -> Cascaded:
    """Nothing is waited for: who is locked keeps his mark and has his turn later."""
    async with session.transaction():
        parents = [row["run_id"] for row in await session.read("lock_cascading", limit=limit)]
        if not parents:
            return Cascaded()
        found = [row["run_id"] for row in await session.read("children_to_cancel", parents=parents, limit=limit + 1)]
        children = await _lock_children(session, found[:limit])
        cancelled = [
            msgspec.structs.replace(
                await cancel_locked(session, row, reason, now, cancel_by), run=_run(row), reason=reason
            )
            for row in children
            for reason in [cascade_reason(row["parent_run_id"])]
        ]
        left = len(found) - len(children)
        if not left:
            await session.read("end_cascade", run_ids=parents)
    deeper = any(each.has_children for each in cancelled)
    return Cascaded(tuple(cancelled), more=deeper or bool(left and cancelled) or len(parents) == limit)


async def _lock_children(session: Session, run_ids: Sequence[str]) -> list[Row]:
    if not run_ids:
        return []
    children = await session.read("lock_children", run_ids=run_ids)
    locked = [row["run_id"] for row in children]
    blocked = {row["run_id"] for row in await session.read("lock_parents", run_ids=locked)}
    return [row for row in children if row["run_id"] not in blocked]


def _unchanged(row: Row) -> Changed:
    return Changed(RUN_STATUS_OF_CODE[row["status"]], row["workflow_type"], changed=False)


def _holder(row: Row) -> Held:
    return Held(_run(row), Lease(row["lease"], row["nonce"]))


def _run(row: Row) -> RunKey:
    return RunKey(row["namespace"], row["run_id"])
