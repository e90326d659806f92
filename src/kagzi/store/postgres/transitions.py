"""What a command does to a run that has been read: the exact rules, one command at a time. Pure but for the dice.

The wave statement (wave.py) records the plain cases without reading first; everything else is decided here and written
on condition that nothing has changed since the reading.
"""

from collections.abc import Callable
from typing import Any

from ...core.commands import (
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    FailRun,
    FailStep,
    FinishSleep,
    Park,
    ReleaseRun,
    WorkerCommand,
)
from ...core.errors import ErrorDetail, ErrorKind
from ...core.limits import STEPS_PER_RUN
from ...core.outcomes import (
    Begun,
    Known,
    Outcome,
    Recorded,
    Refused,
    RetryScheduled,
    StepFailed,
    TimerSet,
)
from ...core.retry import SERVER_DEFAULT, Exhausted, after_failure
from ...core.seams import Dice
from ...core.states import KindCode, StepCode
from ...core.times import Timestamp
from . import closings
from .fence import refusal_of
from .refusals import kind_name, precondition_failed, resource_exhausted
from .state import AttemptState, RunState, StepState


def apply(run: RunState, command: Command, now: Timestamp, dice: Dice) -> Outcome:
    """Change `run` as the command says, or leave it alone; either way the outcome tells."""
    return _RULES[type(command)](run, command, now, dice)


# --- functions ----------------------------------------------------------------------------------------------------------


def begin_step(run: RunState, command: BeginStep, now: Timestamp, dice: Dice) -> Outcome:
    if (repeated := _begun_before(run, command)) is not None:
        return repeated
    if refused := refusal_of(run, command, now):
        return refused
    step = run.steps.get(command.step_id)
    if step is None:
        return _first_begin(run, command, now)
    if step.kind != KindCode.FUNCTION:
        return _other_kind(step, KindCode.FUNCTION)
    if step.has_result:
        return Known(step.as_history())
    if command.attempt not in (0, step.attempt):
        return _wrong_attempt(step, command.attempt)
    if step.status == StepCode.RUNNING:
        return _begin_running(run, step, command, now)
    if command.attempt == 0 and (step.retry_at or 0) > now:
        return Known(step.as_history())
    return _begin_again(run, step, command, now)


def complete_step(run: RunState, command: CompleteStep, now: Timestamp, dice: Dice) -> Outcome:
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
    current = _current_attempt(step, command.step_id, command.attempt)
    if isinstance(current, Refused):
        return current
    _end_step(run, current, command, now, StepCode.COMPLETED)
    current.output = command.output
    return Recorded(current.seq, now)


def fail_step(run: RunState, command: FailStep, now: Timestamp, dice: Dice) -> Outcome:
    if (repeated := _failed_before(run, command)) is not None:
        return repeated
    if refused := refusal_of(run, command, now):
        return refused
    step = _current_attempt(run.steps.get(command.step_id), command.step_id, command.attempt)
    if isinstance(step, Refused):
        return step
    policy = step.retry or SERVER_DEFAULT
    decision = after_failure(policy, step.attempt, command.error, now, dice=dice, deadline_at=run.deadline_at)
    if isinstance(decision, Exhausted):
        _end_step(run, step, command, now, StepCode.FAILED)
        step.error = decision.error
        return StepFailed(step.seq, now, step.attempt, decision.error)
    attempt = AttemptState(
        step_id=step.step_id,
        attempt=step.attempt,
        begun_seq=step.begun_seq,
        seq=run.next_seq(),
        lease=command.lease,
        started_at=step.started_at,
        finished_at=now,
        retry_at=decision.at,
        worker_id=run.worker_id,
        error=command.error,
    )
    run.attempts[step.step_id, step.attempt] = attempt
    run.new_attempts.append(attempt)
    step.status, step.attempt, step.retry_at = StepCode.PENDING, decision.attempt, decision.at
    step.lease, step.changed = command.lease, True
    return RetryScheduled(attempt.seq, now, decision.attempt, decision.at)


# --- sleeps -------------------------------------------------------------------------------------------------------------


def begin_sleep(run: RunState, command: BeginSleep, now: Timestamp, dice: Dice) -> Outcome:
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.kind == KindCode.SLEEP and step.lease == command.lease
    refused = refusal_of(run, command, now)
    if refused and not repeated:
        return refused
    if step is None:
        return _first_sleep(run, command, now)
    if step.kind != KindCode.SLEEP:
        return _other_kind(step, KindCode.SLEEP)
    return _sleep_outcome(run, step, command, now, held=refused is None)


def finish_sleep(run: RunState, command: FinishSleep, now: Timestamp, dice: Dice) -> Outcome:
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.has_result and step.lease == command.lease
    refused = refusal_of(run, command, now)
    if refused and not repeated:
        return refused
    if step is None:
        return _never_begun(command.step_id)
    if step.kind != KindCode.SLEEP:
        return _other_kind(step, KindCode.SLEEP)
    return _sleep_outcome(run, step, command, now, held=refused is None)


def _first_sleep(run: RunState, command: BeginSleep, now: Timestamp) -> Outcome:
    if full := _full(run):
        return full
    wake_at = command.until if command.until is not None else now + (command.duration_us or 0)
    step = _new_step(run, command, now, KindCode.SLEEP)
    step.wake_at = wake_at
    if wake_at > now:
        return TimerSet(step.begun_seq, now, wake_at)
    run.result_seq = step.seq = step.begun_seq
    step.status, step.finished_at = StepCode.COMPLETED, now
    return Recorded(step.seq, now)


def _sleep_outcome(run: RunState, step: StepState, command: WorkerCommand, now: Timestamp, *, held: bool) -> Outcome:
    if step.has_result:
        return Recorded(step.seq, step.finished_at or 0)
    wake_at = step.wake_at or 0
    if held and wake_at <= now:
        _end_step(run, step, command, now, StepCode.COMPLETED)
        return Recorded(step.seq, now)
    at = now if isinstance(command, FinishSleep) else step.started_at or 0
    return TimerSet(step.begun_seq, at, wake_at)


# --- what they share ----------------------------------------------------------------------------------------------------


def _new_step(run: RunState, command: BeginStep | BeginSleep, now: Timestamp, kind: KindCode) -> StepState:
    step = StepState(
        step_id=command.step_id,
        name=command.name,
        kind=kind,
        status=StepCode.RUNNING,
        begun_seq=run.next_seq(),
        lease=command.lease,
        created_at=now,
        started_at=now,
        worker_id=run.worker_id,
        parent_step_id=command.parent_step_id,
        parallel_group_id=command.parallel_group_id,
        changed=True,
    )
    run.step_count += 1
    run.steps[command.step_id] = step
    return step


def _first_begin(run: RunState, command: BeginStep, now: Timestamp) -> Outcome:
    if command.attempt not in (0, 1):
        return precondition_failed(
            f"step {command.step_id!r} has not begun: its first attempt is 1, not {command.attempt}",
            subject_id=command.step_id,
        )
    if full := _full(run):
        return full
    step = _new_step(run, command, now, KindCode.FUNCTION)
    step.retry, step.timeout_ms, step.once = command.retry, command.timeout_ms, command.once
    step.input = command.input
    return Begun(step.begun_seq, now, 1)


def _begin_running(run: RunState, step: StepState, command: BeginStep, now: Timestamp) -> Outcome:
    if step.lease == command.lease:
        return Begun(step.begun_seq, step.started_at or 0, step.attempt)
    return _lost(run, step, command, now) if step.once else _begin_again(run, step, command, now)


def _begin_again(run: RunState, step: StepState, command: BeginStep, now: Timestamp) -> Outcome:
    """The next attempt; or the same one by a new holder, since a lost worker is not a failed attempt."""
    step.begun_seq = run.next_seq()
    step.status, step.retry_at, step.started_at = StepCode.RUNNING, None, now
    step.lease, step.worker_id, step.changed = command.lease, run.worker_id, True
    return Begun(step.begun_seq, now, step.attempt)


def _lost(run: RunState, step: StepState, command: BeginStep, now: Timestamp) -> Outcome:
    """A step that may run once began under a lease that was lost: whether it did anything is unknown for ever."""
    _end_step(run, step, command, now, StepCode.FAILED)
    message = f"step {step.step_id!r} began, its worker was lost, and once=True forbids another execution"
    step.error = ErrorDetail(kind=ErrorKind.LOST, message=message, non_retryable=True, subject_id=step.step_id)
    return Known(step.as_history())


def _end_step(run: RunState, step: StepState, command: WorkerCommand, now: Timestamp, status: StepCode) -> None:
    step.seq = run.next_result_seq()
    step.status, step.finished_at = status, now
    step.lease, step.worker_id, step.changed = command.lease, run.worker_id, True


def _current_attempt(step: StepState | None, step_id: str, attempt: int) -> StepState | Refused:
    """The step, if this is the attempt that runs."""
    if step is None:
        return _never_begun(step_id)
    if step.kind != KindCode.FUNCTION:
        return _other_kind(step, KindCode.FUNCTION)
    if attempt not in (0, step.attempt):
        return _wrong_attempt(step, attempt)
    if step.status != StepCode.RUNNING:
        state = StepCode(step.status).name
        message = f"attempt {step.attempt} of step {step.step_id!r} is {state}, not RUNNING: begin it first"
        return precondition_failed(message, subject_id=step.step_id)
    return step


def _begun_before(run: RunState, command: BeginStep) -> Outcome | None:
    """Sent again, with what followed it, by the worker under whose lease that was recorded."""
    earlier = run.attempts.get((command.step_id, command.attempt))
    if earlier is not None and earlier.lease == command.lease:
        return Begun(earlier.begun_seq, earlier.started_at or 0, earlier.attempt)
    step = run.steps.get(command.step_id)
    if step is not None and step.has_result and step.lease == command.lease and step.kind == KindCode.FUNCTION:
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
    earlier = run.attempts.get((command.step_id, command.attempt))
    if earlier is not None and earlier.lease == command.lease:
        return RetryScheduled(earlier.seq, earlier.finished_at, earlier.attempt + 1, earlier.retry_at)
    return None


def _full(run: RunState) -> Refused | None:
    if run.step_count < STEPS_PER_RUN:
        return None
    return resource_exhausted(
        f"run {run.run.run_id} has {run.step_count} steps; the limit is {STEPS_PER_RUN} (STEPS_PER_RUN). "
        "Divide the work into several runs.",
        limit="STEPS_PER_RUN",
        subject="run",
        subject_id=run.run.run_id,
    )


def _never_begun(step_id: str) -> Refused:
    return precondition_failed(f"step {step_id!r} was never begun", subject_id=step_id)


def _other_kind(step: StepState, asked: KindCode) -> Refused:
    recorded, wanted = kind_name(step.kind), kind_name(asked)
    message = f"step {step.step_id!r} is recorded as {recorded}, not as {wanted}: the code does not fit the history"
    return precondition_failed(message, subject_id=step.step_id)


def _wrong_attempt(step: StepState, attempt: int) -> Refused:
    message = f"step {step.step_id!r} is at attempt {step.attempt}, not {attempt}"
    return precondition_failed(message, subject_id=step.step_id)


_RULES: dict[type[Command], Callable[[RunState, Any, Timestamp, Dice], Outcome]] = {
    BeginStep: begin_step,
    CompleteStep: complete_step,
    FailStep: fail_step,
    BeginSleep: begin_sleep,
    FinishSleep: finish_sleep,
    Park: closings.park,
    CompleteRun: closings.complete_run,
    FailRun: closings.fail_run,
    CancelRun: closings.cancel_run,
    ReleaseRun: closings.release_run,
}
