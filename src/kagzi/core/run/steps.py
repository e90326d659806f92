"""What the rules for steps of every kind share."""

from typing import TypeAlias

from ..commands import (
    BeginSleep,
    BeginStep,
    DecideRace,
    RecordPatch,
    StartChild,
    WaitSignal,
    WorkerCommand,
)
from ..limits import STEPS_PER_RUN
from ..outcomes import Refused
from ..refusals import (
    being_cancelled,
    is_reserved,
    never_begun,
    not_current,
    other_kind,
    reserved_step,
    too_many_steps,
)
from ..states import KindCode, StepCode
from ..times import Timestamp
from .state import RunState, StepState

Beginning: TypeAlias = BeginStep | BeginSleep | WaitSignal | StartChild | DecideRace | RecordPatch
"""Commands that may make a step."""


def new_step(run: RunState, command: Beginning, now: Timestamp, kind: KindCode) -> StepState:
    step = StepState(
        step_id=command.step_id,
        name=command.signal_name if isinstance(command, WaitSignal) else command.name,
        kind=kind,
        status=StepCode.RUNNING,
        begun_seq=run.next_seq(),
        lease=command.lease,
        created_at=now,
        started_at=now,
        worker_id=run.worker_id,
        parent_step_id="" if isinstance(command, RecordPatch) else command.parent_step_id,
        parallel_group_id="" if isinstance(command, (RecordPatch, DecideRace)) else command.parallel_group_id,
        changed=True,
    )
    run.step_count += 1
    run.steps[command.step_id] = step
    return step


def new_result(run: RunState, command: Beginning, now: Timestamp, kind: KindCode) -> StepState:
    """A step that is complete as soon as it is recorded: one number for both."""
    step = new_step(run, command, now, kind)
    run.result_seq = step.seq = step.begun_seq
    step.status, step.finished_at = StepCode.COMPLETED, now
    return step


def may_not_begin(run: RunState, step_id: str, *, cleanup: bool = True) -> Refused | None:
    """Why a step that is not recorded yet cannot be."""
    if run.cancel_requested_at is not None and not cleanup:
        return being_cancelled(run.run.run_id, run.cancel_reason)
    if is_reserved(step_id):
        return reserved_step(step_id)
    return too_many_steps(run.run.run_id) if run.step_count >= STEPS_PER_RUN else None


def end_step(run: RunState, step: StepState, command: WorkerCommand, now: Timestamp, status: StepCode) -> None:
    step.seq = run.next_result_seq()
    step.status, step.finished_at = status, now
    step.lease, step.worker_id, step.changed = command.lease, run.worker_id, True


def current_attempt(step: StepState | None, step_id: str, attempt: int) -> StepState | Refused:
    """The step, if this is the attempt that runs."""
    current = step is not None and step.kind == KindCode.FUNCTION and attempt in (0, step.attempt)
    if step is not None and current and step.status == StepCode.RUNNING:
        return step
    return refuse_attempt(step, step_id, attempt)


def refuse_attempt(step: StepState | None, step_id: str, attempt: int) -> Refused:
    """Why this is not the attempt that runs."""
    if step is None:
        return never_begun(step_id)
    if step.kind != KindCode.FUNCTION:
        return other_kind(step_id, step.kind, KindCode.FUNCTION)
    return not_current(step_id, status=step.status, recorded=step.attempt, attempt=attempt)
