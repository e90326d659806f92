"""Creates and sends the spans of a server, following the conventions for RPC and HTTP. Needs OpenTelemetry."""

from collections.abc import Mapping
from typing import Any

import grpc
from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from ...core.traces.ids import TRACESTATE
from ...core.traces.propagation import sender_in
from ...core.version import __version__
from .exporter import exporter_to

SERVICE = "kagzi-server"
_SCOPE = "kagzi.server"
_FAULTS = frozenset(
    code.name
    for code in (
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    )
)
_FIRST_FAULT = 500  # HTTP status


class ServerTracing:
    """Active from construction until `close`. Follows the caller's sampling decision; without one, OpenTelemetry's
    environment variables decide (OTEL_TRACES_SAMPLER)."""

    def __init__(self, endpoint: str) -> None:
        named = Resource({SERVICE_NAME: SERVICE, SERVICE_VERSION: __version__})
        self._provider = TracerProvider(resource=named.merge(OTELResourceDetector().detect()))
        self._provider.add_span_processor(BatchSpanProcessor(exporter_to(endpoint)))
        self._tracer = self._provider.get_tracer(_SCOPE, __version__)

    def close(self) -> None:
        """Blocks until the remaining spans were sent, or sending failed."""
        self._provider.shutdown()

    def call(self, method: str, metadata: Mapping[str, str], *, system: str) -> Span:
        """The span of a call; `method` includes its service."""
        attributes = {"rpc.system.name": system, "rpc.method": method}
        return self._begin(method, metadata, attributes)

    def called(self, span: Span, code: str) -> None:
        """Ends the span of a call with this status name."""
        _end(span, code, fault=code in _FAULTS)

    def request(self, method: str, headers: Mapping[str, str]) -> Span:
        """The span of an HTTP request."""
        return self._begin(method, headers, {"rpc.system.name": "http", "http.request.method": method})

    def requested(self, span: Span, method: str, route: str, status: int) -> None:
        """Ends the span of a request; `route`: its path template."""
        span.update_name(f"{method} {route}")
        span.set_attributes(
            {"rpc.method": f"{method} {route}", "http.route": route, "http.response.status_code": status}
        )
        _end(span, str(status), fault=status >= _FIRST_FAULT)

    def _begin(self, name: str, headers: Mapping[str, str], attributes: dict[str, Any]) -> Span:
        return self._tracer.start_span(name, _parent(headers), SpanKind.SERVER, attributes)


def _end(span: Span, code: str, *, fault: bool) -> None:
    span.set_attribute("rpc.response.status_code", code)
    if fault:
        span.set_attribute("error.type", code)
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def _parent(headers: Mapping[str, str]) -> Context:
    sender = sender_in(headers)
    if sender is None:
        return Context()
    flags = TraceFlags(TraceFlags.SAMPLED if sender.sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([headers.get(TRACESTATE, "")])
    parent = SpanContext(sender.trace_id, sender.span_id, is_remote=True, trace_flags=flags, trace_state=state)
    return api.set_span_in_context(NonRecordingSpan(parent), Context())
