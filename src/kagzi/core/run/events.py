"""Waits for signals and children, races, patches, and what a run says of itself: the exact rules. Pure."""

import msgspec

from ..commands import BeatStep, DecideRace, RecordPatch, SetStatus, StartChild, WaitSignal
from ..error_details import ErrorDetail
from ..limits import STATUS_TEXT_BYTES
from ..outcomes import (
    ChildStarted,
    Deferred,
    Known,
    Outcome,
    Recorded,
    Refused,
    SignalBound,
    StepFailed,
    TimerSet,
)
from ..records import Payload
from ..refusals import child_conflict, foreign_request, other_kind, status_too_long
from ..seams import Dice
from ..states import RUN_STATUS_OF_CODE, KindCode, RunCode, StepCode
from ..times import Timestamp
from .fence import refusal_of
from .state import Kin, Relative, RunState, StepState
from .steps import current_attempt, end_step, may_not_begin, new_result, new_step

_encode = msgspec.json.Encoder().encode


def wait_signal(run: RunState, command: WaitSignal, now: Timestamp, dice: Dice) -> Outcome:
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.kind == KindCode.SIGNAL and step.lease == command.lease
    if not repeated and (refused := refusal_of(run, command, now)):
        return refused
    if step is None:
        return _first_wait(run, command, now)
    if step.kind != KindCode.SIGNAL:
        return other_kind(step.step_id, step.kind, KindCode.SIGNAL)
    if step.has_result:
        return Known(step.as_history())
    return TimerSet(step.begun_seq, step.started_at or 0, step.wake_at)


def _first_wait(run: RunState, command: WaitSignal, now: Timestamp) -> Outcome:
    if refused := may_not_begin(run, command.step_id, cleanup=command.cleanup):
        return refused
    for signal in run.signals:
        if signal.name == command.signal_name and not signal.step_id:
            if signal.payload is None:
                return Deferred()
            signal.step_id = command.step_id
            step = new_result(run, command, now, KindCode.SIGNAL)
            step.output = signal.payload
            return SignalBound(step.seq, now, signal.payload)
    step = new_step(run, command, now, KindCode.SIGNAL)
    step.wake_at = None if command.timeout_us is None else now + command.timeout_us
    return TimerSet(step.begun_seq, now, step.wake_at)


def start_child(run: RunState, command: StartChild, now: Timestamp, dice: Dice) -> Outcome:
    """Decided with the relatives at hand (`run.kin`); families.py makes the run, or the link, that this asks for."""
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.kind == KindCode.CHILD and step.lease == command.lease
    if not repeated and (refused := refusal_of(run, command, now)):
        return refused
    kin = run.kin or Kin()
    if step is None:
        return _first_start(run, kin, command, now)
    if step.kind != KindCode.CHILD:
        return other_kind(step.step_id, step.kind, KindCode.CHILD)
    if step.child_run_id is None and step.error is not None:
        return StepFailed(step.seq, step.finished_at or 0, step.attempt, step.error)
    if step.child_run_id is None and not step.has_result:
        return _first_start(run, kin, command, now)
    known = kin.recorded.get((run.run.run_id, command.step_id))
    if known is None:  # removed since it ended: its result is in the step
        return Known(step.as_history())
    return ChildStarted(
        step.begun_seq, step.started_at or 0, known.run_id, created=False, status=RUN_STATUS_OF_CODE[known.status]
    )


def _first_start(run: RunState, kin: Kin, command: StartChild, now: Timestamp) -> Outcome:
    """Or another one: the step was begun, and a retry of the run took its child away."""
    if refused := may_not_begin(run, command.step_id, cleanup=command.cleanup):
        return refused
    start = command.start
    found = kin.by_request.get(start.request_id)
    if found is not None and (run.run.run_id, command.step_id) in kin.foreign:
        return foreign_request(start.request_id, found.run_id)
    if found is None:
        found = kin.active.get(start.workflow_id)
        if found is not None and (error := _conflict(run, command, found)) is not None:
            step = _failed_start(run, command, now, error)
            return StepFailed(step.seq, now, step.attempt, error)
    if found is not None:
        step = _waiting_step(run, command, now)
        step.child_run_id = found.run_id
        kin.links.append((found.run_id, run.run.run_id, command.step_id, run.run.namespace))
        kin.recorded[run.run.run_id, command.step_id] = found
        return ChildStarted(step.begun_seq, now, found.run_id, created=False, status=RUN_STATUS_OF_CODE[found.status])
    if refused := kin.refuse_start(start, now):
        return refused
    status = _status_of(command, now)
    step = _waiting_step(run, command, now)
    step.child_run_id = start.run.run_id
    run.has_children = True
    kin.born.append(command)
    child = Relative(start.run.run_id, start.workflow_type, status)
    kin.active[start.workflow_id] = kin.recorded[run.run.run_id, command.step_id] = child
    return ChildStarted(step.begun_seq, now, start.run.run_id, created=True, status=RUN_STATUS_OF_CODE[status])


def _waiting_step(run: RunState, command: StartChild, now: Timestamp) -> StepState:
    """The step of a child that is there. One that was begun before keeps its number: replay meets it in its place."""
    step = run.steps.get(command.step_id)
    if step is None:
        return new_step(run, command, now, KindCode.CHILD)
    run.next_seq()
    step.lease, step.worker_id, step.started_at, step.changed = command.lease, run.worker_id, now, True
    return step


def _failed_start(run: RunState, command: StartChild, now: Timestamp, error: ErrorDetail) -> StepState:
    step = run.steps.get(command.step_id)
    if step is None:
        step = new_result(run, command, now, KindCode.CHILD)
        step.status = StepCode.FAILED
    else:
        end_step(run, step, command, now, StepCode.FAILED)
    step.error = error
    return step


def _status_of(command: StartChild, now: Timestamp) -> int:
    start = command.start
    if start.start_at is not None and start.start_at > now:
        return RunCode.SLEEPING
    return RunCode.PENDING if start.assignment is None else RunCode.RUNNING


def _conflict(run: RunState, command: StartChild, found: Relative) -> ErrorDetail | None:
    """Why the open run with that workflow id cannot be the child."""
    start, itself = command.start, found.run_id == run.run.run_id
    if command.attach and found.workflow_type == start.workflow_type and not itself:
        return None
    return child_conflict(
        start.workflow_id, found.run_id, found=found.workflow_type, asked=start.workflow_type, itself=itself
    )


def decide_race(run: RunState, command: DecideRace, now: Timestamp, dice: Dice) -> Outcome:
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.kind == KindCode.RACE and step.lease == command.lease
    if not repeated and (refused := refusal_of(run, command, now)):
        return refused
    winner = Payload(_encode(command.winner))
    if step is not None:
        if step.kind != KindCode.RACE:
            return other_kind(step.step_id, step.kind, KindCode.RACE)
        return Recorded(step.seq, step.finished_at or 0) if step.output == winner else Known(step.as_history())
    if full := may_not_begin(run, command.step_id):
        return full
    step = new_result(run, command, now, KindCode.RACE)
    step.output = winner
    for loser in command.losers:
        lost = run.steps.get(loser)
        if lost is not None and not lost.has_result:
            _abandon(run, lost, step, now)
    return Recorded(step.seq, now)


def _abandon(run: RunState, lost: StepState, race: StepState, now: Timestamp) -> None:
    """It is closed, and has no result: the race's number says when."""
    lost.status, lost.seq, lost.finished_at, lost.retry_at = StepCode.ABANDONED, race.seq, now, None
    lost.lease, lost.changed = race.lease, True
    if lost.kind == KindCode.CHILD:
        run.cascade_due = True


def record_patch(run: RunState, command: RecordPatch, now: Timestamp, dice: Dice) -> Outcome:
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.kind == KindCode.PATCH and step.lease == command.lease
    if not repeated and (refused := refusal_of(run, command, now)):
        return refused
    if step is None:
        if full := may_not_begin(run, command.step_id):
            return full
        step = new_result(run, command, now, KindCode.PATCH)
    elif step.kind != KindCode.PATCH:
        return other_kind(step.step_id, step.kind, KindCode.PATCH)
    return Recorded(step.seq, step.finished_at or 0)


def set_status(run: RunState, command: SetStatus, now: Timestamp, dice: Dice) -> Outcome:
    if refused := refusal_of(run, command, now):
        return refused
    size = len(command.text.encode())
    if size > STATUS_TEXT_BYTES:
        return status_too_long(size)
    run.status_text, run.progress, run.changed = command.text, command.progress, True
    return Recorded(run.seq, now)


def beat_step(run: RunState, command: BeatStep, now: Timestamp, dice: Dice) -> Outcome:
    if refused := refusal_of(run, command, now):
        return refused
    step = current_attempt(run.steps.get(command.step_id), command.step_id, command.attempt)
    if isinstance(step, Refused):
        return step
    step.details, step.changed = command.details, True
    run.beaten = run.changed = True
    return Recorded(run.seq, now)
