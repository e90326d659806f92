"""What run.info() tells about a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ...core.error_details import ErrorDetail
from ...core.public import exported
from ...core.records import RunRecord
from ...core.scheduled_time import split_scheduled_time
from ...core.states import RunStatus, WaitReason
from ...core.times import to_datetime


@exported
@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as it was when asked: `await run.info()`. Times are in UTC."""

    id: str  #: the run id
    workflow_id: str  #: the id it was started with, or a generated one
    workflow: str  #: the name of its workflow
    version: str | None  #: the version it is pinned to; None until a worker takes it
    status: RunStatus  #: its state
    wait_reason: WaitReason | None  #: what a sleeping run waits for
    status_text: str  #: what the workflow last said with `ctx.set_status`
    progress: float | None  #: 0 to 1, as the workflow last said
    labels: Mapping[str, str]  #: its labels
    attempt: int  #: of the whole run: 1, or more if the run itself was retried
    created_at: datetime  #: when it was started by a client
    started_at: datetime | None  #: when a worker first took it
    finished_at: datetime | None  #: when it ended
    wake_at: datetime | None  #: when a sleeping run wakes by itself
    deadline_at: datetime | None  #: when it fails, wherever it is
    waits: tuple[str, ...]  #: ids of the steps that a sleeping run waits for, nearest first
    cancel_requested: bool  #: whether it was asked to stop
    pause_requested: bool  #: whether it will pause when its worker lets go
    error: ErrorDetail | None  #: why it failed
    problem: ErrorDetail | None  #: why the engine paused it
    parent: str | None  #: run id of its parent
    forked_from: str | None  #: run id of the run it was forked from
    continued_as: str | None  #: run id of the run that continues it
    schedule: str | None  #: id of the schedule that started it
    concurrency_key: str  #: the key that limits per key count it by
    pause_reason: str  #: what was said when it was paused
    blocked_by: str | None  #: run id of the run that has to end before it begins
    scheduled_at: datetime | None  #: the nominal time, if a schedule started it


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
