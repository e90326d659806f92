"""Serves calls that do not arrive over gRPC, with the same handlers as the gRPC listener.

Every call passes the same interceptor, so admission, budgets, deadlines and errors are handled in one place.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple, cast

import grpc

from ..core.raised.exceptions import drop_frames
from ..wire.calls.call import GONE, NOT_THERE, OK, Metadata, ServerEnd
from ..wire.status import RpcStatus

_CANCEL_S = 2.0  # how long a handler may take to end when it is cancelled


class _Details(NamedTuple):
    method: str
    invocation_metadata: Metadata = ()


class CallServer:
    """Serves from `start` to `stop`, on the event loop of `start`."""

    def __init__(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._generic = tuple(handlers)
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._calls: dict[asyncio.Task[None], ServerEnd] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        """None while not serving."""
        self._context = contextvars.copy_context()

    def start(self) -> None:
        self.loop = asyncio.get_running_loop()

    async def stop(self, grace_s: float) -> None:
        """Refuses new calls at once; calls in flight get `grace_s` to finish. May be called again to shorten it."""
        self.loop = None
        if self._calls:
            await asyncio.wait(set(self._calls), timeout=grace_s)
        cancelled = set(self._calls)
        for call in cancelled:
            call.cancel()
        if cancelled:
            await asyncio.wait(cancelled, timeout=_CANCEL_S)

    def begin(self, path: str, end: ServerEnd, metadata: Metadata, timeout_s: float | None) -> None:
        """Begins a call. If the server is not serving, the call ends with UNAVAILABLE."""
        if self.loop is None:
            end.finish(NOT_THERE)
            return
        context = _Context(end, metadata, timeout_s)
        # Not in the caller's context: the caller's context variables must not leak into the server.
        call = self.loop.create_task(self._serve(self._handler(path), context), name=path, context=self._context.copy())
        end.when_cancelled = call.cancel
        self._calls[call] = end
        call.add_done_callback(self._ended)

    def _ended(self, call: "asyncio.Task[None]") -> None:
        self._calls.pop(call).finish(GONE)  # no effect unless it was cancelled before it began

    def _handler(self, path: str) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """None: there is no such method. Unknown paths are not cached, since callers can invent any number of them."""
        handler = self._handlers.get(path)
        if handler is None:
            details = cast("grpc.HandlerCallDetails", _Details(path))
            handlers = (generic.service(details) for generic in self._generic)
            handler = next((each for each in handlers if each is not None), None)
            if handler is not None:
                self._handlers[path] = handler
        return handler

    async def _serve(self, handler: "grpc.RpcMethodHandler[Any, Any] | None", context: "_Context") -> None:
        """Handlers return an RPC status for a refused call: the interceptor converts all errors."""
        outcome: object = GONE  # if it is cancelled: the server stops, or the caller is gone
        try:
            if handler is None:
                outcome = RpcStatus(grpc.StatusCode.UNIMPLEMENTED, "Method not found!", ())
            elif handler.unary_unary is not None:
                outcome = await cast("Any", handler.unary_unary)(await context.end.read(), context)
            else:
                outcome = await cast("Any", handler.stream_stream)(None, context)
        except asyncio.CancelledError as error:
            drop_frames(error)  # ends here: the task would keep the error, and its frames the task
        finally:
            if isinstance(outcome, RpcStatus):
                context.end.finish(outcome)
            else:
                context.end.finish(OK, cast("bytes | None", outcome))


class _Context:
    """The part of gRPC's context that handlers use."""

    is_grpc = False

    def __init__(self, end: ServerEnd, metadata: Metadata, timeout_s: float | None) -> None:
        self.end = end
        self._sent: asyncio.Future[None] = end.loop.create_future()
        self._sent.set_result(None)
        self._metadata = metadata
        self._deadline = None if timeout_s is None else end.loop.time() + timeout_s

    async def read(self) -> object:
        data = await self.end.read()
        return grpc.aio.EOF if data is None else data

    def write(self, data: bytes) -> Awaitable[None]:
        """Sends at once; awaiting it waits until more may be sent. The wait may be cancelled."""
        self.end.send(data)
        return self.end.writable() if self.end.is_full else self._sent

    def invocation_metadata(self) -> Metadata:
        return self._metadata

    def peer(self) -> str:
        """The name of the connection, as from gRPC's own context."""
        return self.end.connection

    def time_remaining(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - self.end.loop.time(), 0.0)
