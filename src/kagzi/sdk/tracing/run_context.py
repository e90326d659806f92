"""What the context of a run contains about its trace, and what it passes on to the runs that follow from it. Does not
need OpenTelemetry: workers without spans pass it on too."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from ...core.errors import RequestError
from ...core.records import Payload, is_encoded
from ...core.traces.ids import (
    TRACEPARENT,
    TRACESTATE,
    SpanRef,
    UsualStart,
    caller_of_start,
    continued_state,
    first_start,
    parse_traceparent,
    start_of,
    stretch_of,
    usual_start,
)
from ...v1.worker_pb2 import Task
from ..workflow.codec import ANY, read_payload, write_context

Context = dict[str, Any]


class RunStart(NamedTuple):
    """The parent of the first stretches of a run. `caller`: the parent of that in turn, 0 if not known; None: the span
    is not Kagzi's. `links`: of a run that continues another, to the first start and to the previous stretch."""

    ref: SpanRef
    caller: int | None = None
    links: tuple[SpanRef, ...] = ()

    @property
    def sampled(self) -> bool:
        return self.ref.sampled

    @property
    def first(self) -> SpanRef:
        """The start of the run that a client started, however often it was continued as new."""
        return self.links[0] if self.links else self.ref


def start_in(context: Mapping[str, Any], run_id: str) -> RunStart | None:
    """None if the context has no trace."""
    named = parse_traceparent(context.get(TRACEPARENT))
    if named is None:
        return None
    state = context.get(TRACESTATE)
    first = first_start(state)
    if first is None:
        return RunStart(named, caller_of_start(state))
    return RunStart(start_of(run_id)._replace(sampled=named.sampled), 0, (first, named))


class TraceOfTask:
    """The trace of a claimed run: whether it is sampled, and its start, which is read on first use."""

    __slots__ = ("_start", "sampled")

    def __init__(self, start: RunStart | UsualStart) -> None:
        self._start = start
        self.sampled = start.sampled

    @property
    def start(self) -> RunStart:
        start = self._start
        if isinstance(start, UsualStart):
            start = self._start = RunStart(*start.read())
        return start

    def ids(self) -> tuple[bytes, bytes]:
        """The trace and the span of the start."""
        start = self._start
        return start.ids() if isinstance(start, UsualStart) else start.ref.ids()


def start_of_task(task: Task) -> RunStart | UsualStart | None:
    """As `start_in`, for a claimed run."""
    return usual_start(task.context.data) or start_in(readable_context(task) or {}, task.run_id)


def readable_context(task: Task) -> Context | None:
    """None if it is encoded and the codec is not available, or if it is not a JSON object."""
    context = task.context
    if not context.data:
        return {}
    try:
        encoded = is_encoded(context.metadata)
        value: object = None if encoded else read_payload(ANY, Payload(context.data), what="context")
    except RequestError:
        return None
    return cast("Context", value) if isinstance(value, dict) else None


def child_context(context: Context, parent: SpanRef) -> Payload | None:
    """None: nothing can be added to it."""
    own = {key: value for key, value in context.items() if key != TRACESTATE}
    return _written({**own, TRACEPARENT: parent.traceparent})


def successor_context(context: Context, first: SpanRef, before: SpanRef) -> Payload | None:
    """The context of a run that continues another. None: nothing can be added to it."""
    return _written({**context, TRACEPARENT: before.traceparent, TRACESTATE: continued_state(first)})


def untraced_successor_context(task: Task) -> Payload | None:
    """As `successor_context`, by a worker that records no spans. None: the context is unchanged."""
    context = readable_context(task)
    start = None if not context else start_in(context, task.run_id)
    if context is None or start is None:
        return None
    claim = task.lease.counter
    before = stretch_of(start.ref, task.run_id, claim, own_traces_from=task.own_traces_from)
    return successor_context(context, start.first, before)


def _written(context: Context) -> Payload | None:
    try:
        return write_context(context)
    except RequestError:
        return None  # it would be too large
