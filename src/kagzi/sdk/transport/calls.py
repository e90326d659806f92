"""A channel that the generated stubs use instead of gRPC's: to a server in this process, or over a WebSocket.

Message limits, deadlines, cancellation and errors of failed calls are those of gRPC, so the code above does not depend
on the kind of channel.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable
from contextvars import copy_context
from functools import partial
from typing import Any

import grpc
import grpc.aio

from ...core import limits
from ...wire.calls.call import ClientEnd, Metadata, OpenCall, too_large
from ...wire.status import RpcStatus

Encode = Callable[[Any], bytes] | None
Decode = Callable[[bytes], Any] | None

_CANCELLED = RpcStatus(grpc.StatusCode.CANCELLED, "Locally cancelled by application!", ())
_TOO_LATE = RpcStatus(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", ())
_NO_RESPONSE = RpcStatus(grpc.StatusCode.INTERNAL, "the call ended without a response", ())
_LARGEST_BYTES = limits.MESSAGE_READ_BYTES


class CallChannel:
    """`open_call`: begins a call of the server. `largest_bytes`: of a request. Closing the channel cancels its open
    calls."""

    def __init__(self, open_call: OpenCall, largest_bytes: int = _LARGEST_BYTES) -> None:
        self._open_call = open_call
        self._largest_bytes = largest_bytes
        self._calls: set[Call] = set()
        self.unary_unary = self._callable(self._one_request, UnaryCall)
        self.unary_stream = self._callable(self._one_request, StreamCall)
        self.stream_unary = self._callable(self._many_requests, UnaryCall)
        self.stream_stream = self._callable(self._many_requests, StreamCall)

    def _callable(self, begin: Callable[..., "Call"], kind: "type[Call]") -> Callable[..., Any]:
        def method(
            path: str, request_serializer: Encode = None, response_deserializer: Decode = None, **_: object
        ) -> Callable[..., Any]:
            return partial(begin, kind, path, request_serializer, response_deserializer)

        return method

    async def close(self) -> None:
        for call in tuple(self._calls):
            call.cancel()

    def _one_request(
        self,
        kind: "type[Call]",
        path: str,
        encode: Encode,
        decode: Decode,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> "Call":
        data: bytes = request if encode is None else encode(request)
        if len(data) > self._largest_bytes:
            end = ClientEnd(asyncio.get_running_loop())
            end.end(too_large("CLIENT", "Sent", len(data), self._largest_bytes))
        else:
            end = self._open_call(path, metadata, timeout, data)
        return self._begin(kind(end, encode, decode, self._largest_bytes), timeout)

    def _many_requests(
        self,
        kind: "type[Call]",
        path: str,
        encode: Encode,
        decode: Decode,
        requests: Iterable[Any] | AsyncIterable[Any] | None = None,
        *,
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> "Call":
        """Without `requests`, the caller writes them one by one."""
        end = self._open_call(path, metadata, timeout)
        call = self._begin(kind(end, encode, decode, self._largest_bytes), timeout)
        if requests is not None:
            call.send_all(requests)
        return call

    def _begin(self, call: "Call", timeout_s: float | None) -> "Call":
        call.begin(timeout_s, self._calls)
        return call


class Call:
    """One call, like gRPC's: it ends with a status, which a reader gets as an AioRpcError unless it is OK."""

    def __init__(self, end: ClientEnd, encode: Encode, decode: Decode, largest_bytes: int) -> None:
        self._end = end
        self._largest_bytes = largest_bytes
        self._encode = encode
        self._decode = decode
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._open: set[Call] = set()

    def begin(self, timeout_s: float | None, open_calls: "set[Call]") -> None:
        """`open_calls`: contains this call until it is over."""
        if self._end.status is not None:
            return
        self._open = open_calls
        open_calls.add(self)
        self._end.on_end = self._on_end
        if timeout_s is not None:
            self._timer = self._end.loop.call_later(timeout_s, self._end.end, _TOO_LATE)

    def _on_end(self) -> None:
        self._open.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()

    def done(self) -> bool:
        return self._end.status is not None

    def cancel(self) -> bool:
        if self.done():
            return False
        self._end.end(_CANCELLED)
        return True

    # --- requests -----------------------------------------------------------------------------------------------------

    def send_all(self, requests: Iterable[Any] | AsyncIterable[Any]) -> None:
        self._sending = self._end.loop.create_task(self._send_all(requests), name="kagzi-requests")

    async def _send_all(self, requests: Iterable[Any] | AsyncIterable[Any]) -> None:
        try:
            if isinstance(requests, AsyncIterable):
                async for request in requests:
                    await self.write(request)
            else:
                for request in requests:
                    if self.done():  # a write that does not block does not notice a cancellation
                        return
                    await self.write(request)
            await self.done_writing()
        except grpc.aio.AioRpcError:
            return  # the task that awaits the call gets the error
        except Exception:
            self.cancel()
            raise

    async def write(self, request: Any) -> None:
        """Returns when more may be written. Raises the status if the call has already failed."""
        if self.done():
            self._raise_for_status()
        data: bytes = request if self._encode is None else self._encode(request)
        if len(data) > self._largest_bytes:
            self._end.end(too_large("CLIENT", "Sent", len(data), self._largest_bytes))
            self._raise_for_status()
        try:
            self._end.send(data)
            await self._end.writable()
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def done_writing(self) -> None:
        self._end.send_no_more()

    # --- responses ----------------------------------------------------------------------------------------------------

    async def _read(self) -> Any:
        """The next response, or EOF after the last."""
        try:
            data = await self._end.read()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if data is None:
            self._raise_for_status()
            return grpc.aio.EOF
        return self._decoded(data)

    def _decoded(self, data: bytes) -> Any:
        if len(data) > _LARGEST_BYTES:
            status = too_large("CLIENT", "Received", len(data), _LARGEST_BYTES)
            self._end.end(status)
            raise _error(status)  # also after a call that ended with OK
        return data if self._decode is None else self._decode(data)

    def _raise_for_status(self) -> None:
        status = self._end.status
        if status is _CANCELLED:
            raise asyncio.CancelledError
        if status is not None and status.code is not grpc.StatusCode.OK:
            raise _error(status)


class UnaryCall(Call):
    """Awaited for its single response."""

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._response().__await__()

    async def _response(self) -> Any:
        try:
            response = await self._read()
            if response is grpc.aio.EOF:
                raise _error(_NO_RESPONSE)
            await self._read()  # the status
        except asyncio.CancelledError:
            if self._sending is not None and self._sending.done() and not self._sending.cancelled():
                self._sending.result()  # raises the error of the requests, if there is one
            raise
        return response


class StreamCall(Call):
    async def read(self) -> Any:
        return await self._read()

    async def receive(self, take: Callable[[Any], None]) -> None:
        """Call `take` with each response when it arrives, in the context of this call: a task that reads it would run a
        turn of the event loop later. Returns after the last one. Raises what `take` raises, which ends the call."""
        inside, failures = copy_context(), list[Exception]()

        def take_now(data: bytes) -> None:
            try:
                inside.run(take, self._decoded(data))
            except Exception as error:  # noqa: BLE001  raised below
                failures.append(error)
                self._end.on_data = None
                self.cancel()

        self._end.on_data = take_now
        try:
            async for response in self:  # those that had arrived before
                take(response)
        except (asyncio.CancelledError, grpc.aio.AioRpcError):
            if failures:
                raise failures[0] from None
            raise
        except Exception:
            self.cancel()
            raise
        finally:
            self._end.on_data = None

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (response := await self._read()) is not grpc.aio.EOF:
            yield response


class StreamOver(Exception):
    """A message was written to a stream that has ended. Its reader gets the status, if it ended with an error."""


async def write(call: Any, data: Any) -> None:
    """Write to a call of any kind of channel. Raises StreamOver: gRPC has an error of its own for a stream that its
    server has just ended, as a server that stops does."""
    try:
        await call.write(data)
    except asyncio.InvalidStateError as error:
        raise StreamOver from error


async def receive(call: Any, take: Callable[[Any], None]) -> None:
    """See `StreamCall.receive`, for a call of any kind of channel."""
    if isinstance(call, StreamCall):
        await call.receive(take)
        return
    while (response := await call.read()) is not grpc.aio.EOF:
        take(response)


def _error(status: RpcStatus) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(
        status.code, grpc.aio.Metadata(), grpc.aio.Metadata(*status.metadata), details=status.details
    )
