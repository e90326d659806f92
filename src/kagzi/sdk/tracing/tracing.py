"""Whether this program records spans. Kagzi never imports OpenTelemetry for that: a program that wants spans has set it
up, and so has imported it."""

import sys
from typing import TYPE_CHECKING

from ...core.traces.ids import TRACEPARENT, TRACESTATE, SpanRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...v1.worker_pb2 import Task
    from .spans import Tracing
    from .stretch import Stretch


def find_tracing() -> "Tracing | None":
    """None unless this program has set up a tracer provider of the OpenTelemetry SDK. Called when a client connects or
    a worker starts."""
    api, sdk = sys.modules.get("opentelemetry.trace"), sys.modules.get("opentelemetry.sdk.trace")
    if api is None or sdk is None:
        return None
    provider = api.get_tracer_provider()
    if not isinstance(provider, sdk.TracerProvider):
        return None
    from .spans import Tracing  # noqa: PLC0415  needs OpenTelemetry

    return Tracing.on(provider)


def stretches_of(worker_id: str, *, encoded: bool) -> "Callable[[Task], Stretch] | None":
    """Begins the spans of a worker's claims; None if this program records none."""
    tracing = find_tracing()
    return None if tracing is None else lambda task: tracing.stretch(task, worker_id, encoded=encoded)


def trace_id_of_step() -> str:
    """The trace id of the running step, in hexadecimal, for its log lines; empty if there is none."""
    references = sys.modules.get("kagzi.sdk.tracing.references")  # loaded by programs that record spans
    return "" if references is None else references.trace_id_of_step()


def current_traceparent() -> str:
    """The traceparent of the current span; empty if there is none."""
    api = sys.modules.get("opentelemetry.trace")
    here = None if api is None else api.get_current_span().get_span_context()
    if here is None or not here.is_valid:
        return ""
    return SpanRef(here.trace_id, here.span_id, here.trace_flags.sampled).traceparent


def trace_metadata() -> tuple[tuple[str, str], ...]:
    """The trace metadata of a call: the current span."""
    traceparent = current_traceparent()
    if not traceparent:
        return ()
    state = sys.modules["opentelemetry.trace"].get_current_span().get_span_context().trace_state
    return ((TRACEPARENT, traceparent), (TRACESTATE, state.to_header())) if state else ((TRACEPARENT, traceparent),)
