"""Waits for signals: the oldest unconsumed signal of the name ends the wait. Its timeout counts from when it began."""

from ..providers import Rng
from ..states import KindCode
from ..times import Timestamp
from .commands import WaitSignal
from .fence import refusal_of
from .outcomes import Deferred, Known, Outcome, SignalBound, TimerSet
from .refusals import other_kind
from .state import RunState, StepState
from .steps import may_not_begin, new_result, new_step


def wait_signal(run: RunState, command: WaitSignal, now: Timestamp, rng: Rng) -> Outcome:
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.kind == KindCode.SIGNAL and step.lease == command.lease
    refused = refusal_of(run, command, now)
    if refused and not repeated:
        return refused
    if step is None:
        return _first_wait(run, command, now)
    if step.kind != KindCode.SIGNAL:
        return other_kind(step.step_id, step.kind, KindCode.SIGNAL)
    if step.has_result:
        return Known(step.as_history())
    if not refused:
        _take_timeout(run, step, command)
    return TimerSet(step.begun_seq, step.started_at or 0, step.wake_at)


def _take_timeout(run: RunState, step: StepState, command: WaitSignal) -> None:
    """The code may have another timeout than when the wait began. If that is over, the wait fails as any other: through
    the worker, or through the clock."""
    wake_at = None if command.timeout_us is None else (step.started_at or step.created_at) + command.timeout_us
    if wake_at != step.wake_at:
        step.wake_at, step.lease = wake_at, command.lease
        step.changed = run.changed = True


def _first_wait(run: RunState, command: WaitSignal, now: Timestamp) -> Outcome:
    if refused := may_not_begin(run, command.step_id, cleanup=command.cleanup):
        return refused
    for signal in run.signals:
        if signal.name == command.signal_name and not signal.step_id:
            if signal.payload is None:
                return Deferred()
            signal.step_id = command.step_id
            step = new_result(run, command, now, KindCode.SIGNAL)
            step.input, step.output = command.input, signal.payload
            return SignalBound(step.seq, now, signal.payload)
    step = new_step(run, command, now, KindCode.SIGNAL)
    step.input = command.input
    step.wake_at = None if command.timeout_us is None else now + command.timeout_us
    return TimerSet(step.begun_seq, now, step.wake_at)
