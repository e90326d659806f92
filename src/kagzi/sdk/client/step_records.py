"""What run.steps() tells about a step."""

from dataclasses import dataclass
from datetime import datetime

from ...core import records
from ...core.errors import StepError
from ...core.public import exported
from ...core.states import StepKind, StepStatus
from ...core.times import to_datetime


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


def step_record(record: records.StepRecord) -> StepRecord:
    last_error = record.error or (record.attempts[-1].error if record.attempts else None)
    failed = record.status is StepStatus.FAILED and record.error is not None
    return StepRecord(
        id=record.step_id,
        name=record.name,
        kind=record.kind,
        status=record.status,
        attempts=record.attempt,
        output=b"" if record.output is None else record.output.data,
        error=StepError.of(record.step_id, record.error, attempts=record.attempt) if failed and record.error else None,
        last_error=None if last_error is None else last_error.text,
        wake_at=_moment(record.wake_at),
        retry_at=_moment(record.retry_at),
        child=record.child_run_id,
        started_at=_moment(record.started_at),
        finished_at=_moment(record.finished_at),
        parallel_group=record.parallel_group_id,
        details=b"" if record.details is None else record.details.data,
    )


def _moment(at: int | None) -> datetime | None:
    return None if at is None else to_datetime(at)
