"""Steps for drawing a timeline: columns, without their values."""

from ....core.pages.pauses import Pause
from ....core.pages.timeline import TIMELINE_STEPS, Timeline, TimelineQuery, TimelineRetry, TimelineStep
from ....core.states import StepKind, StepStatus
from ..route import Input
from .common import Moment, View, moment


class TimelineQueryIn(Input, frozen=True, kw_only=True):
    """The newest steps; or those begun `after` or `before` a `begun_seq`; or those `around` a step id: one of the
    three. Filtered by `name`, `status` and `kind`; at most `size`."""

    after: int | None = None
    before: int | None = None
    around: str = ""
    name: str = ""
    status: tuple[StepStatus, ...] = ()
    kind: tuple[StepKind, ...] = ()
    size: int = TIMELINE_STEPS


class TimelineAttemptView(View, frozen=True, kw_only=True):
    """When an earlier attempt began and ended, and on which worker."""

    started_at: Moment | None
    finished_at: Moment
    worker_id: str | None


class TimelineStepView(View, frozen=True, kw_only=True):
    """A step without its values. `attempts`: the latest 20 earlier attempts. `error`: its first line."""

    step_id: str
    name: str
    kind: StepKind
    status: StepStatus
    begun_seq: int
    seq: int
    attempt: int
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    retry_at: Moment | None
    wake_at: Moment | None
    attempts: tuple[TimelineAttemptView, ...]
    error: str | None
    child_run_id: str | None
    parent_step_id: str | None
    parallel_group: str | None
    worker_id: str | None


class PauseView(View, frozen=True, kw_only=True):
    """`started_at`: when it was paused, or asked to pause while a worker had it. `finished_at` null: still paused."""

    started_at: Moment
    finished_at: Moment | None
    reason: str | None


class TimelineRetryView(View, frozen=True, kw_only=True):
    """A retry of the run, and how many of the steps that it discarded are kept: `/runs/{run}/steps?forgotten=1`."""

    retry_seq: int
    retried_at: Moment
    steps: int


class TimelineView(View, frozen=True, kw_only=True):
    """`rows`: newest first; with `after`, oldest first. `older`, `newer`: whether there are more on that side.
    `pauses`: of the run, the latest 100, oldest first. `retries`: of the run, those that discarded steps, latest
    first."""

    rows: tuple[TimelineStepView, ...]
    older: bool
    newer: bool
    pauses: tuple[PauseView, ...]
    retries: tuple[TimelineRetryView, ...]


def timeline_query(query: TimelineQueryIn) -> TimelineQuery:
    return TimelineQuery(
        after=query.after,
        before=query.before,
        around=query.around,
        name=query.name,
        statuses=query.status,
        kinds=query.kind,
        size=query.size,
    )


def timeline_view(timeline: Timeline) -> TimelineView:
    return TimelineView(
        rows=tuple(map(_step_view, timeline.steps)),
        older=timeline.older,
        newer=timeline.newer,
        pauses=tuple(map(_pause_view, timeline.pauses)),
        retries=tuple(map(_retry_view, timeline.retries)),
    )


def _retry_view(retry: TimelineRetry) -> TimelineRetryView:
    return TimelineRetryView(retry_seq=retry.retry_seq, retried_at=moment(retry.retried_at) or "", steps=retry.steps)


def _pause_view(pause: Pause) -> PauseView:
    started_at = moment(pause.started_at) or ""
    return PauseView(started_at=started_at, finished_at=moment(pause.finished_at), reason=pause.reason or None)


def _step_view(step: TimelineStep) -> TimelineStepView:
    return TimelineStepView(
        step_id=step.step_id,
        name=step.name,
        kind=step.kind,
        status=step.status,
        begun_seq=step.begun_seq,
        seq=step.seq,
        attempt=step.attempt,
        created_at=moment(step.created_at) or "",
        started_at=moment(step.started_at),
        finished_at=moment(step.finished_at),
        retry_at=moment(step.retry_at),
        wake_at=moment(step.wake_at),
        attempts=tuple(
            TimelineAttemptView(started_at=moment(began), finished_at=moment(ended) or "", worker_id=worker or None)
            for began, ended, worker in step.attempts
        ),
        error=step.error or None,
        child_run_id=step.child_run_id or None,
        parent_step_id=step.parent_step_id or None,
        parallel_group=step.parallel_group_id or None,
        worker_id=step.worker_id or None,
    )
