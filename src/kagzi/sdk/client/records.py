"""Records of runs and steps: what `run.info()`, `run.steps()` and `run.explain()` return."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ...core import records
from ...core.error_details import ErrorDetail
from ...core.errors import StepError
from ...core.records import Payload, RunRecord
from ...core.retry import RetryPolicy
from ...core.retry_words import why_not_retried
from ...core.scheduled_time import split_scheduled_time
from ...core.states import RunStatus, StepKind, StepStatus, WaitReason
from ...core.times import to_datetime


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
    waits: tuple[str, ...]  #: ids of the steps that a sleeping run waits for, nearest first; not in lists
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
    scheduled_at: datetime | None  #: the nominal time, if a schedule started it; not in lists
    namespace: str = ""  #: where it is
    priority: int = 0  #: higher ones are taken first
    worker_id: str | None = None  #: the worker that holds it
    parent_step: str | None = None  #: the step of its parent that started it
    url: str = ""  #: its page; empty if the server has no pages
    input: bytes = b""  #: what it was given, as JSON; empty in lists, and if it was given nothing
    output: bytes = b""  #: what it returned, as JSON; empty in lists, and while there is none
    encoding: str = ""  #: how input and output are encoded, if it is not plain JSON


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """An attempt of a step that failed, or whose worker was lost."""

    attempt: int  #: its number; a lost attempt does not count, so the next one has the same
    started_at: datetime | None  #: when it began
    finished_at: datetime  #: when it failed, or when its loss was noticed
    error: ErrorDetail  #: why it failed; of kind LOST if its worker was lost
    worker_id: str | None = None  #: the worker that executed it


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


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a run is where it is. `str()` is the sentence."""

    sentence: str  #: for people
    reason: str = ""  #: a stable word for programs
    facts: Mapping[str, str] = field(default_factory=dict[str, str])  #: what the sentence is based on
    remedy: str = ""  #: what to do about it; empty if there is nothing to do

    def __str__(self) -> str:
        return self.sentence


class RunCount(int):
    """How many runs there are: an int. A server stops counting at 10,000; then `capped` is True."""

    capped: bool  #: whether there are more

    def __new__(cls, count: int, capped: bool) -> "RunCount":
        made = super().__new__(cls, count)
        made.capped = capped
        return made


# --- from what the server sent ----------------------------------------------------------------------------------------


def run_info(record: RunRecord, url: str) -> RunInfo:
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
        namespace=record.run.namespace,
        priority=record.priority,
        worker_id=record.worker_id,
        parent_step=record.parent_step_id,
        url=url,
        input=_data(record.input),
        output=_data(record.output),
        encoding=_encoding(record.input) or _encoding(record.output),
    )


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
        output=_data(record.output),
        error=None if failed is None else StepError.of(record.step_id, failed, attempts=record.attempt),
        last_error=None if last_error is None else last_error.text,
        wake_at=_moment(record.wake_at),
        retry_at=_moment(record.retry_at),
        child=record.child_run_id,
        started_at=_moment(record.started_at),
        finished_at=_moment(record.finished_at),
        parallel_group=record.parallel_group_id,
        details=_data(record.details),
        created_at=to_datetime(record.created_at),
        seq=record.seq,
        earlier=tuple(_attempt(attempt) for attempt in record.attempts),
        error_detail=record.error,
        not_retried=why_not_retried(record.retry or RetryPolicy(), failed) if failed and is_function else "",
        encoding=_encoding(record.output) or _encoding(record.details),
    )


def _attempt(attempt: records.StepAttempt) -> StepAttempt:
    return StepAttempt(
        attempt=attempt.attempt,
        started_at=_moment(attempt.started_at),
        finished_at=to_datetime(attempt.finished_at),
        error=attempt.error,
        worker_id=attempt.worker_id,
    )


def _moment(at: int | None) -> datetime | None:
    return None if at is None else to_datetime(at)


def _data(payload: Payload | None) -> bytes:
    return b"" if payload is None else payload.data


def _encoding(payload: Payload | None) -> str:
    return (payload.metadata or {}).get("encoding", "") if payload else ""
