"""The light spans of starts, of stretches of runs and of attempts: their contents, as values and as bytes."""

from functools import wraps
from time import time_ns  # noqa: TID251  wall-clock time, as in the spans of user code
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.trace import SpanContext, SpanKind

from ...core.traces.ids import AttemptIds, SpanRef, stretch_bytes, stretch_of
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
from .forms import CommonOfAttempts, run_span, start_span, steps_head
from .light_span import SAMPLED, Description, LightSpan
from .references import SPAN_KEY, STEP_KEY, set_context, span_context
from .run_context import TraceOfTask

_OWN_KEYS = (SPAN_KEY, STEP_KEY)
_DICT: Any = dict  # untyped: its methods with any keys and values


class SpanOfStart(LightSpan):
    """`parent`: None for the root of a trace."""

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

    def encode(self) -> bytes:
        parent = self._parent
        ids = *self._ref.ids(), b"" if parent is None else parent.span_id.to_bytes(8, "big")
        kind = self._workflow_type, self._namespace, parent is not None and parent.is_remote
        return start_span(ids, kind, self.ids, self.start_ns, self.end_ns)


class SpanOfStretch(LightSpan):
    """The span of a stretch to which something was added, or which has links. `parent`: the start; None for the root of
    a trace."""

    __slots__ = ("_parent", "_ref", "claim", "run", "worker_id")

    has_form = False

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


class ClaimedRun:
    """A run that a worker holds, from which its light spans are made. `sink`: receives them; None: its spans are the
    SDK's."""

    def __init__(self, sink: Sink | None, task: Task, worker_id: str, start: TraceOfTask) -> None:
        self.sink = sink
        self.task = task
        self.worker_id = worker_id
        self.trace = start
        self.claim: int = task.lease.counter

    @property
    def run(self) -> TracedRun:
        return traced_run(self.task)

    def ref(self, claim: int, part: int) -> SpanRef:
        """The span of a stretch."""
        task = self.task
        return stretch_of(self.trace.start.ref, task.run_id, claim, part, own_traces_from=task.own_traces_from)


class LightPart:
    """A stretch, or the part of a long one that is in one trace, whose spans are light. Their common part is created
    when they are encoded, many at once; its own span becomes an object only if code asks for it.

    `joined`: it is in the trace of the start, which is its parent. `number`: 0 for the first part of a stretch.
    `until`: the first entry that belongs to the next part.
    """

    __slots__ = (
        "_joined",
        "_known_ids",
        "_number",
        "_ref",
        "_span",
        "_start_ns",
        "claimed",
        "end_ns",
        "has_content",
        "made",
        "pending",
        "sink",
        "until",
    )

    part = None  # it is not an attempt

    def __init__(self, claimed: ClaimedRun, sink: Sink, number: int, until: int, *, joined: bool) -> None:
        self.claimed = claimed
        self.sink = sink
        self.pending = sink.encoded
        self.until = until
        self.has_content = False  # else it is not exported: the history would have nothing of it either
        self.end_ns = 0
        self._joined = joined
        self._number = number
        self._start_ns = time_ns() if number else claimed.task.claimed_at_us * 1_000
        self._ref: SpanRef | None = None
        self._known_ids: tuple[bytes, bytes, bytes] | None = None
        self.made: CommonOfAttempts | None = None
        self._span: SpanOfStretch | None = None

    @property
    def ref(self) -> SpanRef:
        ref = self._ref
        if ref is None:
            ref = self._ref = self.claimed.ref(self.claimed.claim, self._number)
        return ref

    @property
    def common(self) -> CommonOfAttempts:
        common = self.made
        if common is None:
            claimed = self.claimed
            trace_id, span_id, _ = self._ids()
            run_id = claimed.task.run_id
            head = steps_head(trace_id, span_id, run_id, claimed.worker_id)
            common = self.made = head, AttemptIds(run_id, claimed.claim)
        return common

    @property
    def span(self) -> SpanOfStretch:
        span = self._span
        if span is None:
            claimed = self.claimed
            parent = claimed.trace.start.ref if self._joined else None
            span = self._span = SpanOfStretch(
                self.sink, self.ref, parent, claimed.run, claimed.worker_id, claimed.claim, self._start_ns
            )
        return span

    def end(self) -> None:
        """The worker releases the run."""
        pending = self.pending
        if self._span is not None or not self._joined or pending is None:
            self.span.end()
            return
        self.end_ns = time_ns()
        pending.add_ended(self)

    def _ids(self) -> tuple[bytes, bytes, bytes]:
        """Of the trace, of its span, and of the start, which is the parent if it is `joined`."""
        ids = self._known_ids
        if ids is None:
            claimed = self.claimed
            trace_id, start_id = claimed.trace.ids()
            if self._joined:
                ids = trace_id, stretch_bytes(claimed.task.run_id, claimed.claim, self._number), start_id
            else:
                ids = *self.ref.ids(), start_id
            self._known_ids = ids
        return ids

    def encode(self) -> bytes:
        """The span as bytes."""
        claimed = self.claimed
        task = claimed.task
        kind = task.workflow_type, task.namespace_id, task.version, claimed.worker_id
        return run_span(self._ids(), kind, (task.run_id, task.workflow_id, claimed.claim), self._start_ns, self.end_ns)


class SpanOfAttempt(LightSpan):
    """The span of a body that has asked for its span, or that has failed."""

    __slots__ = ("attempt", "name", "part", "step_id")

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
        return SpanContext(part.ref.trace_id, part.common[1].of(self.step_id, self.attempt), False, SAMPLED)

    def describe(self) -> Description:
        part = self.part
        common = common_step_attributes(part.claimed.run, part.claimed.worker_id)
        attributes = step_attributes(common, self.step_id, self.attempt)
        return Description(step_name(self.name), SpanKind.INTERNAL, part.span.get_span_context(), attributes)


def _filled(method: Any) -> Any:
    """A method of a dictionary that is filled on first use."""

    @wraps(method)
    def call(body: "BodyContext", *args: Any) -> Any:
        body.fill()
        return method(body, *args)

    return call


class BodyContext(otel_context.Context):
    """The OpenTelemetry context in which the body of a step runs, until `leave`: the previous context plus the span of
    the attempt, which is created on first access. See `Entered`, of which this is a fast variant.

    It is created for every step, and its creator sets the attributes: calling `__init__` would double the cost. Most
    bodies do not access it: then the span is encoded from these attributes. `end_ns` is 0 until the end.
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

    def encode(self) -> bytes:
        raise NotImplementedError  # attempts are encoded many at once

    def fill(self) -> SpanOfAttempt:
        span = self.span
        if span is None:
            made: SpanOfAttempt = _DICT.setdefault(
                self, STEP_KEY, SpanOfAttempt(self)
            )  # the same span for all threads of the body
            _DICT.update(self, {**self.before, SPAN_KEY: made, STEP_KEY: made})
            self.span = span = made
        return span

    def get(self, key: str, default: Any = None, /) -> Any:
        if self.span is None and key not in _OWN_KEYS:
            return self.before.get(key, default)
        self.fill()
        return super().get(key, default)

    __hash__ = _DICT.__hash__
    __contains__ = _filled(_DICT.__contains__)
    __eq__ = _filled(_DICT.__eq__)
    __getitem__ = _filled(_DICT.__getitem__)
    __iter__ = _filled(_DICT.__iter__)
    __len__ = _filled(_DICT.__len__)
    __or__ = _filled(_DICT.__or__)
    __repr__ = _filled(_DICT.__repr__)
    copy = _filled(_DICT.copy)
    items = _filled(_DICT.items)
    keys = _filled(_DICT.keys)
    values = _filled(_DICT.values)
