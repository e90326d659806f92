"""Runs: their views and requests, with the names of `kagzi get --json` and `kagzi list --json`."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from ....core import limits
from ....core.duration import format_duration
from ....core.errors import InvalidArgument
from ....core.records import NO_LABELS, Explanation, RunEnd, RunFilter, RunOrder, RunRecord
from ....core.run.commands import OnConflict, StartRequest
from ....core.run.outcomes import Existing, Started
from ....core.schedules.scheduled_time import split_scheduled_time
from ....core.states import RunStatus, WaitReason
from ....core.traces.propagation import trace_of
from ....core.workflow_types.names import canonical_type
from ....engine import PageAsk
from ..page_data import PageData
from ..payloads import payload_of, payload_view
from ..problems import Problem
from ..public_urls import TRACE_ID
from ..route import Input
from .common import (
    DurationIn,
    ErrorView,
    Moment,
    MomentIn,
    PageSize,
    RetryIn,
    View,
    error_view,
    microseconds,
    moment,
    retry_of,
    timestamp,
)


class RunView(View, frozen=True, kw_only=True):
    """A run, as in lists. `awaits_signal`: how many of its steps wait for a signal; `retrying_steps`: how many wait for
    their next attempt. `ready_at`: since when a pending run waits for a worker; `queued_at`: when it began to wait for
    its first one, null if it did not; `queued`: how long it has waited in all, without the wait under way.
    `unread_signals`: how many signals its code has not received, also when it has ended; `handed_on_to`: the run that
    got those that it ended without."""

    run_id: str
    workflow_id: str
    workflow: str
    version: str | None
    status: RunStatus
    wait_reason: WaitReason | None
    status_text: str | None
    progress: float | None
    labels: Mapping[str, str]
    attempt: int
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    wake_at: Moment | None
    deadline_at: Moment | None
    cancel_requested: bool
    cancel_reason: str | None
    pause_requested: bool
    pause_reason: str | None
    error: ErrorView | None
    problem: ErrorView | None
    parent_run_id: str | None
    parent_step_id: str | None
    forked_from: str | None
    continued_as: str | None
    schedule: str | None
    blocked_by: str | None
    concurrency_key: str | None
    namespace: str
    priority: int
    worker_id: str | None
    awaits_signal: int
    retrying_steps: int
    unread_signals: int
    handed_on_to: str | None
    claims: int
    own_traces_from: int
    pinned_build: str | None
    last_seq: int
    ready_at: Moment | None
    queued_at: Moment | None
    queued: str
    url: str | None


class WholeRunView(RunView, frozen=True, kw_only=True):
    """A run with its values, as they are stored. `trace_id`: of the trace in its context; `trace_url`: the page of that
    trace, if the server has it configured."""

    waits: tuple[str, ...]
    scheduled_at: Moment | None
    input: msgspec.Raw
    output: msgspec.Raw
    context: msgspec.Raw
    trace_id: str | None
    trace_url: str | None
    state: msgspec.Raw
    state_at: Moment | None


def run_view(run: RunRecord, data: PageData) -> RunView:
    return RunView(
        run_id=run.run.run_id,
        workflow_id=run.workflow_id,
        workflow=run.workflow_type,
        version=run.version or None,
        status=run.status,
        wait_reason=run.wait_reason,
        status_text=run.status_text or None,
        progress=run.progress,
        labels=run.labels,
        attempt=run.attempt,
        created_at=moment(run.created_at) or "",
        started_at=moment(run.started_at),
        finished_at=moment(run.finished_at),
        wake_at=moment(run.wake_at),
        deadline_at=moment(run.deadline_at),
        cancel_requested=run.cancel_requested,
        cancel_reason=run.cancel_reason or None,
        pause_requested=run.pause_requested,
        pause_reason=run.pause_reason or None,
        error=error_view(run.error),
        problem=error_view(run.problem),
        parent_run_id=run.parent_run_id or None,
        parent_step_id=run.parent_step_id or None,
        forked_from=run.forked_from or None,
        continued_as=run.continued_as or None,
        schedule=run.schedule_id or None,
        blocked_by=run.blocked_by or None,
        concurrency_key=run.concurrency_key or None,
        namespace=run.run.namespace,
        priority=run.priority,
        worker_id=run.worker_id or None,
        awaits_signal=run.awaits_signal,
        retrying_steps=run.retrying_steps,
        unread_signals=run.unread_signals,
        handed_on_to=run.handed_on_to,
        claims=run.claims,
        own_traces_from=run.own_traces_from,
        pinned_build=run.pinned_build or None,
        last_seq=run.last_seq,
        ready_at=moment(run.ready_at),
        queued_at=moment(run.queued_at),
        queued=format_duration(timedelta(microseconds=run.queued_us)),
        url=data.info.url_of(run.run) or None,
    )


def whole_run_view(run: RunRecord, data: PageData) -> WholeRunView:
    context, scheduled_at = split_scheduled_time(run.context)
    trace_id = trace_of(context)
    template = data.info.trace_url
    return WholeRunView(
        **_fields(run_view(run, data)),
        waits=run.waits,
        scheduled_at=moment(scheduled_at),
        input=payload_view(run.input),
        output=payload_view(run.output),
        context=payload_view(context),
        trace_id=trace_id,
        trace_url=template.replace(TRACE_ID, trace_id) if template and trace_id else None,
        state=payload_view(run.state),
        state_at=moment(run.state_at),
    )


def _fields(view: RunView) -> dict[str, Any]:
    return {name: getattr(view, name) for name in RunView.__struct_fields__}


# --- lists ------------------------------------------------------------------------------------------------------------


class FilterIn(Input, frozen=True, kw_only=True):
    """Selects runs; all conditions must hold. `id` is a workflow id, `id_prefix` the beginning of the workflow id or
    run id, `run` a list of run ids (at most 1,000), `key` a concurrency key, `worker` the worker that holds the run
    now. `since` and `until` apply to the creation, `ended_since` and `ended_until` to the end; lower bounds are
    inclusive, upper bounds exclusive. `problem`: whether the engine paused it because of a problem; `failing`: that, or
    a step is being retried; `waiting`: for a signal."""

    status: tuple[RunStatus, ...] = ()
    workflow: tuple[str, ...] = ()
    since: MomentIn | None = None
    until: MomentIn | None = None
    ended_since: MomentIn | None = None
    ended_until: MomentIn | None = None
    id: str = ""
    id_prefix: str = ""
    run: tuple[str, ...] = ()
    version: str = ""
    parent: str = ""
    schedule: str = ""
    key: str = ""
    worker: str = ""
    problem: bool | None = None
    failing: bool | None = None
    waiting: bool | None = None


class RunsQuery(FilterIn, frozen=True, kw_only=True):
    """`label`: `key=value`; a run must have all of them. `order`: by creation or by end, latest first; lists of runs
    that ended within a time range are ordered by end."""

    label: tuple[str, ...] = ()
    order: RunOrder | None = None
    size: PageSize = limits.PAGE_DEFAULT_ROWS
    token: str = ""
    count: bool = False

    @property
    def page(self) -> PageAsk:
        return PageAsk(size=self.size, token=self.token, count=self.count)


def filter_of(conditions: FilterIn, labels: Mapping[str, str]) -> RunFilter:
    return RunFilter(
        statuses=conditions.status,
        workflow_types=tuple(map(canonical_type, conditions.workflow)),
        labels=labels,
        created_after=timestamp(conditions.since, "since"),
        created_before=timestamp(conditions.until, "until"),
        workflow_id=conditions.id,
        version=conditions.version,
        parent_run_id=conditions.parent,
        schedule_id=conditions.schedule,
        concurrency_key=conditions.key,
        worker_id=conditions.worker,
        has_problem=conditions.problem,
        failing=conditions.failing,
        waiting=conditions.waiting,
        ended_after=timestamp(conditions.ended_since, "ended_since"),
        ended_before=timestamp(conditions.ended_until, "ended_until"),
        id_prefix=conditions.id_prefix,
        run_ids=conditions.run,
    )


def labels_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Raises InvalidArgument."""
    labels: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator:
            raise InvalidArgument(f"label={pair[:256]!r} has no value. Write label=key=value.", field="label")
        if key in labels:
            raise InvalidArgument(f"label {key[:256]!r} is given more than once. Give it once.", field="label")
        labels[key] = value
    return labels


# --- starting ---------------------------------------------------------------------------------------------------------


class StartIn(Input, frozen=True, kw_only=True):
    """A run to start. `input` is stored to the byte. `start_at` and `delay` exclude each other; `timeout` counts from
    now. Both `timeout` and `deadline_at` include the time in the queue."""

    workflow: str
    input: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    context: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    workflow_id: str = ""
    version: str = ""
    labels: Mapping[str, str] = NO_LABELS
    priority: int = 0
    concurrency_key: str = ""
    on_conflict: OnConflict = "existing"
    start_at: MomentIn | None = None
    delay: DurationIn | None = None
    deadline_at: MomentIn | None = None
    timeout: DurationIn | None = None
    retry: RetryIn | None = None


def start_of(start: StartIn, namespace: str, request_id: str) -> StartRequest:
    return StartRequest(
        namespace=namespace,
        workflow_type=canonical_type(start.workflow),
        workflow_id=start.workflow_id,
        request_id=request_id,
        input=payload_of(start.input, "input"),
        context=payload_of(start.context, "context"),
        version=start.version,
        labels=start.labels,
        priority=start.priority,
        concurrency_key=start.concurrency_key,
        on_conflict=start.on_conflict,
        start_at=timestamp(start.start_at, "start_at"),
        delay_us=microseconds(start.delay, "delay"),
        deadline_at=timestamp(start.deadline_at, "deadline_at"),
        timeout_us=microseconds(start.timeout, "timeout"),
        retry=retry_of(start.retry),
    )


class StartedView(View, frozen=True, kw_only=True):
    """`created` false: the run existed before the request. `warning`: for people, if no worker serves it."""

    run_id: str
    workflow_id: str
    status: RunStatus
    created: bool
    url: str | None
    warning: str | None


def started_view(outcome: Started | Existing, url: str, warning: str = "") -> StartedView:
    return StartedView(
        run_id=outcome.run_id,
        workflow_id=outcome.workflow_id,
        status=outcome.status,
        created=isinstance(outcome, Started) or outcome.repeated,
        url=url or None,
        warning=warning or None,
    )


class BatchIn(Input, frozen=True, kw_only=True):
    """Runs to start. A refused one does not affect the others."""

    starts: tuple[StartIn, ...]


class BatchItem(View, frozen=True, kw_only=True):
    """Either the started run or an error."""

    started: StartedView | None = None
    error: Problem | None = None


class BatchView(View, frozen=True, kw_only=True):
    """In the order of the request."""

    items: tuple[BatchItem, ...]


# --- reading ----------------------------------------------------------------------------------------------------------


class WaitQuery(Input, frozen=True, kw_only=True):
    """`timeout`: how long to wait, at most 50 s."""

    timeout: DurationIn = "50s"


class OutcomeView(View, frozen=True, kw_only=True):
    """`ended` false: the run was still open when the timeout ended. Ask again."""

    run_id: str
    ended: bool
    status: RunStatus
    output: msgspec.Raw
    error: ErrorView | None
    continued_as: str | None


def outcome_view(end: RunEnd | RunStatus, run_id: str) -> OutcomeView:
    if isinstance(end, RunStatus):
        return OutcomeView(
            run_id=run_id, ended=False, status=end, output=payload_view(None), error=None, continued_as=None
        )
    return OutcomeView(
        run_id=end.run.run_id,
        ended=True,
        status=end.status,
        output=payload_view(end.output),
        error=error_view(end.error),
        continued_as=end.continued_as or None,
    )


class ExplanationView(View, frozen=True, kw_only=True):
    """Why the run is in its current state. `reason` is a stable identifier for programs."""

    run_id: str
    sentence: str
    reason: str
    facts: Mapping[str, str]
    remedy: str | None


def explanation_view(run_id: str, explanation: Explanation) -> ExplanationView:
    return ExplanationView(
        run_id=run_id,
        sentence=explanation.sentence,
        reason=explanation.reason,
        facts=explanation.facts,
        remedy=explanation.remedy or None,
    )


class ImportedView(View, frozen=True, kw_only=True):
    run_id: str
    created: bool
