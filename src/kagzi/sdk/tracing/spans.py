"""Spans that are recorded live: of starts by clients, of runs and steps by workers.

Most are light (light_span.py). If the program has a custom sampler or processor, they are the SDK's.
"""

from collections.abc import Awaitable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypeVar

from opentelemetry import context as otel_context
from opentelemetry import trace as api
from opentelemetry.sdk.trace import Tracer, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind

from ...core.records import Payload
from ...core.traces.ids import (
    TRACEPARENT,
    TRACESTATE,
    SpanRef,
    UsualStart,
    parse_traceparent,
    start_context,
    start_of,
    start_state,
)
from ...core.version import __version__
from ...v1 import workflow_pb2 as pb
from ...v1.worker_pb2 import Task
from ..workflow.codec import write_context
from .attributes import SCOPE, Attributes, run_name, start_attributes, start_ids, start_name
from .emission import Emission, Sink, decision_for_roots
from .own_spans import SpanOfStart
from .references import SPAN_KEY, get_context, span_context
from .run_context import RunStart, TraceOfTask, start_of_task
from .stretch import Stretch, record_error

Started = TypeVar("Started", pb.StartWorkflowResponse, pb.SignalWithStartResponse)

_next_ids: ContextVar[SpanRef | None] = ContextVar("kagzi_next_span", default=None)


class _Ids(IdGenerator):
    """The id generator of Kagzi's own tracer: the given ids of the span that is being created, or random ones."""

    def __init__(self, others: IdGenerator) -> None:
        self.others = others

    def generate_span_id(self) -> int:
        ref = _next_ids.get()
        return self.others.generate_span_id() if ref is None else ref.span_id

    def generate_trace_id(self) -> int:
        ref = _next_ids.get()
        return self.others.generate_trace_id() if ref is None else ref.trace_id

    def is_trace_id_random(self) -> bool:
        """False for derived ids. Only the first versions of the SDK do not ask."""
        return _next_ids.get() is None and getattr(self.others, "is_trace_id_random", lambda: False)()


class Tracing:
    """Creates the spans of a client or of a worker."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._emission = Emission(tracer)
        self._roots = decision_for_roots(tracer.sampler)

    @classmethod
    def on(cls, provider: TracerProvider) -> Self | None:
        """None if the SDK is disabled (OTEL_SDK_DISABLED)."""
        tracer = provider.get_tracer(SCOPE, __version__)
        if not isinstance(tracer, Tracer):
            return None
        if not isinstance(tracer.id_generator, _Ids):
            tracer.id_generator = _Ids(tracer.id_generator)
        return cls(tracer)

    # --- clients ------------------------------------------------------------------------------------------------------

    def start(self, namespace: str, workflow_type: str, context: Mapping[str, Any] | None) -> "StartSpan":
        """The span of a start. Its parent is the current span, or else the one in the `context`."""
        current = get_context().get(SPAN_KEY)  # without the type check of `get_current_span`
        parent = current.get_span_context() if isinstance(current, Span) else None
        if parent is None or not parent.is_valid:
            named = parse_traceparent(context.get(TRACEPARENT)) if context else None
            parent = None if named is None else span_context(named)
        caller_id = 0 if parent is None else parent.span_id
        sink, name = self._emission.find(), start_name(workflow_type)
        if sink is None or not isinstance(self._tracer.sampler, ParentBased):
            inside, attributes = _with_parent(parent), start_attributes(namespace, workflow_type)
            span = self._tracer.start_span(name, inside, SpanKind.PRODUCER, _for_otel(attributes))
            return StartSpan(span, _ref(span).traceparent, caller_id)
        ids = self._tracer.id_generator
        ids = ids.others if isinstance(ids, _Ids) else ids
        if parent is None:
            ref = self._sampled(SpanRef(ids.generate_trace_id(), ids.generate_span_id()), None, name)
        else:
            ref = SpanRef(parent.trace_id, ids.generate_span_id(), parent.trace_flags.sampled)
        light = SpanOfStart(sink, ref, parent, namespace, workflow_type) if ref.sampled else None
        return StartSpan(light, ref.traceparent, caller_id)

    # --- workers ------------------------------------------------------------------------------------------------------

    def stretch(self, task: Task, worker_id: str, *, encoded: bool) -> Stretch:
        """The work on a run from this claim until the worker releases it. `encoded`: leave out data from user code."""
        sink = self._emission.find()
        start = start_of_task(task)
        if not isinstance(start, UsualStart) or not isinstance(self._tracer.sampler, ParentBased):
            start = self._decided(sink, task, RunStart(*start.read()) if isinstance(start, UsualStart) else start)
        return Stretch(self, sink, task, worker_id, TraceOfTask(start), encoded=encoded)

    def _decided(self, sink: Sink | None, task: Task, start: RunStart | None) -> RunStart:
        """The start, or a new one if the client sent none, with its sampling decision."""
        is_named = start is not None
        if start is None:
            start = RunStart(self._sampled(start_of(task.run_id), None, run_name(task.workflow_type)), 0)
        elif not isinstance(self._tracer.sampler, ParentBased):
            parent, name = _with_parent(span_context(start.ref)), run_name(task.workflow_type)
            start = start._replace(ref=self._sampled(start.ref, parent, name))
        if start.ref.sampled and (start.links or not is_named):
            self._untraced_start(sink, task, start)
        return start

    def _sampled(self, ref: SpanRef, parent: otel_context.Context | None, name: str) -> SpanRef:
        sampled = self._roots if parent is None else None
        if sampled is None:
            decision: Any = self._tracer.sampler.should_sample(parent, ref.trace_id, name).decision
            sampled = decision.is_sampled()
        return ref if sampled is ref.sampled else ref._replace(sampled=sampled)

    def _untraced_start(self, sink: Sink | None, task: Task, start: RunStart) -> None:
        """The client recorded no span of the start: the first worker does, so that the run has a parent span."""
        if task.lease.counter != 1 or (task.parent_run_id and not start.links):
            return
        at_ns = task.created_at_us * 1_000
        if sink is not None:
            light = SpanOfStart(sink, start.ref, None, task.namespace_id, task.workflow_type, at_ns)
            light.ids = task.workflow_id, task.run_id
            for link in start.links:
                light.add_link(span_context(link))
            light.end(at_ns)
            return
        attributes = start_attributes(
            task.namespace_id, task.workflow_type, workflow_id=task.workflow_id, run_id=task.run_id
        )
        name, kind = start_name(task.workflow_type), SpanKind.PRODUCER
        self.span(start.ref, None, name, kind, attributes, links=start.links, start_ns=at_ns).end(at_ns)

    def span(
        self,
        ref: SpanRef,
        parent: SpanContext | None,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        *,
        links: tuple[SpanRef, ...] = (),
        start_ns: int | None = None,
    ) -> Span:
        """See `SpanMaker`: a span of the SDK."""
        linked = tuple(Link(span_context(link)) for link in links)
        inside = _with_parent(parent)
        with _chosen(ref):
            return self._tracer.start_span(name, inside, kind, _for_otel(attributes), linked, start_time=start_ns)


class StartSpan:
    """The span of a start in flight; None: it is not sampled."""

    __slots__ = ("_caller_span_id", "_span", "_traceparent")

    def __init__(self, span: Span | None, traceparent: str, caller_span_id: int) -> None:
        self._span = span
        self._traceparent = traceparent
        self._caller_span_id = caller_span_id

    def written_into(self, context: Mapping[str, Any] | None) -> Payload | None:
        """The context for the run, with this span as its parent. Raises InvalidArgument, ResourceExhausted."""
        state = start_state(self._caller_span_id)
        if context:
            return write_context({**context, TRACEPARENT: self._traceparent, TRACESTATE: state})
        return Payload(start_context(self._traceparent, state))

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of the call to the server."""
        return ((TRACEPARENT, self._traceparent),)

    def of(self, response: Awaitable[Started]) -> Awaitable[Started]:
        """The response of the server, which ends the span."""
        return response if self._span is None else _until_answered(self._span, response)


async def _until_answered(span: Span, response: Awaitable[Started]) -> Started:
    try:
        answer = await response
    except BaseException as error:
        record_error(span, error, type(error).__qualname__, encoded=False)
        span.end()
        raise
    started: Any = answer
    if isinstance(started, pb.SignalWithStartResponse):
        started = started.started
    if isinstance(span, SpanOfStart):
        span.ids = started.workflow_id, started.run_id
    else:
        span.set_attributes(_for_otel(start_ids(started.workflow_id, started.run_id)))
    span.end()
    return answer


_NOTHING = api.set_span_in_context(api.INVALID_SPAN, otel_context.Context())


@contextmanager
def _chosen(ref: SpanRef) -> Generator[None]:
    """The next span gets these ids."""
    before = _next_ids.set(ref)
    try:
        yield
    finally:
        _next_ids.reset(before)


def _ref(span: Span) -> SpanRef:
    context = span.get_span_context()
    return SpanRef(context.trace_id, context.span_id, context.trace_flags.sampled)


def _with_parent(parent: SpanContext | None) -> otel_context.Context:
    return _NOTHING if parent is None else api.set_span_in_context(NonRecordingSpan(parent))


def _for_otel(attributes: Attributes) -> dict[str, Any]:
    return dict(attributes)
