"""What run.info() tells about a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ..core.errors import ErrorDetail
from ..core.records import RunRecord
from ..core.scheduled_time import split_scheduled_time
from ..core.states import RunStatus, WaitReason
from ..core.times import to_datetime


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as it was when asked. `waits` are the steps that a sleeping run waits for, nearest first; `problem` says why a paused run was paused by the engine; `status_text` and `progress` are what
    the workflow last said with `ctx.set_status`; `schedule` started it; `blocked_by` is the run whose end it waits for before it begins."""

    id: str
    workflow_id: str
    workflow: str
    version: str | None
    status: RunStatus
    wait_reason: WaitReason | None
    status_text: str
    progress: float | None
    labels: Mapping[str, str]
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    wake_at: datetime | None
    deadline_at: datetime | None
    waits: tuple[str, ...]
    cancel_requested: bool
    pause_requested: bool
    error: ErrorDetail | None
    problem: ErrorDetail | None
    parent: str | None
    forked_from: str | None
    continued_as: str | None
    schedule: str | None
    concurrency_key: str
    pause_reason: str
    blocked_by: str | None
    scheduled_at: datetime | None


def run_info(record: RunRecord) -> RunInfo:
    return RunInfo(
        id=record.run.run_id,
        workflow_id=record.workflow_id,
        workflow=record.workflow_type,
        version=record.version,
        status=record.status,
        wait_reason=record.wait_reason,
        status_text=record.status_text,
        progress=record.progress,
        labels=record.labels,
        attempt=record.attempt,
        created_at=to_datetime(record.created_at),
        started_at=_moment(record.started_at),
        finished_at=_moment(record.finished_at),
        wake_at=_moment(record.wake_at),
        deadline_at=_moment(record.deadline_at),
        waits=record.waits,
        cancel_requested=record.cancel_requested,
        pause_requested=record.pause_requested,
        error=record.error,
        problem=record.problem,
        parent=record.parent_run_id,
        forked_from=record.forked_from,
        continued_as=record.continued_as,
        schedule=record.schedule_id,
        concurrency_key=record.concurrency_key,
        pause_reason=record.pause_reason,
        blocked_by=record.blocked_by,
        scheduled_at=_moment(split_scheduled_time(record.context)[1]),
    )


def _moment(at: int | None) -> datetime | None:
    return None if at is None else to_datetime(at)
