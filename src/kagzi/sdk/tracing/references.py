"""Remote spans and the current span, for OpenTelemetry."""

from contextvars import ContextVar
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace as api
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, TraceFlags

from ...core.traces.ids import SpanRef

_SAMPLED, _SAMPLED_OUT = TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)

(SPAN_KEY,) = api.set_span_in_context(api.INVALID_SPAN, otel_context.Context())
"""The key of the span in a context: `set_span_in_context` copies more than needed for every step."""
STEP_KEY = otel_context.create_key("kagzi_step")


def span_context(ref: SpanRef) -> SpanContext:
    return SpanContext(ref.trace_id, ref.span_id, True, _SAMPLED if ref.sampled else _SAMPLED_OUT)


class Outside(NonRecordingSpan):
    """The parent of a run that is not sampled."""

    def __init__(self, ref: SpanRef) -> None:
        self._ref = ref

    def get_span_context(self) -> SpanContext:
        return span_context(self._ref)

    def __repr__(self) -> str:
        return f"Outside({self._ref!r})"


def _direct() -> tuple[Any, Any]:
    """The functions that read and set the current context. Usually it is a ContextVar, which saves two calls."""
    runtime: Any = getattr(otel_context, "_RUNTIME_CONTEXT", None)
    variable = getattr(runtime, "_current_context", None)
    if type(runtime) is ContextVarsRuntimeContext and isinstance(variable, ContextVar):
        return variable.get, variable.set  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  of any value
    return otel_context.get_current, otel_context.attach


get_context, set_context = _direct()


class Entered:
    """The body of a step runs in its span, in its thread too: that has a copy of the caller's context variables."""

    __slots__ = ("_before", "_inside")

    def __init__(self, span: Span) -> None:
        self._before = before = get_context()
        own = {SPAN_KEY: span, STEP_KEY: span}
        self._inside = otel_context.Context({**before, **own} if before else own)
        set_context(self._inside)

    def again(self) -> bool:
        """Enter again for another body in the same context. Returns False in any other context."""
        if get_context() is not self._before:
            return False
        set_context(self._inside)
        return True

    def leave(self) -> None:
        """Does not use the token of `attach`: a dropped coroutine is closed in another context."""
        set_context(self._before)


def trace_id_of_step() -> str:
    """The trace id of the step that the running code belongs to, in hexadecimal, whatever its current span."""
    span = get_context().get(STEP_KEY)
    return "" if span is None else f"{span.get_span_context().trace_id:032x}"
