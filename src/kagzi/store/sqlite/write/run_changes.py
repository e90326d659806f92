"""Saves what a command changed in a run (core/run)."""

from typing import Any

from ....core import limits
from ....core.effects import CHILDREN_DUE
from ....core.records import Payload
from ....core.run.commands import BeatStep, ClosingCommand, DecideRace, Park, SetStatus, StartChild, StepCommand
from ....core.run.state import AttemptState, RunState, StepState
from ....core.states import KindCode, RunCode
from ...rows import write_error, write_policy, write_strings
from .children import create_children
from .continue_as_new import create_successor
from .endings import notify_parents
from .fast_path import NotAsPlanned, WritePlan
from .handing_on import hand_on

_RUNNING = int(RunCode.RUNNING)


def save(plan: WritePlan, run: RunState, command: StepCommand | ClosingCommand) -> None:
    """Write what the command changed."""
    database, run_id = plan.database, run.run.run_id
    if run.status != _RUNNING and run.watched:
        plan.flush()  # its parents may be in the plan
    for step in run.steps.values():
        if step.changed:
            _save_step(plan, run_id, step, command)
    for attempt in run.new_attempts:
        database.run("save_attempt", _attempt_row(run_id, attempt))
    if run.signals:
        _save_signals(plan, run)
    if isinstance(command, SetStatus):
        database.run("set_status", (run.status_text, run.progress, run_id))
    if run.children_due:
        plan.effects.append(CHILDREN_DUE)
    (_advance if run.status == _RUNNING else _save_left)(plan, run, command)


def _save_signals(plan: WritePlan, run: RunState) -> None:
    run_id, numbers = run.run.run_id, {signal.step_id: signal.number for signal in run.signals if signal.step_id}
    for signal in run.signals:
        if signal.step_id != signal.read_step_id:
            plan.database.run("move_signal", (signal.step_id or None, run_id, signal.number))
    for step_id in run.refilled:
        plan.database.run("refill_wait", {"run_id": run_id, "step_id": step_id, "number": numbers.get(step_id)})


def _advance(plan: WritePlan, run: RunState, command: StepCommand | ClosingCommand) -> None:
    """The run stays RUNNING: its row is written with the others of the batch."""
    if isinstance(command, DecideRace) and run.children_due:
        plan.database.run("cascade_due", (run.run.run_id,))
    fence = plan.fence_of(run.run.run_id)
    if any(changes := run.count_changes()):
        plan.add_counts(run.run.run_id, *changes)
        fence.related = fence.related or changes[2] > 0
    fence.seq = run.seq
    if run.progressed and fence.lost_leases:
        fence.lost_leases = -1
    if run.result_seq and fence.last_result is not None:
        fence.last_result = run.result_seq
    fence.related = fence.related or run.has_children
    if fence.steps_met is not None and run.step_count:  # only commands that may begin a step have counted them
        fence.steps_met = run.step_count
    plan.touched[run.run.run_id] = fence
    if isinstance(command, StartChild):
        create_children(plan, run)


def _save_left(plan: WritePlan, run: RunState, command: StepCommand | ClosingCommand) -> None:
    run_id = run.run.run_id
    plan.drop_fence(run_id)
    if isinstance(command, Park) and run.status == RunCode.SLEEPING:  # its run may not have been read
        _leave(plan, "park_run", (run.wait_reason, run.due_at, run_id, run.lease.counter, run.lease.nonce))
        return
    _leave(plan, "leave_run", _left_row(run))
    if run.tried_build is not None and run.problem is not None:
        parameters = {
            "problem": write_error(run.problem),
            "build_id": run.tried_build,
            "unpin_build": run.unpin_build,
            "others": limits.TRIED_BUILDS - 1,
        }
        plan.database.run("note_divergence", parameters | {"run_id": run_id})
    if run.successor is not None:
        create_successor(plan, run, run.successor)
    elif run.ended and run.watched:
        plan.effects.append(notify_parents(plan.writer, run_id, plan.now))
    if run.ended_with_unread:
        plan.effects.append(hand_on(plan.writer, run_id, plan.now))


def _leave(plan: WritePlan, statement: str, parameters: tuple[Any, ...] | dict[str, Any]) -> None:
    if plan.database.run(statement, parameters) != 1:
        raise NotAsPlanned


def _left_row(run: RunState) -> dict[str, Any]:
    waits, retries, unread = run.count_changes()
    return {
        "run_id": run.run.run_id,
        "lease": run.lease.counter,
        "nonce": run.lease.nonce,
        "status": int(run.status),
        "seq": run.seq,
        "attempt": run.attempt,
        "wait_reason": run.wait_reason,
        "due_at": run.due_at,
        "ready_at": run.ready_at,
        "finished_at": run.finished_at,
        "error": None if run.error is None else write_error(run.error),
        "cascade_due": run.cascade_due,
        "continued_as": run.continued_as,
        "waits": waits,
        "retries": retries,
        "unread": unread,
    }


def _save_step(plan: WritePlan, run_id: str, step: StepState, command: StepCommand | ClosingCommand) -> None:
    if step.kind == KindCode.STATE:
        names, lease = (run_id, step.step_id, step.name), (step.lease.counter, step.lease.nonce)
        times = (step.created_at, step.finished_at)
        plan.database.run("save_state", (*names, *lease, *times, *_payload_columns(step.output)))
    elif step.new:
        plan.database.run("insert_step", (*_constant_columns(run_id, step), *_changing_columns(step)))
    elif isinstance(command, BeatStep):
        plan.database.run("set_details", (*_payload_columns(step.details), run_id, step.step_id))
    else:
        data, metadata = _payload_columns(step.input)
        begin = (step.wake_at, write_policy(step.retry), step.timeout_ms, step.once, data, data is not None, metadata)
        plan.database.run("update_step", (*_changing_columns(step), *begin, run_id, step.step_id))


def _constant_columns(run_id: str, step: StepState) -> tuple[Any, ...]:
    return (
        run_id,
        step.step_id,
        step.name,
        step.kind,
        write_policy(step.retry),
        step.timeout_ms,
        *_payload_columns(step.input),
        step.wake_at,
        step.parent_step_id,
        step.parallel_group_id,
        step.once,
        step.created_at,
    )


def _changing_columns(step: StepState) -> tuple[Any, ...]:
    return (
        step.status,
        step.attempt,
        step.begun_seq,
        step.seq,
        step.lease.counter,
        step.lease.nonce,
        *_payload_columns(step.output),
        None if step.error is None else write_error(step.error),
        step.retry_at,
        step.child_run_id,
        step.started_at,
        step.finished_at,
        step.worker_id,
    )


def _payload_columns(payload: Payload | None) -> tuple[bytes | None, str | None]:
    return (None, None) if payload is None else (payload.data, write_strings(payload.metadata))


def _attempt_row(run_id: str, attempt: AttemptState) -> tuple[Any, ...]:
    assert attempt.error is not None  # it is a new attempt
    return (
        run_id,
        attempt.step_id,
        attempt.attempt,
        attempt.begun_seq,
        attempt.seq,
        attempt.lease.counter,
        attempt.lease.nonce,
        attempt.started_at,
        attempt.finished_at,
        write_error(attempt.error),
        attempt.retry_at,
        attempt.worker_id,
        *_payload_columns(attempt.input),
    )
