"""What a run notes on its way: who won a race, which code path it takes, how far it is."""

import msgspec

from ...core import refusals
from ...core.commands import BeatStep, DecideRace, RecordPatch, SetStatus
from ...core.limits import STATUS_TEXT_BYTES
from ...core.outcomes import Outcome, Recorded
from ...core.states import KindCode, StepCode
from .attempts import StepState, check_new_step, find_step, known, refuse_attempt
from .fences import Fence
from .rows import write_json, write_mapping
from .signals import insert_wait
from .wave import Wave

# --- races ------------------------------------------------------------------------------------------------------------


def decide_race(wave: Wave, command: DecideRace, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is not None:
        if step.kind != KindCode.RACE:
            return refusals.other_kind(command.step_id, step.kind, KindCode.RACE)
        return _as_it_stands(wave, command, step)
    if (refusal := check_new_step(wave, fence, command.step_id)) is not None:
        return refusal
    seq = fence.next_result()
    result = {"status": int(StepCode.COMPLETED), "output": msgspec.json.encode(command.winner), "finished_at": wave.now}
    head = {"step_id": command.step_id, "name": command.name, "kind": int(KindCode.RACE)}
    place = {"parent_step_id": command.parent_step_id, "begun_seq": seq, "seq": seq}
    insert_wait(wave, fence, head | place | result)
    given = {"run_id": fence.run_id, "losers": write_json(command.losers), "seq": seq, "now": wave.now}
    closed = wave.database.rows("abandon_step", given)
    if any(kind == KindCode.CHILD for (kind,) in closed):
        wave.database.run("cascade_due", (fence.run_id,))
    return Recorded(seq, wave.now)


def repeat_race(wave: Wave, command: DecideRace) -> Outcome | None:
    """What was decided under this very lease."""
    step = find_step(wave, command.run.run_id, command.step_id)
    if step is None or step.kind != KindCode.RACE or not step.is_of(command.lease):
        return None
    return _as_it_stands(wave, command, step)


def _as_it_stands(wave: Wave, command: DecideRace, step: StepState) -> Outcome:
    """Decided is decided: if another one won, the worker has to know."""
    decided = known(wave, command.run.run_id, command.step_id)
    output = decided.step.output
    if output is not None and output.data == msgspec.json.encode(command.winner):
        return Recorded(step.seq, step.finished_at or 0)
    return decided


# --- patches ----------------------------------------------------------------------------------------------------------


def record_patch(wave: Wave, command: RecordPatch, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is not None:
        if step.kind != KindCode.PATCH:
            return refusals.other_kind(command.step_id, step.kind, KindCode.PATCH)
        return Recorded(step.seq, step.finished_at or 0)
    if (refusal := check_new_step(wave, fence, command.step_id)) is not None:
        return refusal
    seq = fence.next_result()
    wave.add_patch(command, fence, seq)
    wave.flush()
    return Recorded(seq, wave.now)


def repeat_patch(wave: Wave, command: RecordPatch) -> Outcome | None:
    step = find_step(wave, command.run.run_id, command.step_id)
    if step is None or step.kind != KindCode.PATCH or not step.is_of(command.lease):
        return None
    return Recorded(step.seq, step.finished_at or 0)


# --- for people -------------------------------------------------------------------------------------------------------


def set_status(wave: Wave, command: SetStatus, fence: Fence) -> Outcome:
    size = len(command.text.encode())
    if size > STATUS_TEXT_BYTES:
        return refusals.status_too_long(size)
    wave.database.run("set_status", (command.text, command.progress, fence.run_id))
    wave.touched[fence.run_id] = fence
    return Recorded(fence.seq, wave.now)


def beat_step(wave: Wave, command: BeatStep, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is None or step.status != StepCode.RUNNING or command.attempt not in (0, step.attempt):
        return refuse_attempt(command, step)
    if step.kind != KindCode.FUNCTION:
        return refusals.other_kind(command.step_id, step.kind, KindCode.FUNCTION)
    details = {"details": command.details.data, "details_meta": write_mapping(command.details.metadata)}
    wave.database.run("beat_step", {"run_id": fence.run_id, "step_id": command.step_id} | details)
    if fence.lost_leases:
        fence.lost_leases = -1
    wave.touched[fence.run_id] = fence
    return Recorded(fence.seq, wave.now)
