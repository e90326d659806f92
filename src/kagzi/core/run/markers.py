"""Other records of a run: the winner of a race, a patch marker, status, state and heartbeats."""

import msgspec

from ..limits import STATE_STORED_BYTES, STATUS_TEXT_BYTES
from ..providers import Rng
from ..records import Payload
from ..states import KindCode, StepCode
from ..times import Timestamp
from .commands import BeatStep, DecideRace, RecordPatch, SetState, SetStatus
from .fence import refusal_of
from .outcomes import Known, Outcome, Recorded, Refused
from .refusals import other_kind, state_too_large, status_too_long
from .signals import hand_on, take_back
from .state import STATE_STEP, RunState, StepState
from .steps import current_attempt, may_not_begin, new_result

_encode = msgspec.json.Encoder().encode


def decide_race(run: RunState, command: DecideRace, now: Timestamp, rng: Rng) -> Outcome:
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
    losers = [run.steps[loser] for loser in command.losers if loser in run.steps]
    emptied = take_back(run, losers)
    for lost in (*emptied, *(each for each in losers if not each.has_result)):
        _abandon(run, lost, step, now)
    for name in sorted({lost.name for lost in emptied}):
        hand_on(run, name, now)
    return Recorded(step.seq, now)


def _abandon(run: RunState, lost: StepState, race: StepState, now: Timestamp) -> None:
    """The step is closed without a result; it gets the seq of the race."""
    lost.status, lost.seq, lost.finished_at, lost.retry_at = StepCode.ABANDONED, race.seq, now, None
    lost.lease, lost.changed = race.lease, True
    if lost.kind == KindCode.CHILD:
        run.children_due = run.cascade_due = True


def record_patch(run: RunState, command: RecordPatch, now: Timestamp, rng: Rng) -> Outcome:
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


def set_status(run: RunState, command: SetStatus, now: Timestamp, rng: Rng) -> Outcome:
    if refused := refusal_of(run, command, now):
        return refused
    size = len(command.text.encode())
    if size > STATUS_TEXT_BYTES:
        return status_too_long(size)
    run.status_text, run.progress, run.changed = command.text, command.progress, True
    return Recorded(0, now)


def set_state(run: RunState, command: SetState, now: Timestamp, rng: Rng) -> Outcome:
    if refused := refusal_of(run, command, now):
        return refused
    size = len(command.state.data)
    if size > STATE_STORED_BYTES:
        return state_too_large(size)
    run.steps[STATE_STEP] = StepState(
        step_id=STATE_STEP,
        name=STATE_STEP,
        kind=KindCode.STATE,
        status=StepCode.COMPLETED,
        begun_seq=0,
        lease=command.lease,
        created_at=now,
        finished_at=now,
        output=command.state,
        new=True,
        changed=True,
    )
    run.changed = True
    return Recorded(0, now)


def beat_step(run: RunState, command: BeatStep, now: Timestamp, rng: Rng) -> Outcome:
    if refused := refusal_of(run, command, now):
        return refused
    step = current_attempt(run.steps.get(command.step_id), command.step_id, command.attempt)
    if isinstance(step, Refused):
        return step
    step.details, step.changed = command.details, True
    run.reported_alive = run.changed = True
    return Recorded(0, now)
