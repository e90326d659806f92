"""Sleeps, one command at a time. The wake time is fixed when a sleep is first recorded."""

from ...core import refusals
from ...core.commands import BeginSleep, FinishSleep
from ...core.outcomes import Outcome, Recorded, TimerSet
from ...core.states import KindCode, StepCode
from ...core.times import Timestamp
from .attempts import StepState, check_new_step, find_step, known
from .fences import Fence
from .wave import Wave


def wake_time(command: BeginSleep, now: Timestamp) -> Timestamp:
    if command.until is not None:
        return command.until
    return now + (command.duration_us or 0)


def begin_sleep(wave: Wave, command: BeginSleep, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is None:
        return _begin_first(wave, command, fence)
    if step.kind != KindCode.SLEEP:
        return refusals.other_kind(command.step_id, step.kind, KindCode.SLEEP)
    return _as_it_stands(wave, command.step_id, fence, step)


def _begin_first(wave: Wave, command: BeginSleep, fence: Fence) -> Outcome:
    if (full := check_new_step(wave, fence, command.step_id, cleanup=command.cleanup)) is not None:
        return full
    outcome = set_timer(wave, command, fence)
    wave.flush()
    return outcome


def set_timer(wave: Wave, command: BeginSleep, fence: Fence) -> Outcome:
    """Gather a sleep that is new."""
    wake_at, seq = wake_time(command, wave.now), fence.next_seq()
    if wake_at > wave.now:
        wave.add_sleep(command, fence, seq, wake_at)
        return TimerSet(seq, wave.now, wake_at)
    result_seq = fence.next_result()
    wave.add_sleep(command, fence, seq, wake_at, result_seq)
    return Recorded(result_seq, wave.now)


def finish_sleep(wave: Wave, command: FinishSleep, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is None:
        return refusals.never_begun(command.step_id)
    if step.kind != KindCode.SLEEP:
        return refusals.other_kind(command.step_id, step.kind, KindCode.SLEEP)
    if step.status == StepCode.ABANDONED:
        return refusals.lost_race(command.step_id)
    return _as_it_stands(wave, command.step_id, fence, step)


def _as_it_stands(wave: Wave, step_id: str, fence: Fence, step: StepState) -> Outcome:
    """Recorded if it is over, or over now; else how long it still takes."""
    wake_at = step.wake_at or 0
    if step.status == StepCode.ABANDONED:
        return known(wave, fence.run_id, step_id)
    if step.has_result:
        return Recorded(step.seq, step.finished_at or 0)
    if wake_at > wave.now:
        return TimerSet(step.begun_seq, wave.now, wake_at)
    return Recorded(end_wait(wave, step_id, fence), wave.now)


def end_wait(wave: Wave, step_id: str, fence: Fence) -> int:
    """The time of a sleep, or of a wait with a limit, has come. Answers its seq."""
    seq = fence.next_result()
    given = {"run_id": fence.run_id, "step_id": step_id, "seq": seq, "now": wave.now}
    wave.database.run("end_wait", given | {"lease": fence.lease, "nonce": fence.nonce})
    wave.touched[fence.run_id] = fence
    return seq


def repeat_sleep(wave: Wave, command: BeginSleep | FinishSleep) -> Outcome | None:
    """What was recorded for this sleep under this very lease."""
    step = find_step(wave, command.run.run_id, command.step_id)
    if step is None or step.kind != KindCode.SLEEP or not step.is_of(command.lease):
        return None
    if step.status == StepCode.ABANDONED:
        if isinstance(command, FinishSleep):
            return refusals.lost_race(command.step_id)
        return known(wave, command.run.run_id, command.step_id)
    if step.has_result:
        return Recorded(step.seq, step.finished_at or 0)
    if isinstance(command, FinishSleep):
        return None  # nothing was recorded for it
    return TimerSet(step.begun_seq, wave.now, step.wake_at or 0)
