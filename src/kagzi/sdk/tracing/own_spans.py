"""The light spans of starts, of stretches of runs and of attempts: what each says, as values and as bytes."""

from functools import wraps
from time import time_ns  # noqa: TID251  of the machine, as in the spans of user code
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.trace import SpanContext, SpanKind

from ...core.traces.ids import PART_ENTRIES, AttemptIds, SpanRef
from ...v1.worker_pb2 import Task
from .attributes import (
    TracedRun,
    common_step_attributes,
    run_name,
    start_attributes,
    start_name,
    step_attributes,
    step_name,
    stretch_attributes,
    traced_run,
)
from .emission import Sink
from .forms import run_span, start_span, steps_head
from .light_span import SAMPLED, Description, LightSpan
from .references import SPAN_KEY, STEP_KEY, set_context, span_context

_OWN_KEYS = (SPAN_KEY, STEP_KEY)


class SpanOfStart(LightSpan):
    """`parent`: None for the first of a trace."""

    __slots__ = ("_namespace", "_parent", "_ref", "_workflow_type", "ids")

    def __init__(  # noqa: PLR0917  made for every run
        self,
        sink: Sink,
        ref: SpanRef,
        parent: SpanContext | None,
        namespace: str,
        workflow_type: str,
        start_ns: int | None = None,
    ) -> None:
        super().__init__(sink, start_ns)
        self._ref = ref
        self._parent = parent
        self._namespace = namespace
        self._workflow_type = workflow_type
        self.ids: tuple[str, str] = ("", "")  # workflow id and run id, once they are known

    def make_context(self) -> SpanContext:
        return SpanContext(self._ref.trace_id, self._ref.span_id, False, SAMPLED)

    def describe(self) -> Description:
        workflow_id, run_id = self.ids
        attributes = start_attributes(self._namespace, self._workflow_type, workflow_id=workflow_id, run_id=run_id)
        return Description(start_name(self._workflow_type), SpanKind.PRODUCER, self._parent, attributes)

    def encode(self, end_ns: int) -> bytes:
        ref, parent = self._ref, self._parent
        ids = ref.trace_id, ref.span_id, 0 if parent is None else parent.span_id
        kind = self._workflow_type, self._namespace, parent is not None and parent.is_remote
        return start_span(ids, kind, self.ids, self.start_ns, end_ns)


class SpanOfStretch(LightSpan):
    """`parent`: the start; None for the first of a trace."""

    __slots__ = ("_parent", "_ref", "claim", "run", "worker_id")

    def __init__(  # noqa: PLR0917  made for every run
        self,
        sink: Sink,
        ref: SpanRef,
        parent: SpanRef | None,
        run: TracedRun,
        worker_id: str,
        claim: int,
        start_ns: int | None,
    ) -> None:
        super().__init__(sink, start_ns)
        self._ref = ref
        self._parent = parent
        self.run = run
        self.worker_id = worker_id
        self.claim = claim

    def make_context(self) -> SpanContext:
        return SpanContext(self._ref.trace_id, self._ref.span_id, False, SAMPLED)

    def describe(self) -> Description:
        parent = None if self._parent is None else span_context(self._parent)
        attributes = stretch_attributes(self.run, self.worker_id, self.claim)
        return Description(run_name(self.run.workflow_type), SpanKind.CONSUMER, parent, attributes)

    def encode(self, end_ns: int) -> bytes | None:
        ref, parent, run = self._ref, self._parent, self.run
        if parent is None:
            return None
        ids = ref.trace_id, ref.span_id, parent.span_id
        kind = run.workflow_type, run.namespace, run.version, self.worker_id
        return run_span(ids, kind, (run.run_id, run.workflow_id, self.claim), self.start_ns, end_ns)


class LightPart:
    """A stretch, or as much of a long one as is in one trace, whose spans are light. Its own span is made if somebody
    asks for it: most are written as bytes without.

    `parent`: the start; None for the first of a trace. `number`: 0 for the first part of a stretch.
    """

    __slots__ = (
        "_parent",
        "_span",
        "_start_ns",
        "_task",
        "claim",
        "has_content",
        "head",
        "ids",
        "pending",
        "ref",
        "sink",
        "until",
        "worker_id",
    )

    def __init__(  # noqa: PLR0917  made for every run
        self, sink: Sink, ref: SpanRef, parent: SpanRef | None, task: Task, worker_id: str, claim: int, number: int
    ) -> None:
        run_id = task.run_id
        self.until = (number + 1) * PART_ENTRIES
        self.ref = ref
        self.has_content = False
        self.sink = sink
        self.pending = sink.encoded
        self.worker_id = worker_id
        self.claim = claim
        self._parent = parent
        self._task = task
        self._start_ns = time_ns() if number else task.claimed_at_us * 1_000
        self._span: SpanOfStretch | None = None
        self.ids = AttemptIds(run_id, claim)
        self.head = b"" if sink.encoded is None else steps_head(ref.trace_id, ref.span_id, run_id, worker_id)

    @property
    def run(self) -> TracedRun:
        return traced_run(self._task)

    @property
    def span(self) -> SpanOfStretch:
        span = self._span
        if span is None:
            span = SpanOfStretch(
                self.sink, self.ref, self._parent, self.run, self.worker_id, self.claim, self._start_ns
            )
            self._span = span
        return span

    def end(self) -> None:
        """The worker lets go of the run."""
        parent, pending = self._parent, self.pending
        if self._span is not None or parent is None or pending is None:
            self.span.end()
            return
        task, ref = self._task, self.ref
        kind = task.workflow_type, task.namespace_id, task.version, self.worker_id
        own = task.run_id, task.workflow_id, self.claim
        pending.add(run_span((ref.trace_id, ref.span_id, parent.span_id), kind, own, self._start_ns, time_ns()))


class SpanOfAttempt(LightSpan):
    """Of a body that somebody has asked for its span, or that has failed."""

    __slots__ = ("attempt", "end_ns", "name", "part", "step_id")

    def __init__(self, body: "BodyContext") -> None:
        super().__init__(body.part.sink, body.start_ns)
        self.part = body.part
        self.step_id = body.step_id
        self.name = body.name
        self.attempt = body.attempt
        self.end_ns = body.end_ns
        self._has_ended = body.end_ns != 0

    def make_context(self) -> SpanContext:
        part = self.part
        return SpanContext(part.ref.trace_id, part.ids.of(self.step_id, self.attempt), False, SAMPLED)

    def describe(self) -> Description:
        part = self.part
        attributes = step_attributes(common_step_attributes(part.run, part.worker_id), self.step_id, self.attempt)
        return Description(step_name(self.name), SpanKind.INTERNAL, part.span.get_span_context(), attributes)

    def end(self, end_time: int | None = None) -> None:
        """As in the base class, but what most of them are is written as bytes later, with others."""
        pending = self.part.pending
        if self._additions is not None or pending is None or self._has_ended:
            super().end(end_time)
            return
        self._has_ended = True
        self.end_ns = time_ns() if end_time is None else end_time
        pending.attempts.append(self)
        pending.attempt_ended()


def _filled(method: Any) -> Any:
    """A method of a dictionary, of one that is filled when it is asked."""

    @wraps(method)
    def call(body: "BodyContext", *args: Any) -> Any:
        body.fill()
        return method(body, *args)

    return call


class BodyContext(otel_context.Context):
    """The context of OpenTelemetry in which the body of a step runs, until `leave`: the one before, with the span of
    the attempt, which is made when somebody looks. See `Entered`, of which this is a short form.

    It is made for every step, and filled in by its maker: a call of `__init__` would take as long. Most bodies do not
    look: then this is what the span is written from. The time of its end is 0 until then.
    """

    __slots__ = ("attempt", "before", "end_ns", "name", "part", "span", "start_ns", "step_id")

    part: LightPart
    step_id: str
    name: str
    attempt: int
    before: otel_context.Context
    span: SpanOfAttempt | None
    start_ns: int
    end_ns: int

    def leave(self) -> None:
        set_context(self.before)

    def fill(self) -> SpanOfAttempt:
        span = self.span
        if span is None:
            made: Any = dict.setdefault(self, STEP_KEY, SpanOfAttempt(self))  # the same for all threads of the body
            dict.update(self, {**self.before, SPAN_KEY: made, STEP_KEY: made})
            self.span = span = made
        return span

    def get(self, key: str, default: Any = None, /) -> Any:
        if self.span is None and key not in _OWN_KEYS:
            return self.before.get(key, default)
        self.fill()
        return super().get(key, default)

    __hash__ = None
    __contains__ = _filled(dict.__contains__)
    __eq__ = _filled(dict.__eq__)
    __getitem__ = _filled(dict.__getitem__)
    __iter__ = _filled(dict.__iter__)
    __len__ = _filled(dict.__len__)
    __or__ = _filled(dict.__or__)
    __repr__ = _filled(dict.__repr__)
    copy = _filled(dict.copy)
    items = _filled(dict.items)
    keys = _filled(dict.keys)
    values = _filled(dict.values)
