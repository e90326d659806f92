"""Makes a sleep, retry or delayed start due now. Decided in core/run/wakes.py."""

from ....core.effects import NO_EFFECTS, Effects
from ....core.records import RunKey
from ....core.run.control import result_effects
from ....core.run.outcomes import Refused
from ....core.run.wakes import NAMED_WAITS, WOKEN, Wake, WakeableRun, WakeableStep, WakePlan, Woken, decide_wake
from ....core.states import RUN_STATUS_OF_CODE, RunCode
from ....core.times import Timestamp
from ...rows import read_error, require_storable, write_error, write_json
from ..write.endings import run_head
from ..write.fast_path import Writer


def wake_run(writer: Writer, run: RunKey, wake: Wake, now: Timestamp) -> tuple[Woken | Refused | None, Effects]:
    """See Store.wake_run."""
    require_storable(step_id=wake.step_id, request_id=wake.request_id)
    database = writer.database
    row = database.row("run_to_change", (run.run_id,))
    if row is None or row[1] != run.namespace:
        return None, NO_EFFECTS
    head = run_head(row)
    times = database.row("run_to_wake", {"run_id": run.run_id, "woken": WOKEN, "request_id": wake.request_id})
    assert times is not None  # its state was just read
    attempt, due_at, blocked_by, waits_itself, known = times
    state = WakeableRun(
        run=run,
        status=head.status,
        attempt=attempt,
        due_at=due_at,
        waits_itself=bool(waits_itself),
        pause_requested=bool(row[8]),
        blocked_by=blocked_by,
        steps=_steps(writer, run, wake.step_id),
    )
    plan = decide_wake(state, wake, read_error(known), now)
    if not isinstance(plan, WakePlan):
        return plan, NO_EFFECTS
    step_id = "" if plan.step is None else plan.step.step_id
    if step_id:
        database.run("make_due", {"run_id": run.run_id, "step_id": step_id, "now": now})
    numbered = database.row("number_wake", (run.run_id,))
    assert numbered is not None  # as above
    note = {"attempt": plan.attempt, "now": now, "due_at": plan.due_at, "note": write_error(plan.note)}
    database.run("note_wake", {"run_id": run.run_id, "woken": WOKEN, "seq": numbered[0], **note})
    writer.fences.forget(run.run_id)
    status = head.status
    if status == RunCode.SLEEPING:
        runs = {"run_ids": write_json([run.run_id]), "now": now}
        database.run("wake_runs", runs)
        database.run("end_due_waits", runs)
        status = RunCode.PENDING
    woken = Woken(run=run, status=RUN_STATUS_OF_CODE[status], woken=True, step_id=step_id, due_at=plan.due_at)
    return woken, result_effects(head)


def _steps(writer: Writer, run: RunKey, step_id: str) -> tuple[WakeableStep, ...]:
    if step_id:
        rows = writer.database.rows("step_to_wake", (run.run_id, step_id))
    else:
        rows = writer.database.rows("steps_to_wake", {"run_id": run.run_id, "limit": NAMED_WAITS})
    return tuple(
        WakeableStep(
            step_id=row[0],
            name=row[1],
            kind=row[2],
            status=row[3],
            attempt=row[4],
            wake_at=row[5],
            retry_at=row[6],
            child_run_id=row[7],
        )
        for row in rows
    )
