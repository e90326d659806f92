"""Measures calls by wrapping their handlers."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import grpc

from ...engine.measurements.measurements import Measurements
from ...wire.status import RpcStatus

CANCELLED = "CANCELLED"
UNKNOWN = "UNKNOWN"


def measured_handlers(
    handlers: Sequence[grpc.GenericRpcHandler], measurements: Measurements, streams: frozenset[str]
) -> list[grpc.GenericRpcHandler]:
    """`streams`: paths of calls that last as long as their callers want. They are counted, not timed."""
    return [_MeasuredHandlers(handler, measurements, streams) for handler in handlers]


class _MeasuredHandlers(grpc.GenericRpcHandler):
    def __init__(self, handlers: grpc.GenericRpcHandler, measurements: Measurements, streams: frozenset[str]) -> None:
        self._handlers = handlers
        self._measurements = measurements
        self._streams = streams
        self._measured: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        path = handler_call_details.method
        measured = self._measured.get(path)
        if measured is None:
            handler = self._handlers.service(handler_call_details)
            if handler is None:
                return None
            measured = self._measured[path] = self._around(path, cast("Any", handler))
        return measured

    def _around(self, path: str, handler: Any) -> "grpc.RpcMethodHandler[Any, Any]":
        name = path.removeprefix("/").replace("kagzi.v1.", "")
        if handler.unary_unary is not None:
            return grpc.unary_unary_rpc_method_handler(self._timed(name, handler.unary_unary))
        act = handler.stream_stream
        around = self._counted(name.rpartition("/")[2], act) if path in self._streams else self._timed(name, act)
        return grpc.stream_stream_rpc_method_handler(around)

    def _timed(self, name: str, act: Any) -> Any:
        called = self._measurements.called

        async def timed(request: Any, context: Any) -> Any:
            loop = asyncio.get_running_loop()
            began_s, code = loop.time(), UNKNOWN
            try:
                outcome = await act(request, context)
                code = code_of(outcome)
            except asyncio.CancelledError:
                code = CANCELLED
                raise
            finally:
                called(name, code, loop.time() - began_s)
            return outcome

        return timed

    def _counted(self, kind: str, act: Any) -> Any:
        streams = self._measurements.streams

        async def counted(request: Any, context: Any) -> Any:
            streams[kind] += 1
            try:
                return await act(request, context)
            finally:
                streams[kind] -= 1

        return counted


def code_of(outcome: object) -> str:
    """The status code of a call, by what its handler returned."""
    return outcome.code.name if isinstance(outcome, RpcStatus) else "OK"
