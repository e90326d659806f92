"""How a worker lets go of a run: park, complete, fail, cancel, release; and what their repeats are answered with."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ...core.commands import CancelRun, CompleteRun, FailRun, Park, ReleaseRun, WorkerCommand
from ...core.limits import MESSAGE_SOFT_BYTES
from ...core.outcomes import NotParked, Outcome, Parked, RunClosed
from ...core.records import HistoryStep, Lease
from ...core.refusals import cancelled_with, not_cancelled, nothing_to_wait_for
from ...core.retry import RetryAt, after_failure
from ...core.sizes import STEP_BYTES, results_page
from ...core.states import RUN_STATUS_OF_CODE, KindCode, RunCode, RunStatus, WaitCode
from ...core.times import Timestamp
from .attempts import being_cancelled, cancel_reason, find_step, known
from .ends import tell_end
from .fences import NEVER, Fence
from .rows import read_retry, write_error, write_json
from .sleeps import end_wait
from .wave import Wave

_decode_timed = msgspec.json.Decoder(tuple[int, int]).decode


_PAGE_STEPS = MESSAGE_SOFT_BYTES // STEP_BYTES + 2  # more than fit into a page, however small they are


class RunState(msgspec.Struct, frozen=True):
    """A row of `run_state`."""

    namespace: str
    status: int
    lease: int
    nonce: int
    seq: int
    deadline_at: Timestamp | None
    lease_until: Timestamp | None
    worker_id: str | None
    due_at: Timestamp | None
    ready_at: Timestamp | None
    finished_at: Timestamp | None
    attempt: int
    retry: str | None
    cancel_requested_at: Timestamp | None
    cancel_lease: int | None
    retried_lease: int | None
    watched: int
    has_children: int
    lost_leases: int
    pause_requested: int
    continued_as: str | None

    def is_of(self, lease: Lease) -> bool:
        return self.lease == lease.counter and self.nonce == lease.nonce


# --- park -------------------------------------------------------------------------------------------------------------


def park(wave: Wave, command: Park, fence: Fence, run: RunState) -> Outcome:
    now, known_seq = wave.now, command.known_seq
    if run.pause_requested and not command.stay:
        wave.let_go(fence)
        wave.database.run("give_back_run", _given(wave, fence, fence.seq))
        return Parked(now, None)
    names = write_json(command.waits) if command.waits else None
    waits, seq_before = _waits(wave, fence.run_id, names), fence.seq
    if waits and waits[0][0] <= now and _end_due_waits(wave, fence, names):
        known_seq = min(known_seq, seq_before)  # it cannot know of these
    if _last_result(wave, fence) > known_seq:
        return NotParked(now, *results_page(_results_after(wave, fence.run_id, known_seq)))
    if command.stay:
        wave.touched[fence.run_id] = fence
        return NotParked(now, ())
    if not waits:
        return nothing_to_wait_for(fence.run_id)
    due_at, reason = waits[0]
    if due_at <= now:
        return NotParked(now, ())
    if run.cancel_requested_at is not None and run.cancel_lease == fence.lease:
        due_at = now  # the holder may not have heard of it: the next one is told with the claim
    wake_at = None if due_at == NEVER else due_at
    given = _given(wave, fence, fence.seq) | {"wait_reason": int(reason), "due_at": wake_at}
    wave.let_go(fence)
    wave.database.run("park_run", given)
    return Parked(now, wake_at)


def _results_after(wave: Wave, run_id: str, known_seq: int) -> Iterator[HistoryStep]:
    """Each is read when it is asked for: the order is found without the payloads."""
    for (step_id,) in wave.database.rows("results_after", (run_id, known_seq, _PAGE_STEPS)):
        yield known(wave, run_id, step_id).step


def _waits(wave: Wave, run_id: str, names: str | None) -> list[tuple[Timestamp, WaitCode]]:
    """What the run waits for, the earliest first; signals and children without a limit last."""
    found = wave.database.row("next_waits", {"run_id": run_id, "names": names})
    timed, retry_at, unlimited = found or (None, None, None)
    waits: list[tuple[Timestamp, WaitCode]] = []
    if timed is not None:
        wake_at, kind = _decode_timed(timed)
        waits.append((wake_at, WaitCode.TIME if kind == KindCode.SLEEP else WaitCode.SIGNAL))
    if retry_at is not None:
        waits.append((retry_at, WaitCode.RETRY))
    if unlimited is not None:
        waits.append((NEVER, WaitCode.SIGNAL if unlimited == KindCode.SIGNAL else WaitCode.CHILD))
    return sorted(waits)


def _end_due_waits(wave: Wave, fence: Fence, names: str | None) -> bool:
    due = wave.database.rows("due_waits", {"run_id": fence.run_id, "now": wave.now, "names": names})
    for (step_id,) in due:
        end_wait(wave, step_id, fence)
    return bool(due)


def _last_result(wave: Wave, fence: Fence) -> int:
    """Remembered: looking costs as much as the history is long."""
    if fence.last_result is None:
        row = wave.database.row("last_result", (fence.run_id,))
        fence.last_result = row[0] if row else 0
    return fence.last_result or 0


def repeat_park(wave: Wave, command: Park, run: RunState) -> Outcome | None:
    if run.status in (RunCode.SLEEPING, RunCode.PAUSED) and run.is_of(command.lease) and not command.stay:
        return Parked(wave.now, run.due_at)
    return None


# --- ends -------------------------------------------------------------------------------------------------------------


def complete_run(wave: Wave, command: CompleteRun, fence: Fence, run: RunState) -> Outcome:
    if _is_cut_short(wave, fence, command.after_step):
        return being_cancelled(wave, fence)
    seq = fence.next_result()
    wave.add_end(fence, seq, command.output)
    wave.flush()
    told = tell_end(wave.writer, fence.run_id, wave.now)
    return RunClosed(seq, wave.now, RunStatus.COMPLETED, stirred=told.stirred, has_children=told.has_children)


def fail_run(wave: Wave, command: FailRun, fence: Fence, run: RunState) -> Outcome:
    if _is_cut_short(wave, fence, command.after_step):
        return being_cancelled(wave, fence)
    policy = read_retry(run.retry)
    error, seq = command.error, fence.next_result()
    if policy is not None:
        decision = after_failure(
            policy, run.attempt, error, wave.now, dice=wave.writer.dice, deadline_at=run.deadline_at
        )
        if isinstance(decision, RetryAt):
            return _retry_run(wave, fence, run, seq, decision.at)
        error = decision.error
    return _close(wave, fence, seq, RunCode.FAILED, write_error(error))


def _is_cut_short(wave: Wave, fence: Fence, after_step: str) -> bool:
    """The run is to be cancelled, and the step that its end follows from was not allowed to begin."""
    if not fence.cancelling or not after_step:
        return False
    step = find_step(wave, fence.run_id, after_step)
    return step is None or not step.has_result


def _retry_run(wave: Wave, fence: Fence, run: RunState, seq: int, retry_at: Timestamp) -> RunClosed:
    now = wave.now
    status = RunCode.SLEEPING if retry_at > now else RunCode.PENDING
    if run.pause_requested:
        status = RunCode.PAUSED
    asleep = status is RunCode.SLEEPING
    given = _given(wave, fence, seq) | {
        "status": int(status),
        "wait_reason": int(WaitCode.RETRY) if asleep else None,
        "due_at": retry_at if asleep else None,
        "ready_at": now if status is RunCode.PENDING else None,
    }
    wave.let_go(fence)
    wave.database.run("retry_run", given)
    return RunClosed(seq, now, RUN_STATUS_OF_CODE[status], retry_at)


def cancel_run(wave: Wave, command: CancelRun, fence: Fence, run: RunState) -> Outcome:
    if run.cancel_requested_at is None:
        return not_cancelled(fence.run_id)
    error = cancelled_with(command.error, cancel_reason(wave, fence))
    return _close(wave, fence, fence.next_result(), RunCode.CANCELLED, write_error(error))


def _close(wave: Wave, fence: Fence, seq: int, status: RunCode, error: str) -> RunClosed:
    given = _given(wave, fence, seq) | {"status": int(status), "error": error}
    wave.let_go(fence)
    wave.flush()  # parents may be among those gathered
    wave.database.run("close_run", given)
    told = tell_end(wave.writer, fence.run_id, wave.now)
    return RunClosed(seq, wave.now, RUN_STATUS_OF_CODE[status], stirred=told.stirred, has_children=told.has_children)


def release_run(wave: Wave, command: ReleaseRun, fence: Fence, run: RunState) -> Outcome:
    seq = fence.next_seq()
    given = _given(wave, fence, seq)
    wave.let_go(fence)
    wave.database.run("give_back_run", given)
    return RunClosed(seq, wave.now, RunStatus.PAUSED if run.pause_requested else RunStatus.PENDING)


def repeat_end(wave: Wave, command: WorkerCommand, run: RunState) -> Outcome | None:
    """The run ended, or waits for its own retry, under this very lease."""
    if not run.is_of(command.lease):
        return None
    if run.finished_at is not None:
        status, has_children = RUN_STATUS_OF_CODE[run.status], bool(run.has_children)
        return RunClosed(run.seq, run.finished_at, status, continued_as=run.continued_as, has_children=has_children)
    if isinstance(command, FailRun) and run.retried_lease == run.lease and run.status == RunCode.SLEEPING:
        return RunClosed(run.seq, wave.now, RunStatus.SLEEPING, run.due_at)
    return None


def repeat_release(wave: Wave, command: ReleaseRun, run: RunState) -> Outcome | None:
    if run.status in (RunCode.PENDING, RunCode.PAUSED) and run.is_of(command.lease):
        return RunClosed(run.seq, run.ready_at or wave.now, RUN_STATUS_OF_CODE[run.status])
    return None


def _given(wave: Wave, fence: Fence, seq: int) -> dict[str, Any]:
    return {"run_id": fence.run_id, "lease": fence.lease, "nonce": fence.nonce, "seq": seq, "now": wave.now}
