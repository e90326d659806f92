"""Attempts of steps, one command at a time: begin, complete, fail, and what their repeats are answered with."""

from typing import Any

import msgspec

from ...core import refusals
from ...core.commands import BeatStep, BeginStep, CompleteStep, FailStep
from ...core.error_details import decode_detail
from ...core.limits import STEPS_PER_RUN
from ...core.outcomes import Begun, Known, Outcome, Recorded, Refused, RetryScheduled, StepFailed
from ...core.records import Lease
from ...core.retry import SERVER_DEFAULT, RetryAt, after_failure
from ...core.states import KindCode, StepCode
from ...core.times import Timestamp
from .fences import NEVER, Fence
from .rows import read_history_step, read_retry, write_error, write_mapping
from .wave import Wave

_WITHOUT_RESULT = (StepCode.PENDING, StepCode.RUNNING)


class StepState(msgspec.Struct, frozen=True):
    """A row of `step_state`."""

    kind: int
    status: int
    attempt: int
    begun_seq: int
    seq: int
    lease: int
    nonce: int
    retry: str | None
    wake_at: Timestamp | None
    retry_at: Timestamp | None
    finished_at: Timestamp | None
    error: str | None
    started_at: Timestamp | None
    worker_id: str | None
    once: int
    child_run_id: str | None

    def is_of(self, lease: Lease) -> bool:
        return self.lease == lease.counter and self.nonce == lease.nonce

    @property
    def has_result(self) -> bool:
        return self.status not in _WITHOUT_RESULT


def find_step(wave: Wave, run_id: str, step_id: str) -> StepState | None:
    row = wave.database.row("step_state", (run_id, step_id))
    return None if row is None else StepState(*row)


def known(wave: Wave, run_id: str, step_id: str) -> Known:
    row = wave.database.row("history_step", (run_id, step_id))
    assert row is not None  # the caller has just seen it
    return Known(read_history_step(row))


def check_new_step(wave: Wave, fence: Fence, step_id: str, *, cleanup: bool = True) -> Refused | None:
    """Whether another step may begin, and fits into the run. Counts only where seq says that the limit may be near."""
    if fence.cancelling and not cleanup:
        return being_cancelled(wave, fence)
    if refusals.is_reserved(step_id):
        return refusals.reserved_step(step_id)
    if fence.seq < STEPS_PER_RUN:
        return None
    met = fence.steps_met
    if met is None:
        counted = wave.database.row("count_steps", (fence.run_id,))
        met = int(counted[0]) if counted else 0
    if met < STEPS_PER_RUN:
        fence.steps_met = met + 1
        return None
    return refusals.too_many_steps(fence.run_id)


def being_cancelled(wave: Wave, fence: Fence) -> Refused:
    return refusals.being_cancelled(fence.run_id, cancel_reason(wave, fence))


def cancel_reason(wave: Wave, fence: Fence) -> str:
    row = wave.database.row("cancel_reason_of", (fence.run_id,))
    return row[0] if row else ""


# --- begin ------------------------------------------------------------------------------------------------------------


def begin_step(wave: Wave, command: BeginStep, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is None:
        return _begin_first(wave, command, fence)
    if step.kind != KindCode.FUNCTION:
        return refusals.other_kind(command.step_id, step.kind, KindCode.FUNCTION)
    if step.status == StepCode.RUNNING and step.is_of(command.lease) and command.attempt in (0, step.attempt):
        return Begun(step.begun_seq, step.started_at or 0, step.attempt)
    if (repeated := _repeated_begin(wave, command, step)) is not None:
        return repeated
    if step.has_result:
        return known(wave, fence.run_id, command.step_id)
    if command.attempt not in (0, step.attempt):
        return refuse_attempt(command, step)
    if step.status == StepCode.PENDING:
        if command.attempt == 0 and (step.retry_at or 0) > wave.now:
            return known(wave, fence.run_id, command.step_id)
    elif step.once:
        return _lose(wave, command, fence, step)
    return _begin_again(wave, command, fence, step.attempt)


def _begin_first(wave: Wave, command: BeginStep, fence: Fence) -> Outcome:
    if command.attempt not in (0, 1):
        return refusals.first_attempt_is_one(command.step_id, command.attempt)
    if (full := check_new_step(wave, fence, command.step_id, cleanup=command.cleanup)) is not None:
        return full
    seq = fence.next_seq()
    wave.add_step(command, fence, seq)
    wave.flush()
    return Begun(seq, wave.now, 1)


def _begin_again(wave: Wave, command: BeginStep, fence: Fence, attempt: int) -> Begun:
    seq = fence.next_seq()
    given = _given(wave, command, fence, seq) | {"attempt": attempt, "worker_id": fence.worker_id}
    wave.database.run("begin_again", given)
    wave.touched[fence.run_id] = fence
    return Begun(seq, wave.now, attempt)


def _lose(wave: Wave, command: BeginStep, fence: Fence, step: StepState) -> Known:
    """A step that may run once was begun under a lost lease: whether it ran nobody knows, so it does not run again."""
    error = write_error(refusals.lost_once(command.step_id))
    given = _given(wave, command, fence, fence.next_result()) | {"attempt": step.attempt, "error": error}
    wave.database.run("fail_step", given)
    wave.touched[fence.run_id] = fence
    return known(wave, fence.run_id, command.step_id)


def repeat_begin(wave: Wave, command: BeginStep) -> Outcome | None:
    """The answer of a begin that was recorded under this very lease, if its attempt has ended too: whoever has lost the run is not
    to execute what is open."""
    step = find_step(wave, command.run.run_id, command.step_id)
    return None if step is None or step.kind != KindCode.FUNCTION else _repeated_begin(wave, command, step)


def _repeated_begin(wave: Wave, command: BeginStep, step: StepState) -> Outcome | None:
    if step.is_of(command.lease) and command.attempt in (0, step.attempt):
        return known(wave, command.run.run_id, command.step_id) if step.has_result else None
    failed = _failed_attempt(wave, command.run.run_id, command.step_id, command.attempt, command.lease)
    return None if failed is None else Begun(failed[3], failed[4] or 0, command.attempt)


# --- complete and fail ------------------------------------------------------------------------------------------------


def complete_step(wave: Wave, command: CompleteStep, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is None or step.status != StepCode.RUNNING or command.attempt not in (0, step.attempt):
        return repeat_complete(wave, command) or refuse_attempt(command, step)
    if step.kind != KindCode.FUNCTION:
        return refusals.other_kind(command.step_id, step.kind, KindCode.FUNCTION)
    seq = fence.next_result()
    given = _given(wave, command, fence, seq) | {
        "attempt": step.attempt,
        "output": command.output.data,
        "output_meta": write_mapping(command.output.metadata),
    }
    wave.database.run("complete_step", given)
    wave.touched[fence.run_id] = fence
    return Recorded(seq, wave.now)


def fail_step(wave: Wave, command: FailStep, fence: Fence) -> Outcome:
    step = find_step(wave, fence.run_id, command.step_id)
    if step is None or step.status != StepCode.RUNNING or command.attempt not in (0, step.attempt):
        return repeat_fail(wave, command) or refuse_attempt(command, step)
    if step.kind != KindCode.FUNCTION:
        return refusals.other_kind(command.step_id, step.kind, KindCode.FUNCTION)
    policy = read_retry(step.retry) or SERVER_DEFAULT
    deadline_at = None if fence.deadline_at == NEVER else fence.deadline_at
    decision = after_failure(
        policy, step.attempt, command.error, wave.now, dice=wave.writer.dice, deadline_at=deadline_at
    )
    wave.touched[fence.run_id] = fence
    if isinstance(decision, RetryAt):
        return _schedule_retry(wave, command, fence, step, decision)
    seq = fence.next_result()
    given = _given(wave, command, fence, seq) | {"attempt": step.attempt, "error": write_error(decision.error)}
    wave.database.run("fail_step", given)
    return StepFailed(seq, wave.now, step.attempt, decision.error)


def _schedule_retry(wave: Wave, command: FailStep, fence: Fence, step: StepState, retry: RetryAt) -> RetryScheduled:
    seq = fence.next_seq()
    given = _given(wave, command, fence, seq) | {"attempt": step.attempt, "retry_at": retry.at}
    archived: dict[str, Any] = {"begun_seq": step.begun_seq, "started_at": step.started_at}
    archived |= {"worker_id": step.worker_id, "error": write_error(command.error)}
    wave.database.run("archive_attempt", given | archived)
    wave.database.run("schedule_retry", given)
    return RetryScheduled(seq, wave.now, retry.attempt, retry.at)


def repeat_complete(wave: Wave, command: CompleteStep) -> Outcome | None:
    """The answer of a completion that was recorded under this very lease."""
    step = find_step(wave, command.run.run_id, command.step_id)
    if step is None or step.status != StepCode.COMPLETED or step.kind != KindCode.FUNCTION:
        return None
    if not step.is_of(command.lease) or command.attempt not in (0, step.attempt):
        return None
    return Recorded(step.seq, step.finished_at or 0)


def repeat_fail(wave: Wave, command: FailStep) -> Outcome | None:
    """The answer of a failure that was recorded under this very lease."""
    step = find_step(wave, command.run.run_id, command.step_id)
    if step is None:
        return None
    if step.error is not None and step.is_of(command.lease) and command.attempt in (0, step.attempt):
        return StepFailed(step.seq, step.finished_at or 0, step.attempt, decode_detail(step.error))
    attempt = command.attempt
    if not attempt and step.status == StepCode.PENDING:
        attempt = step.attempt - 1  # the one that was the current one
    failed = _failed_attempt(wave, command.run.run_id, command.step_id, attempt, command.lease)
    return None if failed is None else RetryScheduled(failed[0], failed[1], attempt + 1, failed[2])


def _failed_attempt(wave: Wave, run_id: str, step_id: str, attempt: int, lease: Lease) -> tuple[Any, ...] | None:
    return wave.database.row("failed_attempt", (run_id, step_id, attempt, lease.counter, lease.nonce))


def refuse_attempt(command: BeginStep | CompleteStep | FailStep | BeatStep, step: StepState | None) -> Refused:
    """Why this is not the attempt that runs."""
    if step is None:
        return refusals.never_begun(command.step_id)
    if step.kind != KindCode.FUNCTION:
        return refusals.other_kind(command.step_id, step.kind, KindCode.FUNCTION)
    return refusals.not_current(command.step_id, status=step.status, recorded=step.attempt, attempt=command.attempt)


def _given(wave: Wave, command: BeginStep | CompleteStep | FailStep, fence: Fence, seq: int) -> dict[str, Any]:
    return {
        "run_id": fence.run_id,
        "step_id": command.step_id,
        "seq": seq,
        "lease": fence.lease,
        "nonce": fence.nonce,
        "now": wave.now,
    }
