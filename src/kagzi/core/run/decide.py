"""What a command does to a run that has been read: the exact rules, one command at a time. Pure but for the dice.

The wave statement (wave.py) records the plain cases without reading first; everything else is decided here and written
on condition that nothing has changed since the reading.
"""

from collections.abc import Callable
from typing import Any

from ..commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    CancelRun,
    Command,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    FailRun,
    FailStep,
    FinishSleep,
    Park,
    PauseDiverged,
    RecordPatch,
    ReleaseRun,
    SetStatus,
    StartChild,
    WaitSignal,
    WorkerCommand,
)
from ..limits import BATCH_ANSWER_BYTES
from ..outcomes import (
    Begun,
    Deferred,
    Known,
    Outcome,
    Recorded,
    Refused,
    RetryScheduled,
    RunNotFound,
    StepFailed,
    TimerSet,
)
from ..refusals import first_attempt_is_one, lost_once, lost_race, never_begun, other_kind
from ..retry import SERVER_DEFAULT, Exhausted, after_failure
from ..seams import Dice
from ..sizes import outcome_bytes
from ..states import KindCode, StepCode
from ..times import Timestamp
from . import endings as closings
from . import events
from .fence import refusal_of
from .state import TOLD, AttemptState, RunState, StepState
from .steps import (
    current_attempt,
    end_step,
    may_not_begin,
    new_result,
    new_step,
    refuse_attempt,
)


def decide(run: RunState | None, command: Command, now: Timestamp, dice: Dice) -> Outcome:
    """Change `run` as the command says, or leave it alone; either way the outcome tells. None: there is no such run."""
    if run is None:
        return RunNotFound()
    if run.deferred or _is_too_much(run, command):
        run.deferred = True
        return Deferred()
    outcome = _RULES[type(command)](run, command, now, dice)
    run.deferred = outcome.__class__ is Deferred
    run.answer_bytes += outcome_bytes(outcome)
    return outcome


def _is_too_much(run: RunState, command: Command) -> bool:
    """What it would be answered with was not read, or the run has been answered enough in this batch."""
    if isinstance(command, TOLD):
        step = run.steps.get(command.step_id)
        if step is not None and step.withheld:
            return True
    elif not isinstance(command, Park):
        return False
    return run.answer_bytes > BATCH_ANSWER_BYTES


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
    current = current_attempt(step, command.step_id, command.attempt)
    if isinstance(current, Refused):
        return current
    end_step(run, current, command, now, StepCode.COMPLETED)
    current.output = command.output
    return Recorded(current.seq, now)


def fail_step(run: RunState, command: FailStep, now: Timestamp, dice: Dice) -> Outcome:
    if (repeated := _failed_before(run, command)) is not None:
        return repeated
    if refused := refusal_of(run, command, now):
        return refused
    step = current_attempt(run.steps.get(command.step_id), command.step_id, command.attempt)
    if isinstance(step, Refused):
        return step
    policy = step.retry or SERVER_DEFAULT
    decision = after_failure(policy, step.attempt, command.error, now, dice=dice, deadline_at=run.deadline_at)
    if isinstance(decision, Exhausted):
        end_step(run, step, command, now, StepCode.FAILED)
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
        return other_kind(step.step_id, step.kind, KindCode.SLEEP)
    return _sleep_outcome(run, step, command, now, held=refused is None)


def finish_sleep(run: RunState, command: FinishSleep, now: Timestamp, dice: Dice) -> Outcome:
    step = run.steps.get(command.step_id)
    mine = step is not None and step.kind == KindCode.SLEEP and step.lease == command.lease
    repeated = step is not None and mine and step.has_result
    refused = refusal_of(run, command, now)
    if refused and not repeated:
        return refused
    if step is None:
        return never_begun(command.step_id)
    if step.kind != KindCode.SLEEP:
        return other_kind(step.step_id, step.kind, KindCode.SLEEP)
    return _sleep_outcome(run, step, command, now, held=refused is None)


def _first_sleep(run: RunState, command: BeginSleep, now: Timestamp) -> Outcome:
    if refused := may_not_begin(run, command.step_id, cleanup=command.cleanup):
        return refused
    wake_at = command.until if command.until is not None else now + (command.duration_us or 0)
    if wake_at > now:
        step = new_step(run, command, now, KindCode.SLEEP)
        step.wake_at = wake_at
        return TimerSet(step.begun_seq, now, wake_at)
    step = new_result(run, command, now, KindCode.SLEEP)
    step.wake_at = wake_at
    return Recorded(step.seq, now)


def _sleep_outcome(run: RunState, step: StepState, command: WorkerCommand, now: Timestamp, *, held: bool) -> Outcome:
    if step.status == StepCode.ABANDONED:
        if isinstance(command, FinishSleep):
            return lost_race(step.step_id)
        return Known(step.as_history())
    if step.has_result:
        return Recorded(step.seq, step.finished_at or 0)
    wake_at = step.wake_at or 0
    if held and wake_at <= now:
        end_step(run, step, command, now, StepCode.COMPLETED)
        return Recorded(step.seq, now)
    at = now if isinstance(command, FinishSleep) else step.started_at or 0
    return TimerSet(step.begun_seq, at, wake_at)


# --- what they share ----------------------------------------------------------------------------------------------------


def _first_begin(run: RunState, command: BeginStep, now: Timestamp) -> Outcome:
    if command.attempt not in (0, 1):
        return first_attempt_is_one(command.step_id, command.attempt)
    if refused := may_not_begin(run, command.step_id, cleanup=command.cleanup):
        return refused
    step = new_step(run, command, now, KindCode.FUNCTION)
    step.retry, step.timeout_ms, step.once = command.retry, command.timeout_ms, command.once
    step.input = command.input
    return Begun(step.begun_seq, now, 1)


def _begin_running(run: RunState, step: StepState, command: BeginStep, now: Timestamp) -> Outcome:
    if step.lease == command.lease:
        return Begun(step.begun_seq, step.started_at or 0, step.attempt)
    begun = step.lease.counter > 0  # in a fork, or a run that is tried again from here, nobody has begun it yet
    return _lost(run, step, command, now) if step.once and begun else _begin_again(run, step, command, now)


def _begin_again(run: RunState, step: StepState, command: BeginStep, now: Timestamp) -> Outcome:
    """The next attempt; or the same one by a new holder, since a lost worker is not a failed attempt."""
    step.begun_seq = run.next_seq()
    step.status, step.retry_at, step.started_at = StepCode.RUNNING, None, now
    step.lease, step.worker_id, step.changed = command.lease, run.worker_id, True
    return Begun(step.begun_seq, now, step.attempt)


def _lost(run: RunState, step: StepState, command: BeginStep, now: Timestamp) -> Outcome:
    """A step that may run once began under a lease that was lost: whether it did anything is unknown for ever."""
    end_step(run, step, command, now, StepCode.FAILED)
    step.error = lost_once(step.step_id)
    return Known(step.as_history())


def _begun_before(run: RunState, command: BeginStep) -> Outcome | None:
    """Sent again, with what followed it, by the worker under whose lease that was recorded."""
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
        attempt = step.attempt - 1  # the one that was the current one
    earlier = run.attempts.get((command.step_id, attempt))
    if earlier is not None and earlier.lease == command.lease:
        return RetryScheduled(earlier.seq, earlier.finished_at, earlier.attempt + 1, earlier.retry_at)
    return None


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
    ContinueAsNew: closings.continue_as_new,
    PauseDiverged: closings.pause_diverged,
    WaitSignal: events.wait_signal,
    StartChild: events.start_child,
    DecideRace: events.decide_race,
    RecordPatch: events.record_patch,
    SetStatus: events.set_status,
    BeatStep: events.beat_step,
}
