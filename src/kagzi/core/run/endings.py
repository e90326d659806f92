"""What ends a worker's hold of a run: parking, ending, handing back. Pure but for the dice."""

from itertools import takewhile

from ..commands import (
    CancelRun,
    CompleteRun,
    ContinueAsNew,
    FailRun,
    Park,
    PauseDiverged,
    ReleaseRun,
    WorkerCommand,
)
from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..outcomes import Deferred, NotParked, Outcome, Parked, RunClosed
from ..refusals import being_cancelled, cancelled_with, not_cancelled, nothing_to_wait_for
from ..retry import RetryAt, after_failure
from ..seams import Dice
from ..sizes import results_page
from ..states import RUN_STATUS_OF_CODE, KindCode, RunCode, RunStatus, StepCode, WaitCode
from ..times import Timestamp, to_datetime
from .fence import refusal_of
from .state import NEVER, OUTPUT_STEP, RunState, StepState

_REASONS = {
    int(KindCode.FUNCTION): WaitCode.RETRY,
    int(KindCode.SLEEP): WaitCode.TIME,
    int(KindCode.SIGNAL): WaitCode.SIGNAL,
    int(KindCode.CHILD): WaitCode.CHILD,
}


def park(run: RunState, command: Park, now: Timestamp, dice: Dice) -> Outcome:
    if run.status in (RunCode.SLEEPING, RunCode.PAUSED) and run.lease == command.lease and not command.stay:
        return Parked(now, run.due_at)
    if refused := refusal_of(run, command, now):
        return refused
    if run.pause_requested and not command.stay:
        run.leave(RunCode.PAUSED)
        return Parked(now, None)
    waits = [step for step in run.steps.values() if step.due_at is not None and _is_named(step, command)]
    news = [step for step in run.steps.values() if _is_news(step, command.known_seq)]
    if news and min(news, key=_seq_of).withheld:
        return Deferred()
    come = _resolve_due(run, waits, now)
    results = [step for step in run.steps.values() if step.step_id in come or _is_news(step, command.known_seq)]
    if results or command.stay:
        results.sort(key=_seq_of)
        given = list(takewhile(_is_given, results))  # what was withheld comes with another page
        page, more = results_page(step.as_history() for step in given)
        return NotParked(now, page, more or len(given) < len(results))
    return _sleep(run, waits, now)


def _sleep(run: RunState, waits: list[StepState], now: Timestamp) -> Outcome:
    open_waits = [(step.due_at, step.kind) for step in waits if step.due_at is not None]
    if not open_waits:
        return nothing_to_wait_for(run.run.run_id)
    due_at, kind = min(open_waits)
    if due_at <= now:
        return NotParked(now, ())
    run.leave(RunCode.SLEEPING)
    run.wait_reason = _REASONS[kind]
    run.due_at = now if _cancelled_meanwhile(run) else None if due_at == NEVER else due_at
    return Parked(now, run.due_at)


def complete_run(run: RunState, command: CompleteRun, now: Timestamp, dice: Dice) -> Outcome:
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if _is_cut_short(run, command.after_step):
        return being_cancelled(run.run.run_id, run.cancel_reason)
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
    return _closed(run, now)


def fail_run(run: RunState, command: FailRun, now: Timestamp, dice: Dice) -> Outcome:
    if run.status == RunCode.SLEEPING and run.wait_reason == WaitCode.RETRY and run.lease == command.lease:
        return RunClosed(run.seq, now, RunStatus.SLEEPING, run.due_at)
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if _is_cut_short(run, command.after_step):
        return being_cancelled(run.run.run_id, run.cancel_reason)
    error = command.error
    if run.retry is not None:
        decision = after_failure(run.retry, run.attempt, error, now, dice=dice, deadline_at=run.deadline_at)
        if isinstance(decision, RetryAt):
            return _retry_run(run, decision, now)
        error = decision.error
    _end_run(run, RunCode.FAILED, error, now)
    return _closed(run, now)


def _is_cut_short(run: RunState, after_step: str) -> bool:
    """The run is to be cancelled, and the step that its end follows from was not allowed to begin."""
    if run.cancel_requested_at is None or not after_step:
        return False
    step = run.steps.get(after_step)
    return step is None or not step.has_result


def cancel_run(run: RunState, command: CancelRun, now: Timestamp, dice: Dice) -> Outcome:
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if run.cancel_requested_at is None:
        return not_cancelled(run.run.run_id)
    _end_run(run, RunCode.CANCELLED, cancelled_with(command.error, run.cancel_reason), now)
    return _closed(run, now)


def release_run(run: RunState, command: ReleaseRun, now: Timestamp, dice: Dice) -> Outcome:
    if run.status in (RunCode.PENDING, RunCode.PAUSED) and run.lease == command.lease:
        return RunClosed(run.seq, run.ready_at or now, RUN_STATUS_OF_CODE[run.status])
    if refused := refusal_of(run, command, now):
        return refused
    run.next_seq()
    if run.pause_requested:
        run.leave(RunCode.PAUSED)
        return RunClosed(run.seq, now, RunStatus.PAUSED)
    run.leave(RunCode.PENDING)
    run.ready_at = now
    return RunClosed(run.seq, now, RunStatus.PENDING)


def pause_diverged(run: RunState, command: PauseDiverged, now: Timestamp, dice: Dice) -> Outcome:
    if run.status == RunCode.PAUSED and run.lease == command.lease:
        return RunClosed(run.seq, now, RunStatus.PAUSED)
    if refused := refusal_of(run, command, now):
        return refused
    run.next_seq()
    run.leave(RunCode.PAUSED)
    run.problem, run.diverged, run.tried_build = command.problem, True, command.build_id
    return RunClosed(run.seq, now, RunStatus.PAUSED)


def continue_as_new(run: RunState, command: ContinueAsNew, now: Timestamp, dice: Dice) -> Outcome:
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if run.cancel_requested_at is not None:
        return being_cancelled(run.run.run_id, run.cancel_reason)
    run.successor_paused = run.pause_requested
    _end_run(run, RunCode.COMPLETED, None, now)
    run.continued_as, run.successor = command.new_run_id, command
    return _closed(run, now)


def _is_named(step: StepState, command: Park) -> bool:
    """A wait that the code has given up wakes nobody. Who names none means all."""
    return not command.waits or step.step_id in command.waits


def _is_news(step: StepState, known_seq: int) -> bool:
    return step.seq > known_seq and step.kind < KindCode.INPUT and step.status != StepCode.ABANDONED


def _resolve_due(run: RunState, waits: list[StepState], now: Timestamp) -> set[str]:
    """Sleeps that are over complete; waits for signals whose time is over fail."""
    due = [step for step in waits if step.kind != KindCode.FUNCTION and (step.due_at or 0) <= now]
    due.sort(key=lambda step: (step.wake_at or 0, step.begun_seq))
    for step in due:
        step.seq = run.next_result_seq()
        step.status, step.finished_at, step.lease, step.changed = StepCode.COMPLETED, now, run.lease, True
        if step.kind == KindCode.SIGNAL:
            step.status, step.error = StepCode.FAILED, _no_signal(step)
    return {step.step_id for step in due}


def _no_signal(step: StepState) -> ErrorDetail:
    """The statement fire_runs says the same."""
    by = to_datetime(step.wake_at or 0).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return ErrorDetail(
        code=ErrorCode.TIMEOUT,
        kind=ErrorKind.TIMEOUT,
        type="TimeoutError",
        message=f"signal '{step.name}' did not come before {by}",
        subject="step",
        subject_id=step.step_id,
    )


def _cancelled_meanwhile(run: RunState) -> bool:
    """Whether cancellation was requested of this very holder: its notice may cross the letter that parks the run, which
    would then sleep on. Waking at once gives it to a worker that knows. A run claimed after the request may sleep."""
    return run.cancel_requested_at is not None and run.cancel_requested_at >= (run.claimed_at or 0)


def _retry_run(run: RunState, decision: RetryAt, now: Timestamp) -> Outcome:
    run.next_seq()
    run.attempt = decision.attempt
    if run.pause_requested:
        run.leave(RunCode.PAUSED)
        return RunClosed(run.seq, now, RunStatus.PAUSED)
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
    run.cascade_due = run.cascade_due or run.has_children


def _ended_before(run: RunState, command: WorkerCommand) -> Outcome | None:
    """Sent again by the holder under which the run ended: it is told how."""
    if not run.ended or run.lease != command.lease:
        return None
    return _closed(run, run.finished_at or 0)


def _closed(run: RunState, at: Timestamp) -> RunClosed:
    status = RUN_STATUS_OF_CODE[run.status]
    return RunClosed(run.seq, at, status, continued_as=run.continued_as, has_children=run.has_children)


def _is_given(step: StepState) -> bool:
    return not step.withheld


def _seq_of(step: StepState) -> int:
    return step.seq
