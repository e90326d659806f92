"""The light spans of starts, of stretches of runs and of attempts: what each says, as values and as bytes."""

from time import time_ns  # noqa: TID251  of the machine, as in the spans of user code

from opentelemetry import context as otel_context
from opentelemetry.trace import SpanContext, SpanKind

from ...core.traces.ids import AttemptIds, SpanRef
from .attributes import (
    TracedRun,
    common_step_attributes,
    run_name,
    start_attributes,
    start_name,
    step_attributes,
    step_name,
    stretch_attributes,
)
from .emission import Sink
from .forms import run_span, start_span, steps_head
from .light_span import SAMPLED, Description, LightSpan
from .references import SPAN_KEY, STEP_KEY, get_context, set_context, span_context


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


class StepsOfPart:
    """What the spans of the attempts in one part of a stretch have in common."""

    __slots__ = ("_stretch", "head", "ids", "pending", "sink", "trace_id")

    def __init__(self, stretch: SpanOfStretch, ref: SpanRef) -> None:
        run_id = stretch.run.run_id
        self._stretch = stretch
        self.sink = sink = stretch.sink
        self.trace_id = ref.trace_id
        self.ids = AttemptIds(run_id, stretch.claim)
        self.pending = sink.encoded
        self.head = b"" if sink.encoded is None else steps_head(ref.trace_id, ref.span_id, run_id, stretch.worker_id)

    def describe(self, name: str, step_id: str, attempt: int) -> Description:
        stretch = self._stretch
        common = common_step_attributes(stretch.run, stretch.worker_id)
        attributes = step_attributes(common, step_id, attempt)
        return Description(step_name(name), SpanKind.INTERNAL, stretch.get_span_context(), attributes)


class SpanOfAttempt(LightSpan):
    """Made for every step, whose body runs in it until `leave`: see `Entered`, of which this is a short form."""

    __slots__ = ("_before", "attempt", "end_ns", "name", "step_id", "steps")

    def __init__(self, steps: StepsOfPart, step_id: str, name: str, attempt: int) -> None:
        self.sink = steps.sink  # as in the base class, which is not called: that takes as long as all of this
        self._additions = None
        self._context = None
        self._has_ended = False
        self.steps = steps
        self.step_id = step_id
        self.name = name
        self.attempt = attempt
        self._before = before = get_context()
        own = {SPAN_KEY: self, STEP_KEY: self}
        set_context(otel_context.Context({**before, **own} if before else own))
        self.start_ns = time_ns()

    def leave(self) -> None:
        set_context(self._before)

    def make_context(self) -> SpanContext:
        steps = self.steps
        return SpanContext(steps.trace_id, steps.ids.of(self.step_id, self.attempt), False, SAMPLED)

    def describe(self) -> Description:
        return self.steps.describe(self.name, self.step_id, self.attempt)

    def end(self, end_time: int | None = None) -> None:
        """As in the base class, but what most of them are is written as bytes later, with others."""
        pending = self.steps.pending
        if self._additions is not None or pending is None or self._has_ended:
            super().end(end_time)
            return
        self._has_ended = True
        self.end_ns = time_ns() if end_time is None else end_time
        ended = pending.attempts
        ended.append(self)
        if len(ended) >= pending.encode_at or not pending.is_queued:
            pending.attempt_ended()
