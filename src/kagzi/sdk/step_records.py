"""What run.steps() tells about a step."""

from dataclasses import dataclass
from datetime import datetime

from ..core import records
from ..core.errors import StepError
from ..core.states import StepKind, StepStatus
from ..core.times import to_datetime


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a run: its result, or how far it has come. `output` is the recorded JSON; empty while there is none.
    `details` are those of its last heartbeat, as JSON; `parallel_group` names the `parallel` or `map` it is part of."""

    id: str
    name: str
    kind: StepKind
    status: StepStatus
    attempts: int = 0
    output: bytes = b""
    error: StepError | None = None
    last_error: str | None = None
    wake_at: datetime | None = None
    retry_at: datetime | None = None
    child: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    parallel_group: str = ""
    details: bytes = b""


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
