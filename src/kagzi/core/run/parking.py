"""Fetches results that a worker does not know yet. Parks a run that can only wait, if there are none."""

from itertools import takewhile

from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..pages.sizes import results_page
from ..providers import Rng
from ..records import HistoryStep
from ..states import KindCode, RunCode, StepCode, WaitCode
from ..times import Timestamp, to_datetime
from .commands import FetchResults, Park, ResultsCommand
from .fence import refusal_of
from .outcomes import Deferred, DueRetry, Fetched, NotParked, Outcome, Parked
from .refusals import nothing_to_wait_for
from .state import NEVER, RunState, StepState

_REASONS = {
    int(KindCode.FUNCTION): WaitCode.RETRY,
    int(KindCode.SLEEP): WaitCode.TIME,
    int(KindCode.SIGNAL): WaitCode.SIGNAL,
    int(KindCode.CHILD): WaitCode.CHILD,
}


def fetch_results(run: RunState, command: FetchResults, now: Timestamp, rng: Rng) -> Outcome:
    if refused := refusal_of(run, command, now):
        return refused
    results = _new_results(run, command, now)
    return Deferred() if results is None else Fetched(now, *_page(results), _due_retries(run, command, now))


def park(run: RunState, command: Park, now: Timestamp, rng: Rng) -> Outcome:
    if run.status in (RunCode.SLEEPING, RunCode.PAUSED) and run.lease == command.lease:
        return Parked(now, run.due_at)
    if refused := refusal_of(run, command, now):
        return refused
    if run.pause_requested:
        run.leave(RunCode.PAUSED)
        return Parked(now, None)
    results = _new_results(run, command, now)
    if results is None:
        return Deferred()
    if not results:
        return _sleep(run, command, now)
    return NotParked(now, *_page(results), _due_retries(run, command, now))


def _new_results(run: RunState, command: ResultsCommand, now: Timestamp) -> list[StepState] | None:
    """Results that the worker does not know, including waits that are due, in order. None: the first one was not
    read."""
    unknown = [step for step in run.steps.values() if _is_unknown(step, command.known_seq)]
    if unknown and min(unknown, key=_seq_of).withheld:
        return None
    completed = _complete_due(run, _waits_of(run, command), now)
    results = [step for step in run.steps.values() if step.step_id in completed or _is_unknown(step, command.known_seq)]
    return sorted(results, key=_seq_of)


def _page(results: list[StepState]) -> tuple[tuple[HistoryStep, ...], bool]:
    read = list(takewhile(_is_read, results))  # withheld results come with a later page
    page, more = results_page(step.as_history() for step in read)
    return page, more or len(read) < len(results)


def _sleep(run: RunState, command: Park, now: Timestamp) -> Outcome:
    waits = _waits_of(run, command)
    open_waits = [(step.due_at, step.kind) for step in waits if step.due_at is not None]
    if not open_waits:
        return nothing_to_wait_for(run.run.run_id)
    due_at, kind = min(open_waits)
    if due_at <= now:
        return NotParked(now, (), False, _due_retries(run, command, now))
    run.leave(RunCode.SLEEPING)
    run.wait_reason = _REASONS[kind]
    # At once if a cancellation was requested meanwhile: the next claim reports it to the worker.
    run.due_at = now if run.cancel_unseen else None if due_at == NEVER else due_at
    return Parked(now, run.due_at)


def _waits_of(run: RunState, command: ResultsCommand) -> list[StepState]:
    """The waits that can wake the run: those named, so that an abandoned wait does not; if none is named, all."""
    open_waits = (step for step in run.steps.values() if step.due_at is not None)
    return [step for step in open_waits if not command.waits or step.step_id in command.waits]


def _due_retries(run: RunState, command: ResultsCommand, now: Timestamp) -> tuple[DueRetry, ...]:
    return tuple(
        DueRetry(step.step_id, step.attempt)
        for step in _waits_of(run, command)
        if step.kind == KindCode.FUNCTION and step.status == StepCode.PENDING and (step.due_at or 0) <= now
    )


def _is_unknown(step: StepState, known_seq: int) -> bool:
    return step.seq > known_seq and step.kind < KindCode.INPUT and step.status != StepCode.ABANDONED


def _complete_due(run: RunState, waits: list[StepState], now: Timestamp) -> set[str]:
    """Completes sleeps that are over; fails waits for signals that have timed out."""
    due = [step for step in waits if step.kind != KindCode.FUNCTION and (step.due_at or 0) <= now]
    due.sort(key=lambda step: (step.wake_at or 0, step.begun_seq))
    for step in due:
        step.seq = run.next_result_seq()
        step.status, step.finished_at, step.lease, step.changed = StepCode.COMPLETED, now, run.lease, True
        if step.kind == KindCode.SIGNAL:
            step.status, step.error = StepCode.FAILED, _no_signal(step)
    return {step.step_id for step in due}


def _no_signal(step: StepState) -> ErrorDetail:
    """The statement fire_runs writes the same error."""
    by = to_datetime(step.wake_at or 0).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return ErrorDetail(
        code=ErrorCode.TIMEOUT,
        kind=ErrorKind.TIMEOUT,
        type="TimeoutError",
        message=f"signal '{step.name}' did not arrive before {by}",
        subject="step",
        subject_id=step.step_id,
    )


def _is_read(step: StepState) -> bool:
    return not step.withheld


def _seq_of(step: StepState) -> int:
    return step.seq
