"""The spans of the work on a run: of a stretch, from one claim until the worker releases the run, and of its attempts.

Ids are derived (core/traces/ids.py). The span of a stretch is created when there is something in it: a worker that only
replays creates none. It ends when the worker releases the run, not when the run ends: a span that is open for days is
exported late or never.
"""

from collections.abc import Iterable, Mapping
from time import time_ns  # noqa: TID251  wall-clock time, as in the spans of user code
from typing import Protocol

from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode

from ...core.error_details import ErrorDetail
from ...core.records import Payload
from ...core.traces.ids import (
    PART_ENTRIES,
    TRACEPARENT,
    SpanRef,
    attempt_id,
    is_in_trace_of_start,
    parse_traceparent,
    stretch_before,
)
from ...v1.worker_pb2 import STEP_KIND_FUNCTION, HistoryStep, Task
from .attributes import (
    ERROR_TYPE,
    Attributes,
    common_step_attributes,
    run_name,
    step_attributes,
    step_name,
    stretch_attributes,
)
from .emission import Sink
from .own_spans import BodyContext, ClaimedRun, LightPart
from .references import Entered, Outside, get_context, set_context, span_context
from .run_context import TraceOfTask, child_context, readable_context, successor_context


class SpanMaker(Protocol):
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
        """A sampled span of the SDK; `parent`: None for the root of a trace."""
        ...


class _Part:
    """A stretch, or the part of a long one that is in one trace. `span`: the SDK's; None if the run is not sampled."""

    __slots__ = ("has_content", "ref", "span", "until")

    def __init__(self, number: int, ref: SpanRef, span: Span | None) -> None:
        self.until = (number + 1) * PART_ENTRIES  # the first entry that belongs to the next part
        self.ref = ref
        self.span = span
        self.has_content = False  # else it is not exported: the history would have nothing of it either

    def end(self) -> None:
        if self.span is not None:
            self.span.end()


class _EnteredSpan(Entered):
    """A body in a span of the SDK."""

    __slots__ = ("part", "span")

    def __init__(self, span: Span, part: _Part) -> None:
        super().__init__(span)
        self.span = span
        self.part = part

    def fill(self) -> Span:
        return self.span


class Stretch(ClaimedRun):
    """The work of this worker on a run, from one claim until it releases the run: the parent of all spans meanwhile.

    `sink`: receives its light spans; None: they are the SDK's, of `tracing`. `encoded`: data from user code is left
    out.
    """

    # Class attributes: defaults that most runs never change are not set for each.
    _entries = 0  # attempts that were begun and children that were started
    _part: LightPart | _Part | None = None
    _outside: Entered | None = None  # of a run that is not sampled
    _history: tuple[Iterable[HistoryStep], ...] = ()  # more of it than the task contains
    _done_seq: int | None = None
    _senders: tuple[SpanRef, ...] = ()

    def __init__(
        self, tracing: SpanMaker, sink: Sink | None, task: Task, worker_id: str, trace: TraceOfTask, *, encoded: bool
    ) -> None:
        super().__init__(sink, task, worker_id, trace)
        self._tracing = tracing
        self._encoded = encoded
        self._is_sampled = trace.sampled
        self._parts: list[LightPart | _Part] = []
        self._attempts: dict[str, BodyContext | _EnteredSpan] = {}

    # --- steps --------------------------------------------------------------------------------------------------------

    def enter(self, step_id: str, name: str, attempt: int) -> Entered | BodyContext:
        """An attempt begins: what its body does belongs to its span, until `leave`. A run that is not sampled has no
        spans, and neither do its steps."""
        if not self._is_sampled:
            outside = self._outside
            if outside is None or not outside.again():
                outside = self._outside = Entered(Outside(self.trace.start.ref))
            return outside
        part = self._part
        if part is None or self._entries >= part.until or self._senders:
            part = self._enter_part()
        else:
            self._entries += 1
        if type(part) is not LightPart:
            return self._enter_span_of_sdk(part, step_id, name, attempt)
        body = self._attempts[step_id] = BodyContext()
        body.part = part
        body.step_id = step_id
        body.name = name
        body.attempt = attempt
        body.before = get_context()
        body.span = None
        body.end_ns = 0
        body.start_ns = time_ns()
        set_context(body)
        return body

    def _enter_span_of_sdk(self, part: "LightPart | _Part", step_id: str, name: str, attempt: int) -> Entered:
        assert isinstance(part, _Part)
        assert part.span is not None
        ref = SpanRef(part.ref.trace_id, attempt_id(self.task.run_id, step_id, attempt, self.claim))
        attributes = step_attributes(common_step_attributes(self.run, self.worker_id), step_id, attempt)
        parent = part.span.get_span_context()
        span = self._tracing.span(ref, parent, step_name(name), SpanKind.INTERNAL, attributes)
        entered = self._attempts[step_id] = _EnteredSpan(span, part)
        return entered

    def finish(self, step_id: str, error: BaseException | None = None, error_type: str = "") -> None:
        """The attempt has ended, perhaps with an `error`, whose type is recorded as `error_type`. An interrupted
        attempt has no span, as it has none in the history."""
        body = self._attempts.pop(step_id, None)
        if body is None:
            return
        part = body.part
        part.has_content = True
        if error is None and body.span is None and type(body) is BodyContext:
            pending = body.part.pending
            if pending is not None:
                body.end_ns = time_ns()
                pending.ended.append(body)
                if not pending.is_noted:
                    pending.note()
                return
        span = body.fill()
        if error is not None:
            record_error(span, error, error_type, encoded=self._encoded)
        span.end()

    # --- other runs ---------------------------------------------------------------------------------------------------

    def child_context(self) -> Payload | None:
        """The context for a child that is started now: the run's own, with this stretch as parent. None: unchanged,
        because nothing can be added to it."""
        part = self._enter_part()
        part.has_content = True
        context = readable_context(self.task)
        return None if context is None else child_context(context, part.ref)

    def successor_context(self) -> Payload | None:
        """The context for the run that continues this one. None: unchanged."""
        context = readable_context(self.task)
        return None if context is None else successor_context(context, self.trace.start.first, self._last().ref)

    # --- signals ------------------------------------------------------------------------------------------------------

    def know(self, steps: Iterable[HistoryStep]) -> None:
        """More of the history as it was claimed."""
        self._history = (*self._history, steps)
        self._done_seq = None

    def received(self, seq: int, metadata: Mapping[str, str]) -> None:
        """The code has received a signal, recorded with this seq. The first stretch that does something after it
        arrived links to its sender."""
        sender = parse_traceparent(metadata.get(TRACEPARENT))
        if sender is None or not self._is_sampled:
            return
        if self._done_seq is None:
            history = (self.task.history.steps, *self._history)
            self._done_seq = max((_done_seq(each) for part in history for each in part), default=0)
        if seq > self._done_seq:
            self._senders = (*self._senders, sender)

    # --- the end ------------------------------------------------------------------------------------------------------

    def ended(self, error: ErrorDetail | None = None) -> None:
        """The run has ended in this stretch, or is about to."""
        if not self._is_sampled:
            return
        part = self._last()
        part.has_content = True
        if self._senders:
            self._link_senders(part)
        if error is not None and part.span is not None:
            part.span.set_attribute(ERROR_TYPE, error.type or error.kind.value)
            part.span.set_status(Status(StatusCode.ERROR, None if self._encoded else error.text))

    def leave(self) -> None:
        """The worker releases the run."""
        for part in self._parts:
            if part.has_content:
                part.end()
        self._part = None
        self._parts.clear()
        self._attempts.clear()

    # --- parts --------------------------------------------------------------------------------------------------------

    def _enter_part(self) -> LightPart | _Part:
        number = self._entries // PART_ENTRIES
        part = self._part
        if part is None or self._entries >= part.until:
            part = self._open(number)
        self._entries += 1
        if self._senders:
            self._link_senders(part)
        return part

    def _last(self) -> LightPart | _Part:
        return self._part or self._open(max(self._entries - 1, 0) // PART_ENTRIES)

    def _link_senders(self, part: LightPart | _Part) -> None:
        if part.span is not None:
            for sender in self._senders:
                part.span.add_link(span_context(sender))
        self._senders = ()

    def _open(self, number: int) -> LightPart | _Part:
        joined = is_in_trace_of_start(self.claim, number, self.task.own_traces_from)
        before = stretch_before(self.claim, number)
        links = () if joined else (self.trace.start.ref,)
        if before is not None:
            links = (*links, self.ref(*before))
        part: LightPart | _Part
        if not self._is_sampled:
            part = _Part(number, self.ref(self.claim, number), None)
        elif self.sink is None:
            part = self._part_of_sdk(number, links, joined=joined)
        else:
            part = light = LightPart(self, self.sink, number, (number + 1) * PART_ENTRIES, joined=joined)
            for link in links:
                light.span.add_link(span_context(link))
        self._part = part
        self._parts.append(part)
        return part

    def _part_of_sdk(self, number: int, links: tuple[SpanRef, ...], *, joined: bool) -> _Part:
        run, ref = self.run, self.ref(self.claim, number)
        span = self._tracing.span(
            ref,
            span_context(self.trace.start.ref) if joined else None,
            run_name(run.workflow_type),
            SpanKind.CONSUMER,
            stretch_attributes(run, self.worker_id, self.claim),
            links=links,
            start_ns=None if number else self.task.claimed_at_us * 1_000,
        )
        return _Part(number, ref, span)


def _done_seq(step: HistoryStep) -> int:
    """The last seq of a step that a worker caused."""
    return max(step.begun_seq, step.seq) if step.kind == STEP_KIND_FUNCTION else step.begun_seq


def record_error(span: Span, error: BaseException, kind: str, *, encoded: bool) -> None:
    """`encoded`: others must not read data from user code; they may see the kind of the error."""
    span.set_attribute(ERROR_TYPE, kind)
    if encoded:
        span.set_status(Status(StatusCode.ERROR))
    else:
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, f"{kind}: {error}"))
