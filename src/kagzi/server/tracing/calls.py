"""Creates spans of calls by wrapping their handlers. Streams and long polls have none: they last as long as their
callers want."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import grpc

from ..metrics.calls import CANCELLED, UNKNOWN, code_of

if TYPE_CHECKING:  # needs OpenTelemetry
    from .spans import ServerTracing


def traced_handlers(
    handlers: Sequence[grpc.GenericRpcHandler], tracing: "ServerTracing", traced: frozenset[str]
) -> list[grpc.GenericRpcHandler]:
    """`traced`: paths of the calls that have spans."""
    return [_TracedHandlers(handler, tracing, traced) for handler in handlers]


class _TracedHandlers(grpc.GenericRpcHandler):
    def __init__(self, handlers: grpc.GenericRpcHandler, tracing: "ServerTracing", traced: frozenset[str]) -> None:
        self._handlers = handlers
        self._tracing = tracing
        self._traced = traced
        self._made: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        path = handler_call_details.method
        if path not in self._traced:
            return self._handlers.service(handler_call_details)
        made = self._made.get(path)
        if made is None:
            handler = self._handlers.service(handler_call_details)
            if handler is None:
                return None
            made = self._made[path] = self._around(path.removeprefix("/"), cast("Any", handler))
        return made

    def _around(self, method: str, handler: Any) -> "grpc.RpcMethodHandler[Any, Any]":
        if handler.unary_unary is not None:
            return grpc.unary_unary_rpc_method_handler(self._with_span(method, handler.unary_unary))
        return grpc.stream_stream_rpc_method_handler(self._with_span(method, handler.stream_stream))

    def _with_span(self, method: str, act: Any) -> Any:
        tracing = self._tracing

        async def traced(request: Any, context: Any) -> Any:
            system = "grpc" if getattr(context, "is_grpc", True) else "kagzi"
            metadata = {str(key): str(value) for key, value in context.invocation_metadata() or ()}
            span, code = tracing.call(method, metadata, system=system), UNKNOWN
            try:
                outcome = await act(request, context)
                code = code_of(outcome)
            except asyncio.CancelledError:
                code = CANCELLED
                raise
            finally:
                tracing.called(span, code)
            return outcome

        return traced
