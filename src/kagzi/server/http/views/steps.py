"""Steps, with the names of `kagzi get --steps --json`."""

import msgspec

from ....core.records import StepAttempt, StepRecord
from ....core.retry.policy import SERVER_DEFAULT, RetryPolicy
from ....core.retry.reasons import why_not_retried
from ....core.run.step_logs import StepLog
from ....core.states import RunStatus, StepKind, StepStatus
from ..payloads import payload_view
from ..route import Input
from .common import ErrorView, Moment, PageQuery, View, error_view, moment


class AttemptView(View, frozen=True, kw_only=True):
    """An attempt that failed, or whose worker was lost: then the next one has the same number. `input`: its arguments.
    `before_retry`: the run was retried since, and its attempts are counted from the beginning."""

    attempt: int
    started_at: Moment | None
    finished_at: Moment
    worker_id: str | None
    error: ErrorView
    input: msgspec.Raw
    before_retry: bool


class RetryView(View, frozen=True, kw_only=True):
    """How often a step is tried, and how long it waits between attempts. `maximum_attempts` -1: unlimited."""

    maximum_attempts: int
    initial_interval_ms: int
    backoff_coefficient: float
    maximum_interval_ms: int


class StepView(View, frozen=True, kw_only=True):
    """A step. Only functions have `retry`. `attempts` are the earlier ones. Lists omit `input`, `output`, `details` (of
    its last heartbeat) and `input` of attempts, unless requested. `retry_seq`, `retried_at`: the retry of the run that
    discarded it; null if it is part of the history."""

    step_id: str
    name: str
    kind: StepKind
    status: StepStatus
    attempt: int
    seq: int
    begun_seq: int
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    retry_at: Moment | None
    wake_at: Moment | None
    child_run_id: str | None
    parent_step_id: str | None
    parallel_group: str | None
    worker_id: str | None
    timeout_ms: int | None
    retry: RetryView | None
    details: msgspec.Raw
    input: msgspec.Raw
    output: msgspec.Raw
    error: ErrorView | None
    not_retried: str | None
    attempts: tuple[AttemptView, ...]
    retry_seq: int | None
    retried_at: Moment | None


def step_view(step: StepRecord) -> StepView:
    return StepView(
        step_id=step.step_id,
        name=step.name,
        kind=step.kind,
        status=step.status,
        attempt=step.attempt,
        seq=step.seq,
        begun_seq=step.begun_seq,
        created_at=moment(step.created_at) or "",
        started_at=moment(step.started_at),
        finished_at=moment(step.finished_at),
        retry_at=moment(step.retry_at),
        wake_at=moment(step.wake_at),
        child_run_id=step.child_run_id or None,
        parent_step_id=step.parent_step_id or None,
        parallel_group=step.parallel_group_id or None,
        worker_id=step.worker_id or None,
        timeout_ms=step.timeout_ms or None,
        retry=_retry_view(step.retry or SERVER_DEFAULT) if step.kind is StepKind.FUNCTION else None,
        details=payload_view(step.details),
        input=payload_view(step.input),
        output=payload_view(step.output),
        error=error_view(step.error),
        not_retried=_not_retried(step) or None,
        attempts=tuple(map(_attempt_view, step.attempts)),
        retry_seq=step.retry_seq or None,
        retried_at=moment(step.retried_at),
    )


def _retry_view(policy: RetryPolicy) -> RetryView:
    return RetryView(**{name: getattr(policy, name) for name in RetryView.__struct_fields__})


def _attempt_view(attempt: StepAttempt) -> AttemptView:
    error = error_view(attempt.error)
    assert error is not None
    return AttemptView(
        attempt=attempt.attempt,
        started_at=moment(attempt.started_at),
        finished_at=moment(attempt.finished_at) or "",
        worker_id=attempt.worker_id or None,
        error=error,
        input=payload_view(attempt.input),
        before_retry=attempt.before_retry,
    )


def _not_retried(step: StepRecord) -> str:
    if step.status is not StepStatus.FAILED or step.kind is not StepKind.FUNCTION or step.error is None:
        return ""
    return why_not_retried(step.retry or SERVER_DEFAULT, step.error)


class StepsQuery(PageQuery, frozen=True, kw_only=True):
    """`name`: only steps of this name. `payloads`: include their values. `forgotten`: instead, the steps that retries
    of the run have discarded, the latest retry first."""

    name: str = ""
    payloads: bool = False
    forgotten: bool = False


class StepQuery(Input, frozen=True, kw_only=True):
    """`id`: the step id, which may contain `/`, `[` and `#`. `retry_seq`: as it was when this retry of the run
    discarded it."""

    id: str
    retry_seq: int = 0


class StepLogsQuery(PageQuery, frozen=True, kw_only=True):
    """`id`: only this step."""

    id: str = ""


class WakeQuery(Input, frozen=True, kw_only=True):
    """`id`: the step. Without it: the run itself, if it waits to begin or for its retry; otherwise its only step that
    waits for a time."""

    id: str = ""


class LogLineView(View, frozen=True, kw_only=True):
    """A line that the body of a step logged. `text` is a string, or a description of it if a codec changed it."""

    at: Moment
    attempt: int
    level: str
    text: msgspec.Raw


class StepLogView(View, frozen=True, kw_only=True):
    """The last lines of a step, oldest first. `dropped`: how many lines were discarded."""

    step_id: str
    lines: tuple[LogLineView, ...]
    dropped: int


def step_log_view(log: StepLog) -> StepLogView:
    lines = tuple(
        LogLineView(at=moment(line.at) or "", attempt=line.attempt, level=line.level, text=payload_view(line.payload))
        for line in log.lines
    )
    return StepLogView(step_id=log.step_id, lines=lines, dropped=log.dropped)


class WokenView(View, frozen=True, kw_only=True):
    """`woken` false: it was no longer waiting. `step` null: the run itself was woken. `due_at`: when it would have been
    due."""

    run_id: str
    step: str | None
    woken: bool
    status: RunStatus
    due_at: Moment | None
