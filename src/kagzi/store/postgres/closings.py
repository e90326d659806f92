"""What ends a worker's hold of a run: parking, ending, handing back. Pure but for the dice."""

from ...core.commands import CancelRun, CompleteRun, FailRun, Park, ReleaseRun, WorkerCommand
from ...core.errors import ErrorDetail
from ...core.outcomes import NotParked, Outcome, Parked, RunClosed
from ...core.retry import RetryAt, after_failure
from ...core.seams import Dice
from ...core.states import RUN_STATUS_OF_CODE, KindCode, RunCode, RunStatus, StepCode, WaitCode
from ...core.times import Timestamp
from .fence import refusal_of
from .refusals import precondition_failed
from .state import OUTPUT_STEP, RunState, StepState


def park(run: RunState, command: Park, now: Timestamp, dice: Dice) -> Outcome:
    if run.status == RunCode.SLEEPING and run.lease == command.lease:
        return Parked(now, run.due_at)
    if refused := refusal_of(run, command, now):
        return refused
    waits = [step for step in run.steps.values() if step.due_at is not None]
    come = _complete_due_sleeps(run, waits, now)
    results = [
        step
        for step in run.steps.values()
        if step.step_id in come or (step.seq > command.known_seq and step.kind < KindCode.INPUT)
    ]
    if results:
        results.sort(key=_seq_of)
        return NotParked(now, tuple(step.as_history() for step in results))
    open_waits = [(step.due_at, step.kind) for step in waits if step.due_at is not None]
    if not open_waits:
        return precondition_failed(
            f"run {run.run.run_id} has nothing to wait for: no sleep is open and no retry is scheduled",
            subject="run",
            subject_id=run.run.run_id,
        )
    due_at, kind = min(open_waits)
    if due_at <= now:
        return NotParked(now, ())
    run.leave(RunCode.SLEEPING)
    run.wait_reason = WaitCode.TIME if kind == KindCode.SLEEP else WaitCode.RETRY
    run.due_at = now if _cancelled_meanwhile(run) else due_at
    return Parked(now, run.due_at)


def complete_run(run: RunState, command: CompleteRun, now: Timestamp, dice: Dice) -> Outcome:
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    _end_run(run, RunCode.COMPLETED, None, now)
    run.steps[OUTPUT_STEP] = StepState(
        step_id=OUTPUT_STEP,
        name=OUTPUT_STEP,
        kind=KindCode.OUTPUT,
        status=StepCode.COMPLETED,
        begun_seq=run.seq,
        seq=run.seq,
        lease=command.lease,
        created_at=now,
        finished_at=now,
        output=command.output,
        changed=True,
    )
    return RunClosed(run.seq, now, RunStatus.COMPLETED)


def fail_run(run: RunState, command: FailRun, now: Timestamp, dice: Dice) -> Outcome:
    if run.status == RunCode.SLEEPING and run.wait_reason == WaitCode.RETRY and run.lease == command.lease:
        return RunClosed(run.seq, now, RunStatus.SLEEPING, run.due_at)
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    error = command.error
    if run.retry is not None:
        decision = after_failure(run.retry, run.attempt, error, now, dice=dice, deadline_at=run.deadline_at)
        if isinstance(decision, RetryAt):
            return _retry_run(run, decision, now)
        error = decision.error
    _end_run(run, RunCode.FAILED, error, now)
    return RunClosed(run.seq, now, RunStatus.FAILED)


def cancel_run(run: RunState, command: CancelRun, now: Timestamp, dice: Dice) -> Outcome:
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if run.cancel_requested_at is None:
        message = f"nobody asked for run {run.run.run_id} to be cancelled: complete it, fail it or release it"
        return precondition_failed(message, subject="run", subject_id=run.run.run_id)
    _end_run(run, RunCode.CANCELLED, command.error, now)
    return RunClosed(run.seq, now, RunStatus.CANCELLED)


def release_run(run: RunState, command: ReleaseRun, now: Timestamp, dice: Dice) -> Outcome:
    if run.status == RunCode.PENDING and run.lease == command.lease:
        return RunClosed(run.seq, run.ready_at or 0, RunStatus.PENDING)
    if refused := refusal_of(run, command, now):
        return refused
    run.next_seq()
    run.leave(RunCode.PENDING)
    run.ready_at = now
    return RunClosed(run.seq, now, RunStatus.PENDING)


def _complete_due_sleeps(run: RunState, waits: list[StepState], now: Timestamp) -> set[str]:
    due = [step for step in waits if step.kind == KindCode.SLEEP and (step.wake_at or 0) <= now]
    due.sort(key=lambda step: (step.wake_at or 0, step.begun_seq))
    for step in due:
        step.seq = run.next_result_seq()
        step.status, step.finished_at, step.changed = StepCode.COMPLETED, now, True
    return {step.step_id for step in due}


def _cancelled_meanwhile(run: RunState) -> bool:
    """Whether cancellation was requested of this very holder: its notice may cross the letter that parks the run, which
    would then sleep on. Waking at once gives it to a worker that knows. A run claimed after the request may sleep."""
    return run.cancel_requested_at is not None and run.cancel_requested_at >= (run.claimed_at or 0)


def _retry_run(run: RunState, decision: RetryAt, now: Timestamp) -> Outcome:
    run.next_seq()
    run.attempt = decision.attempt
    if decision.at <= now:
        run.leave(RunCode.PENDING)
        run.ready_at = now
        return RunClosed(run.seq, now, RunStatus.PENDING, decision.at)
    run.leave(RunCode.SLEEPING)
    run.wait_reason, run.due_at = WaitCode.RETRY, decision.at
    return RunClosed(run.seq, now, RunStatus.SLEEPING, decision.at)


def _end_run(run: RunState, status: RunCode, error: ErrorDetail | None, now: Timestamp) -> None:
    run.next_seq()
    run.leave(status)
    run.finished_at, run.error = now, error


def _ended_before(run: RunState, command: WorkerCommand) -> Outcome | None:
    """Sent again by the holder under which the run ended: it is told how."""
    if not run.ended or run.lease != command.lease:
        return None
    return RunClosed(run.seq, run.finished_at or 0, RUN_STATUS_OF_CODE[run.status])


def _seq_of(step: StepState) -> int:
    return step.seq
