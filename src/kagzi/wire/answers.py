"""Outcomes of operations as a session's acknowledgements. Plain ones are packed; no reflection, one look-up each."""

from collections.abc import Callable, Sequence
from typing import cast

from ..core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ..core.records import HistoryStep
from ..core.run.outcomes import (
    Begun,
    Busy,
    ChildStarted,
    DeadlinePassed,
    Deferred,
    Failed,
    Fetched,
    Known,
    LeaseLost,
    NotParked,
    Outcome,
    Parked,
    Recorded,
    Refused,
    RetryScheduled,
    RunClosed,
    RunNotFound,
    SignalBound,
    StepFailed,
    TimerSet,
)
from ..core.states import StepKind, StepStatus
from ..core.times import Timestamp
from ..v1 import worker_pb2 as pb
from .common import NULL, write_error, write_payload
from .enums import RUN_STATUS_TO_WIRE
from .tasks import write_history_step

_PLAIN = (Recorded, Begun)


def write_answers(response: pb.SessionResponse, answers: Sequence[tuple[int, Outcome]], now: Timestamp) -> None:
    """Append the answers of one commit: plain ones packed into arrays, the others singly, each in the given order."""
    group_at: Timestamp | None = None
    ids: list[int] = []
    seqs: list[int] = []
    for operation_id, outcome in answers:
        if isinstance(outcome, _PLAIN):
            seq, at = outcome.seq, outcome.at
        elif isinstance(outcome, Known) and outcome.step.kind is StepKind.FUNCTION:
            seq, at = outcome.step.begun_seq, outcome.step.at
        else:
            response.answers.append(write_answer(operation_id, outcome, now))
            continue
        if at != group_at:
            if group_at is not None:
                response.acknowledged.append(pb.Acknowledged(at_us=group_at, ids=ids, seqs=seqs))
                ids, seqs = [], []
            group_at = at
        ids.append(operation_id)
        seqs.append(seq)
    if group_at is not None:
        response.acknowledged.append(pb.Acknowledged(at_us=group_at, ids=ids, seqs=seqs))


def write_answer(operation_id: int, outcome: Outcome, now: Timestamp) -> pb.OperationAnswer:
    """An answer that needs more than a seq. Remaining times of waits are relative to `now`, the server's time."""
    writer = _WRITERS.get(type(outcome))
    if writer is None:
        return pb.OperationAnswer(id=operation_id, refused=write_error(refusal(outcome)))
    answer = writer(outcome, now)
    answer.id = operation_id
    return answer


def _plain(outcome: Recorded | Begun, now: Timestamp) -> pb.OperationAnswer:
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at)


def _known(outcome: Known, now: Timestamp) -> pb.OperationAnswer:
    """The answer to a repeated operation that has a result by now: the one that the first would have received, had it
    waited until now."""
    step = outcome.step
    match step.kind:
        case StepKind.SIGNAL:
            return _known_signal(step)
        case StepKind.CHILD:
            child = pb.ChildStarted(child_run_id=step.child_run_id or "", already_exists=True)
            return pb.OperationAnswer(seq=step.begun_seq, at_us=step.at, child=child)
        case StepKind.FUNCTION:
            return pb.OperationAnswer(seq=step.begun_seq, at_us=step.at)
        case _:
            return pb.OperationAnswer(seq=step.seq or step.begun_seq, at_us=step.at)


def _known_signal(step: HistoryStep) -> pb.OperationAnswer:
    if step.status is StepStatus.FAILED and step.error is not None:
        exhausted = pb.StepExhausted(error=write_error(step.error), attempts=step.attempt)
        return pb.OperationAnswer(seq=step.seq, at_us=step.at, exhausted=exhausted)
    signal = pb.SignalBound(payload=write_payload(step.output or NULL))
    return pb.OperationAnswer(seq=step.seq, at_us=step.at, signal=signal)


def _signal(outcome: SignalBound, now: Timestamp) -> pb.OperationAnswer:
    signal = pb.SignalBound(payload=write_payload(outcome.payload))
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, signal=signal)


def _child(outcome: ChildStarted, now: Timestamp) -> pb.OperationAnswer:
    child = pb.ChildStarted(child_run_id=outcome.child_run_id, already_exists=not outcome.created)
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, child=child)


def _retry(outcome: RetryScheduled, now: Timestamp) -> pb.OperationAnswer:
    retry = pb.RetryScheduled(
        next_attempt=outcome.next_attempt, retry_at_us=outcome.retry_at, remaining_us=max(outcome.retry_at - now, 0)
    )
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, retry=retry)


def _exhausted(outcome: StepFailed, now: Timestamp) -> pb.OperationAnswer:
    exhausted = pb.StepExhausted(error=write_error(outcome.error), attempts=outcome.attempts)
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, exhausted=exhausted)


def _timer(outcome: TimerSet, now: Timestamp) -> pb.OperationAnswer:
    if outcome.wake_at is None:
        return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, timer=pb.TimerSet())
    # At least 1: a remaining time of 0 would mean that the sleep is recorded as ended, and this one is not.
    timer = pb.TimerSet(wake_at_us=outcome.wake_at, remaining_us=max(outcome.wake_at - now, 1))
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, timer=timer)


def _parked(outcome: Parked, now: Timestamp) -> pb.OperationAnswer:
    return pb.OperationAnswer(at_us=outcome.at, parked=pb.Parked(wake_at_us=outcome.wake_at or 0))


def _fetched(outcome: Fetched, now: Timestamp) -> pb.OperationAnswer:
    results = [write_history_step(step) for step in outcome.results]
    fetched = pb.Fetched(results=results, more=outcome.more, retries=_retries(outcome))
    return pb.OperationAnswer(at_us=outcome.at, fetched=fetched)


def _not_parked(outcome: NotParked, now: Timestamp) -> pb.OperationAnswer:
    results = [write_history_step(step) for step in outcome.results]
    not_parked = pb.NotParked(results=results, more=outcome.more, retries=_retries(outcome))
    return pb.OperationAnswer(at_us=outcome.at, not_parked=not_parked)


def _retries(outcome: Fetched | NotParked) -> list[pb.DueRetry]:
    return [pb.DueRetry(step_id=retry.step_id, attempt=retry.attempt) for retry in outcome.retries]


def _closed(outcome: RunClosed, now: Timestamp) -> pb.OperationAnswer:
    closed = pb.RunClosed(
        status=RUN_STATUS_TO_WIRE[outcome.status],
        retry_at_us=outcome.retry_at or 0,
        continued_as=outcome.continued_as or "",
    )
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, closed=closed)


_Writer = Callable[[Outcome, Timestamp], pb.OperationAnswer]


def _writers() -> dict[type, _Writer]:
    writers = {
        Recorded: _plain,
        Begun: _plain,
        Known: _known,
        RetryScheduled: _retry,
        StepFailed: _exhausted,
        TimerSet: _timer,
        SignalBound: _signal,
        ChildStarted: _child,
        Fetched: _fetched,
        Parked: _parked,
        NotParked: _not_parked,
        RunClosed: _closed,
    }
    return cast("dict[type, _Writer]", writers)


_WRITERS = _writers()


def _of_the_run(code: ErrorCode, kind: ErrorKind, message: str) -> ErrorDetail:
    return ErrorDetail(code=code, kind=kind, message=message, subject="run")


_LOCKED = _of_the_run(ErrorCode.UNAVAILABLE, ErrorKind.TRANSIENT, "the run is locked: try again")
_REFUSALS: dict[type, ErrorDetail] = {
    LeaseLost: _of_the_run(
        ErrorCode.LEASE_LOST,
        ErrorKind.LOST,
        "the run is held by another worker, sleeps or has ended: abandon it",
    ),
    RunNotFound: _of_the_run(ErrorCode.NOT_FOUND, ErrorKind.PERMANENT, "run not found"),
    DeadlinePassed: _of_the_run(ErrorCode.TIMEOUT, ErrorKind.TIMEOUT, "the run's deadline has passed"),
    Busy: _LOCKED,
    Deferred: _LOCKED,
    Failed: _of_the_run(  # clients must not see its reason
        ErrorCode.UNAVAILABLE, ErrorKind.TRANSIENT, "the store failed on this operation: try again"
    ),
}


def refusal(outcome: Outcome) -> ErrorDetail:
    """The reason why nothing was recorded."""
    if isinstance(outcome, Refused):
        return outcome.error
    if type(outcome) not in _REFUSALS:
        raise AssertionError(f"{type(outcome).__name__} is not a refusal")
    return _REFUSALS[type(outcome)]
