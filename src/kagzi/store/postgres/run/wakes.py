"""Makes a sleep, retry or delayed start due now. Decided in core/run/wakes.py."""

from ....core.effects import NO_EFFECTS, Effects
from ....core.ids import is_uuid
from ....core.records import RunKey
from ....core.run.control import result_effects
from ....core.run.outcomes import Refused
from ....core.run.state import NEVER
from ....core.run.wakes import NAMED_WAITS, WOKEN, Wake, WakeableRun, WakeableStep, WakePlan, Woken, decide_wake
from ....core.states import RUN_STATUS_OF_CODE, RunCode
from ....core.times import Timestamp
from ...rows import read_error, write_error
from ..connection.connection import Row, Session
from ..connection.failures import CONTENTION
from ..write.endings import lock_family, run_head, run_locked

_TRIES = 3


async def wake_run(session: Session, run: RunKey, wake: Wake, now: Timestamp) -> tuple[Woken | Refused | None, Effects]:
    if not is_uuid(run.run_id):
        return None, NO_EFFECTS
    for _ in range(_TRIES):
        try:
            async with session.transaction():
                row = (await lock_family(session, [run.run_id], [])).get(run.run_id)
                if row is None or row["namespace"] != run.namespace:
                    return None, NO_EFFECTS
                return await _wake(session, row, run, wake, now)
        except CONTENTION:
            continue
    raise run_locked(run.run_id)


async def _wake(session: Session, row: Row, run: RunKey, wake: Wake, now: Timestamp) -> tuple[Woken | Refused, Effects]:
    [times] = await session.read("run_to_wake", run_id=run.run_id, request_id=wake.request_id, woken=WOKEN)
    state = WakeableRun(
        run=run,
        status=row["status"],
        attempt=times["attempt"],
        due_at=times["due_at"],
        waits_itself=times["waits_itself"],
        pause_requested=row["pause_requested"],
        blocked_by=times["blocked_by"],
        steps=await _steps(session, run, wake.step_id),
    )
    plan = decide_wake(state, wake, read_error(times["known"]), now)
    if not isinstance(plan, WakePlan):
        return plan, NO_EFFECTS
    step_id = "" if plan.step is None else plan.step.step_id
    await session.read(
        "note_wake",
        run_id=run.run_id,
        woken=WOKEN,
        attempt=plan.attempt,
        now=now,
        due_at=plan.due_at,
        note=write_error(plan.note),
        step_id=step_id,
    )
    head = run_head(row)
    if head.status == RunCode.SLEEPING:
        woken = {"run_id": run.run_id, "status": int(RunCode.PENDING), "error": None, "lost": 0}
        await session.read("fire_runs", now=now, runs=[woken])
    status = RUN_STATUS_OF_CODE[RunCode.PENDING if head.status == RunCode.SLEEPING else head.status]
    return Woken(run=run, status=status, woken=True, step_id=step_id, due_at=plan.due_at), result_effects(head)


async def _steps(session: Session, run: RunKey, step_id: str) -> tuple[WakeableStep, ...]:
    if step_id:
        rows = await session.read("step_to_wake", run_id=run.run_id, step_id=step_id)
    else:
        rows = await session.read("steps_to_wake", run_id=run.run_id, never=NEVER, limit=NAMED_WAITS)
    return tuple(
        WakeableStep(
            step_id=row["step_id"],
            name=row["name"],
            kind=row["kind"],
            status=row["status"],
            attempt=row["attempt"],
            wake_at=row["wake_at"],
            retry_at=row["retry_at"],
            child_run_id=row["child_run_id"],
        )
        for row in rows
    )
