"""Where the light spans of a program are sent, and whether it can have any."""

from collections.abc import Callable
from typing import Any, NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Tracer
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, StaticSampler, TraceIdRatioBased

from .pending import EncodedSpans, pending_of

_PROCESSORS = (BatchSpanProcessor, SimpleSpanProcessor)

Emit = Callable[[ReadableSpan], None]


class Sink(NamedTuple):
    """Receives ended spans. `encoded`: receives them as bytes, if the exporter is Kagzi's own."""

    emit: Emit
    resource: Resource
    encoded: EncodedSpans | None


class Emission:
    """Finds the sink of one tracer, where light spans are equivalent to the SDK's."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        limits = getattr(tracer, "_span_limits", None)
        self._possible = isinstance(tracer.sampler, (ParentBased, StaticSampler, TraceIdRatioBased)) and all(
            getattr(limits, name, None) is None for name in ("max_attribute_length", "max_span_attribute_length")
        )
        self._known: object = None
        self._resource: Resource | None = None
        self._sink: Sink | None = None

    def find(self) -> Sink | None:
        """None if a processor must see spans begin, or decide about each. Processors may be added at any time, and a
        fork has another resource."""
        tracer = self._tracer
        multi: Any = tracer.span_processor
        processors: Any = getattr(multi, "_span_processors", ())
        if processors is not self._known or tracer.resource is not self._resource:
            self._known, self._resource = processors, tracer.resource
            plain = self._possible and processors and all(type(each) in _PROCESSORS for each in processors)
            self._sink = self._sink_of(multi, processors) if plain else None
        return self._sink

    def _sink_of(self, multi: Any, processors: Any) -> Sink:
        resource, first = self._tracer.resource, processors[0]
        if len(processors) > 1:
            return Sink(multi.on_end, resource, None)
        encoded = None
        if type(first) is BatchSpanProcessor:
            encoded = pending_of(first, getattr(first, "span_exporter", None), resource)
        return Sink(first.on_end if encoded is None else encoded, resource, encoded)


def decision_for_roots(sampler: object) -> bool | None:
    """Whether spans without a parent are sampled; None if that depends on the span."""
    root = getattr(sampler, "_root", None) if type(sampler) is ParentBased else sampler
    decision: Any = getattr(root, "_decision", None) if type(root) is StaticSampler else None
    return None if decision is None else decision.is_sampled()
