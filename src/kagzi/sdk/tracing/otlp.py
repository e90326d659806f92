"""Sends spans that were built from history to a collector, by OTLP over HTTP."""

from collections.abc import Sequence
from typing import Any, cast

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from ...core.errors import Unavailable
from ...core.times import from_datetime
from ...core.traces.endpoint import endpoint_of
from ...core.version import __version__
from .attributes import SCOPE
from .history import SpanRecord

BATCH_SPANS = 512
_SCOPE = InstrumentationScope(SCOPE, __version__)


def send_spans(spans: Sequence[SpanRecord], url: str) -> None:
    """Blocks. Raises Unavailable if the collector does not accept them."""
    endpoint = endpoint_of(url)
    exporter = OTLPSpanExporter(endpoint=endpoint)
    resource = Resource.create({SERVICE_NAME: "kagzi"})
    try:
        for first in range(0, len(spans), BATCH_SPANS):
            batch = [_readable(span, resource) for span in spans[first : first + BATCH_SPANS]]
            if exporter.export(batch) is not SpanExportResult.SUCCESS:
                raise Unavailable(f"the collector at {endpoint} did not take the spans; the lines above say why.")
    finally:
        cast("Any", exporter).shutdown()


def _readable(span: SpanRecord, resource: Resource) -> ReadableSpan:
    error = span.error
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace_id, span.span_id),
        parent=None if span.parent_span_id is None else _context(span.trace_id, span.parent_span_id),
        resource=resource,
        attributes=dict(span.attributes),
        events=() if error is None or span.kind != "internal" else (_exception(span),),
        links=tuple(Link(_context(each.trace_id, each.span_id)) for each in span.links),
        kind=SpanKind[span.kind.upper()],
        status=Status() if error is None else Status(StatusCode.ERROR, error.text),
        start_time=from_datetime(span.started_at, what="started_at") * 1_000,
        end_time=from_datetime(span.finished_at, what="finished_at") * 1_000,
        instrumentation_scope=_SCOPE,
    )


def _exception(span: SpanRecord) -> Event:
    error = span.error
    assert error is not None
    attributes = {
        "exception.type": error.type,
        "exception.message": error.message,
        "exception.stacktrace": error.traceback,
    }
    at_ns = from_datetime(span.finished_at, what="finished_at") * 1_000
    return Event("exception", {name: value for name, value in attributes.items() if value}, at_ns)


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
