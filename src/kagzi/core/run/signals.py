"""Waits for signals: the oldest unconsumed signal of the name ends the wait. Its timeout counts from when it began.

A signal belongs to the code that receives it. If code gives up a wait whose value it has not received, the value goes
back to its place in the order. Values are delivered in the order of their results, so all values of that name that were
bound later have not been received either: they move up.
"""

from collections.abc import Iterable
from itertools import zip_longest

from ..providers import Rng
from ..states import KindCode, StepCode
from ..times import Timestamp
from .commands import Command, DecideRace, EndRun, WaitSignal
from .fence import refusal_of
from .outcomes import Deferred, Known, Outcome, SignalBound, TimerSet
from .refusals import other_kind
from .state import RunState, SignalState, StepState
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


def abandoned_by(command: Command) -> tuple[str, ...]:
    """The steps whose results the code no longer waits for after this command."""
    if isinstance(command, DecideRace):
        return command.losers
    return command.open_waits if isinstance(command, EndRun) else ()


def has_value(step: StepState | None) -> bool:
    """Whether it is a wait that got its signal."""
    return step is not None and step.kind == KindCode.SIGNAL and step.status == StepCode.COMPLETED


def take_back(run: RunState, steps: Iterable[StepState]) -> list[StepState]:
    """Unbind the signals of those steps that have one. Their values were not received. Returns these steps."""
    by_step = {signal.step_id: signal for signal in run.signals if signal.step_id}
    emptied: list[StepState] = []
    for step in steps:
        signal = by_step.get(step.step_id)
        if signal is not None and has_value(step):
            _bind(run, signal, None)
            step.output = None
            run.refilled.add(step.step_id)
            emptied.append(step)
    return emptied


def hand_on(run: RunState, name: str, now: Timestamp) -> None:
    """Bind the signals of this name, of which some were taken back, to the steps that wait for it, in order."""
    run.signals.sort(key=_number_of)
    signals = [signal for signal in run.signals if signal.name == name]
    while signals and signals[0].step_id:
        signals.pop(0)
    bound = [signal.step_id for signal in signals if signal.step_id]
    for signal, step_id in zip_longest(signals, bound):
        _bind(run, signal, step_id)
    waiting = sorted((step for step in run.steps.values() if step.awaits_signal and step.name == name), key=_begun)
    for signal, step in zip(signals[len(bound) :], waiting, strict=False):
        step.seq = run.next_result_seq()
        step.status, step.finished_at, step.changed = StepCode.COMPLETED, now, True
        _bind(run, signal, step.step_id)


def _bind(run: RunState, signal: SignalState, step_id: str | None) -> None:
    signal.step_id = step_id or ""
    if step_id is not None:
        run.refilled.add(step_id)
        if (step := run.steps.get(step_id)) is not None:
            step.output = signal.payload


def _number_of(signal: SignalState) -> int:
    return signal.number


def _begun(step: StepState) -> int:
    return step.begun_seq
