"""Steps that are functions: begin, complete, record, fail; and the rules that steps of every kind share."""

from typing import TypeAlias

from ..limits import CLEANUP_STEPS, STEPS_PER_RUN
from ..providers import Rng
from ..retry.policy import SERVER_DEFAULT, Exhausted, after_failure
from ..states import KindCode, StepCode
from ..times import Timestamp
from .commands import (
    BeginSleep,
    BeginStep,
    CompleteStep,
    DecideRace,
    FailStep,
    OpenAttempt,
    RecordPatch,
    RecordStep,
    StartChild,
    WaitSignal,
    WorkerCommand,
)
from .fence import refusal_of
from .outcomes import Begun, Known, Outcome, Recorded, Refused, RetryScheduled, StepFailed
from .refusals import (
    being_cancelled,
    first_attempt_is_one,
    is_reserved,
    lost_once,
    never_begun,
    not_current,
    other_kind,
    reserved_step,
    too_many_steps,
)
from .state import AttemptState, RunState, StepState

Beginning: TypeAlias = BeginStep | RecordStep | BeginSleep | WaitSignal | StartChild | DecideRace | RecordPatch
"""Commands that may create a step."""


def begin_step(run: RunState, command: OpenAttempt, now: Timestamp, rng: Rng) -> Outcome:
    if (repeated := _begun_before(run, command)) is not None:
        return repeated
    if refused := refusal_of(run, command, now):
        return refused
    step = run.steps.get(command.step_id)
    if step is None:
        return _first_begin(run, command, now)
    if step.kind != KindCode.FUNCTION:
        return other_kind(step.step_id, step.kind, KindCode.FUNCTION)
    if step.has_result:
        return Known(step.as_history())
    if command.attempt not in (0, step.attempt):
        return refuse_attempt(step, command.step_id, command.attempt)
    if step.status == StepCode.RUNNING:
        return _begin_running(run, step, command, now)
    if command.attempt == 0 and (step.retry_at or 0) > now:
        return Known(step.as_history())
    return _begin_again(run, step, command, now)


def record_step(run: RunState, command: RecordStep, now: Timestamp, rng: Rng) -> Outcome:
    begun = begin_step(run, command, now, rng)
    if isinstance(begun, (Begun, Known)):
        return complete_step(run, command, now, rng)  # the step has a result: a repeat, or a refusal
    return begun


def complete_step(run: RunState, command: CompleteStep | RecordStep, now: Timestamp, rng: Rng) -> Outcome:
    step = run.steps.get(command.step_id)
    if (
        step is not None
        and step.status == StepCode.COMPLETED
        and step.lease == command.lease
        and command.attempt in (0, step.attempt)
        and step.kind == KindCode.FUNCTION
    ):
        return Recorded(step.seq, step.finished_at or 0)
    if refused := refusal_of(run, command, now):
        return refused
    current = current_attempt(step, command.step_id, command.attempt)
    if isinstance(current, Refused):
        return current
    end_step(run, current, command, now, StepCode.COMPLETED)
    current.output = command.output
    return Recorded(current.seq, now)


def fail_step(run: RunState, command: FailStep, now: Timestamp, rng: Rng) -> Outcome:
    if (repeated := _failed_before(run, command)) is not None:
        return repeated
    if refused := refusal_of(run, command, now):
        return refused
    step = current_attempt(run.steps.get(command.step_id), command.step_id, command.attempt)
    if isinstance(step, Refused):
        return step
    step.input = command.input or step.input
    policy = step.retry or SERVER_DEFAULT
    decision = after_failure(policy, step.attempt, command.error, now, rng=rng, deadline_at=run.deadline_at)
    if isinstance(decision, Exhausted):
        end_step(run, step, command, now, StepCode.FAILED)
        step.error = decision.error
        return StepFailed(step.seq, now, step.attempt, decision.error)
    # A worker that took over the step without its own begin gets a number here; the lost worker's begin keeps its own.
    begun_seq = step.begun_seq if step.lease == command.lease else run.next_seq()
    attempt = AttemptState(
        step_id=step.step_id,
        attempt=step.attempt,
        begun_seq=begun_seq,
        seq=run.next_seq(),
        lease=command.lease,
        started_at=step.started_at,
        finished_at=now,
        retry_at=decision.at,
        worker_id=run.worker_id,
        error=command.error,
        input=command.input,
    )
    run.attempts[step.step_id, step.attempt] = attempt
    run.new_attempts.append(attempt)
    step.status, step.attempt, step.retry_at = StepCode.PENDING, decision.attempt, decision.at
    step.lease, step.changed = command.lease, True
    return RetryScheduled(attempt.seq, now, decision.attempt, decision.at)


def _first_begin(run: RunState, command: OpenAttempt, now: Timestamp) -> Outcome:
    if command.attempt not in (0, 1):
        return first_attempt_is_one(command.step_id, command.attempt)
    if refused := may_not_begin(run, command.step_id, cleanup=command.cleanup):
        return refused
    step = new_step(run, command, now, KindCode.FUNCTION)
    _follow(step, command)
    step.timeout_ms, step.input = command.timeout_ms, command.input
    return Begun(step.begun_seq, now, 1)


def _follow(step: StepState, command: OpenAttempt) -> None:
    """The rules for all attempts of the step are those of this begin."""
    step.retry = command.retry
    step.once = isinstance(command, BeginStep) and command.once


def _begin_running(run: RunState, step: StepState, command: OpenAttempt, now: Timestamp) -> Outcome:
    if step.lease == command.lease:
        return Begun(step.begun_seq, step.started_at or 0, step.attempt)
    return _lost(run, step, command, now) if step.once and step.begun else _begin_again(run, step, command, now)


def _begin_again(run: RunState, step: StepState, command: OpenAttempt, now: Timestamp) -> Outcome:
    """The next attempt; or the same one under a new lease, since a lost worker is not a failed attempt."""
    run.begun_again += 1
    if not step.begun:  # the code may be another one than that of the recorded begin
        _follow(step, command)
    step.begun_seq, step.timeout_ms = run.next_seq(), command.timeout_ms
    step.status, step.retry_at, step.started_at = StepCode.RUNNING, None, now
    step.lease, step.worker_id, step.changed = command.lease, run.worker_id, True
    step.input = command.input or step.input
    return Begun(step.begun_seq, now, step.attempt)


def _lost(run: RunState, step: StepState, command: OpenAttempt, now: Timestamp) -> Outcome:
    """A step that may run only once began under a lost lease: it cannot be known whether it did anything."""
    end_step(run, step, command, now, StepCode.FAILED)
    step.error = lost_once(step.step_id)
    return Known(step.as_history())


def _begun_before(run: RunState, command: OpenAttempt) -> Outcome | None:
    """The response to a repeat by the worker under whose lease it was recorded."""
    earlier = run.attempts.get((command.step_id, command.attempt))
    if earlier is not None and earlier.lease == command.lease:
        return Begun(earlier.begun_seq, earlier.started_at or 0, earlier.attempt)
    step = run.steps.get(command.step_id)
    mine = step is not None and step.lease == command.lease and command.attempt in (0, step.attempt)
    if step is not None and mine and step.has_result and step.kind == KindCode.FUNCTION:
        return Known(step.as_history())
    return None


def _failed_before(run: RunState, command: FailStep) -> Outcome | None:
    step = run.steps.get(command.step_id)
    if (
        step is not None
        and step.error is not None
        and step.status == StepCode.FAILED
        and step.lease == command.lease
        and command.attempt in (0, step.attempt)
    ):
        return StepFailed(step.seq, step.finished_at or 0, step.attempt, step.error)
    attempt = command.attempt
    if not attempt and step is not None and step.status == StepCode.PENDING:
        attempt = step.attempt - 1  # the attempt that failed
    earlier = run.attempts.get((command.step_id, attempt))
    if earlier is not None and earlier.lease == command.lease:
        waits = step is not None and step.status == StepCode.PENDING and step.attempt == earlier.attempt + 1
        retry_at = step.retry_at if waits and step is not None else None  # earlier than planned if it was woken
        return RetryScheduled(earlier.seq, earlier.finished_at, earlier.attempt + 1, retry_at or earlier.retry_at)
    return None


# --- rules for steps of every kind ------------------------------------------------------------------------------------


def new_step(run: RunState, command: Beginning | OpenAttempt, now: Timestamp, kind: KindCode) -> StepState:
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
        new=True,
        changed=True,
    )
    run.step_count += 1
    run.steps[command.step_id] = step
    return step


def new_result(run: RunState, command: Beginning, now: Timestamp, kind: KindCode) -> StepState:
    """A step that is complete as soon as it is recorded: begin and result share one number."""
    step = new_step(run, command, now, kind)
    run.result_seq = step.seq = step.begun_seq
    step.status, step.finished_at = StepCode.COMPLETED, now
    return step


def may_not_begin(run: RunState, step_id: str, *, cleanup: bool = True) -> Refused | None:
    """Why a new step cannot be recorded; None if it can."""
    if run.cancel_requested_at is not None and not cleanup:
        return being_cancelled(run.run.run_id, run.cancel_reason)
    if is_reserved(step_id):
        return reserved_step(step_id)
    if run.step_count < STEPS_PER_RUN:
        return None
    maximum = STEPS_PER_RUN + CLEANUP_STEPS if cleanup else STEPS_PER_RUN
    return too_many_steps(run.run.run_id, maximum) if run.step_count >= maximum else None


def end_step(run: RunState, step: StepState, command: WorkerCommand, now: Timestamp, status: StepCode) -> None:
    step.seq = run.next_result_seq()
    step.status, step.finished_at = status, now
    step.lease, step.worker_id, step.changed = command.lease, run.worker_id, True


def current_attempt(step: StepState | None, step_id: str, attempt: int) -> StepState | Refused:
    """The step, if `attempt` is its running attempt."""
    current = step is not None and step.kind == KindCode.FUNCTION and attempt in (0, step.attempt)
    if step is not None and current and step.status == StepCode.RUNNING:
        return step
    return refuse_attempt(step, step_id, attempt)


def refuse_attempt(step: StepState | None, step_id: str, attempt: int) -> Refused:
    """Why `attempt` is not the running attempt."""
    if step is None:
        return never_begun(step_id)
    if step.kind != KindCode.FUNCTION:
        return other_kind(step_id, step.kind, KindCode.FUNCTION)
    return not_current(step_id, status=step.status, recorded=step.attempt, attempt=attempt)
