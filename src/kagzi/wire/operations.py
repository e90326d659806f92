"""The session's hot path: operations become commands, outcomes become acknowledgements. No reflection, one look-up each."""

from collections.abc import Callable, Sequence
from typing import cast

from ..core.commands import (
    BeginSleep,
    BeginStep,
    CancelRun,
    ClosingCommand,
    CompleteRun,
    CompleteStep,
    FailRun,
    FailStep,
    FinishSleep,
    Park,
    ReleaseRun,
    StepCommand,
)
from ..core.errors import ErrorCode, ErrorDetail, ErrorKind
from ..core.outcomes import (
    Begun,
    Busy,
    DeadlinePassed,
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
    StepFailed,
    TimerSet,
)
from ..core.records import Lease, RunKey
from ..core.times import Timestamp
from ..v1 import worker_pb2 as pb
from .common import NULL, read_error, read_payload, read_retry, write_error
from .enums import RUN_STATUS_TO_WIRE
from .tasks import write_history_step

_Reader = Callable[[pb.Operation, RunKey, Lease], StepCommand | ClosingCommand]


def read_operation(operation: pb.Operation, run: RunKey, lease: Lease) -> StepCommand | ClosingCommand | Refused:
    """The command an operation means; Refused if it means none. Never raises for what a worker may have sent."""
    kind = operation.WhichOneof("kind")
    reader = _READERS.get(kind or "")
    return _not_understood(kind) if reader is None else reader(operation, run, lease)


def _begin_step(operation: pb.Operation, run: RunKey, lease: Lease) -> BeginStep:
    body = operation.begin_step
    return BeginStep(
        run=run,
        lease=lease,
        step_id=body.step_id,
        name=body.name or body.step_id,
        attempt=body.attempt,
        retry=read_retry(body.retry_policy) if body.HasField("retry_policy") else None,
        timeout_ms=body.timeout_ms,
        input=read_payload(body.input) if body.HasField("input") else None,
        parent_step_id=body.parent_step_id,
        parallel_group_id=body.parallel_group_id,
        once=body.once,
    )


def _complete_step(operation: pb.Operation, run: RunKey, lease: Lease) -> CompleteStep:
    body = operation.complete_step
    output = read_payload(body.output) if body.HasField("output") else NULL
    return CompleteStep(run=run, lease=lease, step_id=body.step_id, attempt=body.attempt, output=output)


def _fail_step(operation: pb.Operation, run: RunKey, lease: Lease) -> FailStep:
    body = operation.fail_step
    return FailStep(run=run, lease=lease, step_id=body.step_id, attempt=body.attempt, error=read_error(body.error))


def _sleep(operation: pb.Operation, run: RunKey, lease: Lease) -> BeginSleep:
    body = operation.sleep
    return BeginSleep(
        run=run,
        lease=lease,
        step_id=body.step_id,
        name=body.name or body.step_id,
        duration_us=None if body.until_us and not body.duration_us else body.duration_us,
        until=body.until_us or None,
        parent_step_id=body.parent_step_id,
        parallel_group_id=body.parallel_group_id,
    )


def _finish_sleep(operation: pb.Operation, run: RunKey, lease: Lease) -> FinishSleep:
    return FinishSleep(run=run, lease=lease, step_id=operation.finish_sleep.step_id)


def _park(operation: pb.Operation, run: RunKey, lease: Lease) -> Park:
    body = operation.park
    return Park(run=run, lease=lease, waits=tuple(body.waits), known_seq=body.known_seq)


def _complete_run(operation: pb.Operation, run: RunKey, lease: Lease) -> CompleteRun:
    body = operation.complete_run
    return CompleteRun(run=run, lease=lease, output=read_payload(body.output) if body.HasField("output") else NULL)


def _fail_run(operation: pb.Operation, run: RunKey, lease: Lease) -> FailRun:
    return FailRun(run=run, lease=lease, error=read_error(operation.fail_run.error))


def _cancel_run(operation: pb.Operation, run: RunKey, lease: Lease) -> CancelRun:
    return CancelRun(run=run, lease=lease, error=read_error(operation.cancel_run.error))


def _release(operation: pb.Operation, run: RunKey, lease: Lease) -> ReleaseRun:
    return ReleaseRun(run=run, lease=lease, reason=operation.release.reason)


_READERS: dict[str, _Reader] = {
    "begin_step": _begin_step,
    "complete_step": _complete_step,
    "fail_step": _fail_step,
    "sleep": _sleep,
    "finish_sleep": _finish_sleep,
    "park": _park,
    "complete_run": _complete_run,
    "fail_run": _fail_run,
    "cancel_run": _cancel_run,
    "release": _release,
}


def _not_understood(kind: str | None) -> Refused:
    if kind is None:
        message = "the operation has no kind that this server knows. Use a server of the worker's version or newer."
    else:
        message = f"operation {kind} is not implemented by this server yet."
    detail = ErrorDetail(
        code=ErrorCode.UNIMPLEMENTED,
        kind=ErrorKind.PERMANENT,
        message=message,
        subject="operation",
        subject_id=kind or "",
    )
    return Refused(detail)


# --- answers -----------------------------------------------------------------------------------------------------------


def write_answers(response: pb.SessionResponse, answers: Sequence[tuple[int, Outcome]], now: Timestamp) -> None:
    """Append the answers of one commit: plain ones packed into arrays, the rest one by one, each in the order given."""
    group_at: Timestamp | None = None
    ids: list[int] = []
    seqs: list[int] = []
    for operation_id, outcome in answers:
        kind = type(outcome)
        if kind is Recorded or kind is Begun:
            plain = cast("Recorded | Begun", outcome)
            seq, at = plain.seq, plain.at
        elif kind is Known:
            step = cast("Known", outcome).step
            seq, at = step.begun_seq, step.at
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
    """An answer that says more than a seq. What remains of a wait is counted from `now`, the server's time of writing."""
    writer = _WRITERS.get(type(outcome))
    if writer is None:
        return pb.OperationAnswer(id=operation_id, refused=write_error(refusal(outcome)))
    answer = writer(outcome, now)
    answer.id = operation_id
    return answer


def _plain(outcome: Recorded | Begun, now: Timestamp) -> pb.OperationAnswer:
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at)


def _known(outcome: Known, now: Timestamp) -> pb.OperationAnswer:
    return pb.OperationAnswer(seq=outcome.step.begun_seq, at_us=outcome.step.at)


def _retry(outcome: RetryScheduled, now: Timestamp) -> pb.OperationAnswer:
    retry = pb.RetryScheduled(
        next_attempt=outcome.next_attempt, retry_at_us=outcome.retry_at, remaining_us=max(outcome.retry_at - now, 0)
    )
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, retry=retry)


def _exhausted(outcome: StepFailed, now: Timestamp) -> pb.OperationAnswer:
    exhausted = pb.StepExhausted(error=write_error(outcome.error), attempts=outcome.attempts)
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, exhausted=exhausted)


def _timer(outcome: TimerSet, now: Timestamp) -> pb.OperationAnswer:
    # At least 1: a remaining time of 0 says that the sleep is recorded as over, and this one is not.
    timer = pb.TimerSet(wake_at_us=outcome.wake_at, remaining_us=max(outcome.wake_at - now, 1))
    return pb.OperationAnswer(seq=outcome.seq, at_us=outcome.at, timer=timer)


def _parked(outcome: Parked, now: Timestamp) -> pb.OperationAnswer:
    return pb.OperationAnswer(at_us=outcome.at, parked=pb.Parked(wake_at_us=outcome.wake_at or 0))


def _not_parked(outcome: NotParked, now: Timestamp) -> pb.OperationAnswer:
    results = [write_history_step(step) for step in outcome.results]
    return pb.OperationAnswer(at_us=outcome.at, not_parked=pb.NotParked(results=results))


def _closed(outcome: RunClosed, now: Timestamp) -> pb.OperationAnswer:
    closed = pb.RunClosed(status=RUN_STATUS_TO_WIRE[outcome.status], retry_at_us=outcome.retry_at or 0)
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
        Parked: _parked,
        NotParked: _not_parked,
        RunClosed: _closed,
    }
    return cast("dict[type, _Writer]", writers)


_WRITERS = _writers()


def refusal(outcome: Outcome) -> ErrorDetail:
    """Why nothing was recorded, in words."""
    match outcome:
        case Refused(error=error):
            return error
        case LeaseLost():
            return ErrorDetail(
                code=ErrorCode.LEASE_LOST,
                kind=ErrorKind.LOST,
                message="the run is held by another worker, sleeps or has ended: abandon it",
                subject="run",
            )
        case RunNotFound():
            return ErrorDetail(
                code=ErrorCode.NOT_FOUND, kind=ErrorKind.PERMANENT, message="run not found", subject="run"
            )
        case DeadlinePassed():
            return ErrorDetail(
                code=ErrorCode.TIMEOUT, kind=ErrorKind.TIMEOUT, message="the run's deadline has passed", subject="run"
            )
        case Busy():
            return ErrorDetail(
                code=ErrorCode.UNAVAILABLE,
                kind=ErrorKind.TRANSIENT,
                message="the run is locked: try again",
                subject="run",
            )
        case _:
            raise AssertionError(f"{type(outcome).__name__} is no refusal")
