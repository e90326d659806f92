"""What the rules for steps of every kind share."""

from typing import TypeAlias

from ...core.commands import (
    BeginSleep,
    BeginStep,
    DecideRace,
    RecordPatch,
    StartChild,
    WaitSignal,
    WorkerCommand,
)
from ...core.limits import STEPS_PER_RUN
from ...core.outcomes import Refused
from ...core.states import KindCode, StepCode
from ...core.times import Timestamp
from .refusals import cancelled, kind_name, precondition_failed, resource_exhausted
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


def may_not_begin(run: RunState, *, cleanup: bool) -> Refused | None:
    """Why a step that is not recorded yet cannot be."""
    if run.cancel_requested_at is not None and not cleanup:
        return cancelled(run.run.run_id, run.cancel_reason)
    return full(run)


def end_step(run: RunState, step: StepState, command: WorkerCommand, now: Timestamp, status: StepCode) -> None:
    step.seq = run.next_result_seq()
    step.status, step.finished_at = status, now
    step.lease, step.worker_id, step.changed = command.lease, run.worker_id, True


def current_attempt(step: StepState | None, step_id: str, attempt: int) -> StepState | Refused:
    """The step, if this is the attempt that runs."""
    if step is None:
        return never_begun(step_id)
    if step.kind != KindCode.FUNCTION:
        return other_kind(step, KindCode.FUNCTION)
    if attempt not in (0, step.attempt):
        return wrong_attempt(step, attempt)
    if step.status != StepCode.RUNNING:
        state = StepCode(step.status).name
        message = f"attempt {step.attempt} of step {step.step_id!r} is {state}, not RUNNING: begin it first"
        return precondition_failed(message, subject_id=step.step_id)
    return step


def full(run: RunState) -> Refused | None:
    if run.step_count < STEPS_PER_RUN:
        return None
    return resource_exhausted(
        f"run {run.run.run_id} has {run.step_count} steps; the limit is {STEPS_PER_RUN} (STEPS_PER_RUN). "
        "Divide the work into several runs.",
        limit="STEPS_PER_RUN",
        subject="run",
        subject_id=run.run.run_id,
    )


def never_begun(step_id: str) -> Refused:
    return precondition_failed(f"step {step_id!r} was never begun", subject_id=step_id)


def other_kind(step: StepState, asked: KindCode) -> Refused:
    recorded, wanted = kind_name(step.kind), kind_name(asked)
    message = f"step {step.step_id!r} is recorded as a {recorded} and not as a {wanted} step: the code does not fit the history"
    return precondition_failed(message, subject_id=step.step_id)


def wrong_attempt(step: StepState, attempt: int) -> Refused:
    message = f"step {step.step_id!r} is at attempt {step.attempt}, not {attempt}"
    return precondition_failed(message, subject_id=step.step_id)
