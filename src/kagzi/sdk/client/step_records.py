"""Records of steps: what `run.steps()` returns."""

from dataclasses import dataclass
from datetime import datetime

from ...core import records
from ...core.error_details import ErrorDetail
from ...core.errors import StepError
from ...core.public import exported
from ...core.retry.policy import SERVER_DEFAULT
from ...core.retry.reasons import why_not_retried
from ...core.states import StepKind, StepStatus
from ...core.times import to_datetime
from .run_records import moment, payload_data, payload_encoding


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """An attempt of a step that failed, or whose worker was lost."""

    attempt: int  #: its number; a lost attempt does not count, so the next one has the same
    started_at: datetime | None  #: when it began
    finished_at: datetime  #: when it failed, or when its loss was noticed
    error: ErrorDetail  #: why it failed; of kind LOST if its worker was lost
    worker_id: str | None = None  #: the worker that executed it


@exported
@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step of a run: its result, or how far it has come."""

    id: str  #: the step id: unique in its run
    name: str  #: as the code calls it
    kind: StepKind  #: what it is
    status: StepStatus  #: its state
    attempts: int = 0  #: attempts so far
    output: bytes = b""  #: the recorded result as JSON; empty while there is none
    error: StepError | None = None  #: why it failed for good
    last_error: str | None = None  #: the error of its last failed attempt, as text
    wake_at: datetime | None = None  #: when a sleep or a wait with a timeout ends
    retry_at: datetime | None = None  #: when the next attempt is due
    child: str | None = None  #: run id of the child it started
    started_at: datetime | None = None  #: when its last attempt began
    finished_at: datetime | None = None  #: when it got its result
    parallel_group: str = ""  #: the `parallel` or `map` that it is part of
    details: bytes = b""  #: what its last heartbeat said, as JSON
    created_at: datetime | None = None  #: when it was first begun
    seq: int = 0  #: the place of its result among the results of the run; 0 while there is none
    earlier: tuple[StepAttempt, ...] = ()  #: attempts that failed or were lost, the oldest first
    error_detail: ErrorDetail | None = None  #: the recorded error in full
    not_retried: str = ""  #: why it was not retried; empty if it did not fail, or its attempts were used up
    encoding: str = ""  #: how output and details are encoded, if it is not plain JSON


def step_record(record: records.StepRecord) -> StepRecord:
    last_error = record.error or (record.attempts[-1].error if record.attempts else None)
    failed = record.error if record.status is StepStatus.FAILED else None
    is_function = record.kind is StepKind.FUNCTION
    return StepRecord(
        id=record.step_id,
        name=record.name,
        kind=record.kind,
        status=record.status,
        attempts=record.attempt,
        output=payload_data(record.output),
        error=None if failed is None else StepError.of(record.step_id, failed, attempts=record.attempt),
        last_error=None if last_error is None else last_error.text,
        wake_at=moment(record.wake_at),
        retry_at=moment(record.retry_at),
        child=record.child_run_id,
        started_at=moment(record.started_at),
        finished_at=moment(record.finished_at),
        parallel_group=record.parallel_group_id,
        details=payload_data(record.details),
        created_at=to_datetime(record.created_at),
        seq=record.seq,
        earlier=tuple(_attempt(attempt) for attempt in record.attempts),
        error_detail=record.error,
        not_retried=why_not_retried(record.retry or SERVER_DEFAULT, failed) if failed and is_function else "",
        encoding=payload_encoding(record.output) or payload_encoding(record.details),
    )


def _attempt(attempt: records.StepAttempt) -> StepAttempt:
    return StepAttempt(
        attempt=attempt.attempt,
        started_at=moment(attempt.started_at),
        finished_at=to_datetime(attempt.finished_at),
        error=attempt.error,
        worker_id=attempt.worker_id,
    )
