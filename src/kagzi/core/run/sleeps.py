"""Sleeps: the wake time is fixed when a sleep is first recorded."""

from ..providers import Rng
from ..states import KindCode, StepCode
from ..times import Timestamp
from .commands import BeginSleep, FinishSleep, WorkerCommand
from .fence import refusal_of
from .outcomes import Known, Outcome, Recorded, TimerSet
from .refusals import lost_race, never_begun, other_kind
from .state import RunState, StepState
from .steps import end_step, may_not_begin, new_result, new_step


def begin_sleep(run: RunState, command: BeginSleep, now: Timestamp, rng: Rng) -> Outcome:
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.kind == KindCode.SLEEP and step.lease == command.lease
    refused = refusal_of(run, command, now)
    if refused and not repeated:
        return refused
    if step is None:
        return _first_sleep(run, command, now)
    if step.kind != KindCode.SLEEP:
        return other_kind(step.step_id, step.kind, KindCode.SLEEP)
    return _sleep_outcome(run, step, command, now, has_lease=refused is None)


def finish_sleep(run: RunState, command: FinishSleep, now: Timestamp, rng: Rng) -> Outcome:
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
    return _sleep_outcome(run, step, command, now, has_lease=refused is None)


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


def _sleep_outcome(
    run: RunState, step: StepState, command: WorkerCommand, now: Timestamp, *, has_lease: bool
) -> Outcome:
    if step.status == StepCode.ABANDONED:
        if isinstance(command, FinishSleep):
            return lost_race(step.step_id)
        return Known(step.as_history())
    if step.has_result:
        return Recorded(step.seq, step.finished_at or 0)
    wake_at = step.wake_at or 0
    if has_lease and wake_at <= now:
        end_step(run, step, command, now, StepCode.COMPLETED)
        return Recorded(step.seq, now)
    at = now if isinstance(command, FinishSleep) else step.started_at or 0
    return TimerSet(step.begun_seq, at, wake_at)
