"""The listener for callers in this process: the handlers of the gRPC listener, reached without a socket and without
gRPC.

Every call passes the same interceptor, so admission, budgets, deadlines and errors are decided there, once.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple, NoReturn, cast

import grpc

from ..wire.in_process import GONE, NOT_THERE, OK, ClientEnd, Metadata, ServerEnd
from ..wire.status import RpcStatus

CHECK_S = 5.0
"""How often callers on other loops are looked at: whether their loops are still there."""
_CANCEL_S = 2.0  # how long a handler may take to end when it is cancelled


class _Details(NamedTuple):
    method: str
    invocation_metadata: Metadata = ()


class InProcessListener:
    """Serves from `start` to `stop`, on the loop of `start`. Calls may come from other loops."""

    def __init__(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._generic = tuple(handlers)
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any] | None] = {}
        self._calls: dict[asyncio.Task[None], ServerEnd] = {}
        self._far: set[ServerEnd] = set()  # of callers on other loops
        self._checking: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.copy_context()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    def open_call(
        self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None
    ) -> ClientEnd:
        """See `OpenCall`. On a server that does not serve the call ends with UNAVAILABLE."""
        here, serving = asyncio.get_running_loop(), self._loop
        caller = ClientEnd(here)
        if serving is None:
            caller.end(NOT_THERE)
            return caller
        end = ServerEnd(serving, request)
        caller.connect(end)
        end.connect(caller)
        if here is serving:
            self._begin(path, end, metadata, timeout_s)
            return caller
        try:
            serving.call_soon_threadsafe(self._begin_far, path, end, metadata, timeout_s)
        except RuntimeError:  # its loop is closed
            caller.end(NOT_THERE)
        return caller

    async def stop(self, grace_s: float) -> None:
        """New calls are refused at once; those in flight get `grace_s` to finish. May be called again, in a hurry."""
        self._loop = None
        if self._checking is not None:
            self._checking.cancel()
        if self._calls:
            await asyncio.wait(set(self._calls), timeout=grace_s)
        cancelled = set(self._calls)
        for call in cancelled:
            call.cancel()
        if cancelled:
            await asyncio.wait(cancelled, timeout=_CANCEL_S)

    def _begin_far(self, path: str, end: ServerEnd, metadata: Metadata, timeout_s: float | None) -> None:
        self._begin(path, end, metadata, timeout_s)
        if self._loop is not None:
            self._far.add(end)
            self._checking = self._checking or self._loop.call_later(CHECK_S, self._check_callers)

    def _check_callers(self) -> None:
        for end in tuple(self._far):
            end.give_up_if_gone()
        self._checking = None
        if self._far and self._loop is not None:
            self._checking = self._loop.call_later(CHECK_S, self._check_callers)

    def _begin(self, path: str, end: ServerEnd, metadata: Metadata, timeout_s: float | None) -> None:
        if self._loop is None:
            end.finish(NOT_THERE)
            return
        context = _Context(end, metadata, timeout_s)
        # Not in the caller's context: what it keeps in context variables is not the server's.
        call = self._loop.create_task(
            self._serve(self._handler(path), context), name=path, context=self._context.copy()
        )
        end.on_cancel = call.cancel
        self._calls[call] = end
        call.add_done_callback(self._ended)

    def _ended(self, call: "asyncio.Task[None]") -> None:
        end = self._calls.pop(call)
        end.finish(GONE)  # if it was cancelled before it began; otherwise that was done
        self._far.discard(end)

    def _handler(self, path: str) -> "grpc.RpcMethodHandler[Any, Any] | None":
        if path not in self._handlers:
            details = cast("grpc.HandlerCallDetails", _Details(path))
            handlers = (generic.service(details) for generic in self._generic)
            self._handlers[path] = next((each for each in handlers if each is not None), None)
        return self._handlers[path]

    async def _serve(self, handler: "grpc.RpcMethodHandler[Any, Any] | None", context: "_Context") -> None:
        """Whatever a handler raises is a status already: the interceptor sees to that."""
        status, response = GONE, None  # if it is cancelled: the server stops, or nobody waits for it
        try:
            if handler is None:
                status = RpcStatus(grpc.StatusCode.UNIMPLEMENTED, "Method not found!", ())
            elif handler.unary_unary is not None:
                response = await cast("Any", handler.unary_unary)(await context.end.read(), context)
                status = OK
            else:
                await cast("Any", handler.stream_stream)(None, context)
                status = OK
        except grpc.aio.AbortError:
            status = context.status
        finally:
            context.end.finish(status, response)


class _Context:
    """What handlers use of gRPC's context."""

    def __init__(self, end: ServerEnd, metadata: Metadata, timeout_s: float | None) -> None:
        self.end = end
        self.status = GONE
        self._sent: asyncio.Future[None] = end.loop.create_future()
        self._sent.set_result(None)
        self._metadata = metadata
        self._deadline = None if timeout_s is None else end.loop.time() + timeout_s

    async def read(self) -> object:
        data = await self.end.read()
        return grpc.aio.EOF if data is None else data

    def write(self, data: bytes) -> Awaitable[None]:
        """It is sent at once; awaited, it waits until more may be sent. May be cut short."""
        self.end.send(data)
        return self.end.writable() if self.end.is_full else self._sent

    async def abort(self, code: grpc.StatusCode, details: str, metadata: "tuple[tuple[str, bytes], ...]") -> NoReturn:
        self.status = RpcStatus(code, details, metadata)
        raise grpc.aio.AbortError

    def invocation_metadata(self) -> Metadata:
        return self._metadata

    def time_remaining(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - self.end.loop.time(), 0.0)
