"""The two ends of a call within one process, with neither a socket nor gRPC between them.

What is handed over is the encoded message, as on every way to a server: the two sides share nothing that one of them
could change under the other, and sizes are known where they are limited. The ends may be on different event loops, each
in its own thread. An end is used on its own loop only; whatever it sends is one wake-up of the other loop.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import grpc

from ..core import limits
from .status import RpcStatus

WINDOW_BYTES = 64 * limits.KIB
"""A writer waits while more than this, or more than WINDOW_MESSAGES, has not been read."""
WINDOW_MESSAGES = 64

Metadata = tuple[tuple[str, str | bytes], ...]

OK = RpcStatus(grpc.StatusCode.OK, "", ())
GONE = RpcStatus(grpc.StatusCode.UNAVAILABLE, "Socket closed", ())
"""The other side ended in the middle of a call. The text is gRPC's for the same."""
NOT_THERE = RpcStatus(grpc.StatusCode.UNAVAILABLE, "Connection refused", ())


class OpenCall(Protocol):
    """Begins a call of the method `path` at a server in this process. Called on the loop on which the call is used.

    `request`: the only one, if it is known already.
    """

    def __call__(
        self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None
    ) -> "ClientEnd": ...


class End(ABC):
    """One end of a call. At most one reader and one writer at a time.

    Waits are plain futures: what asyncio's own primitives look like to a run that waits in them is another matter
    (`idle`).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._other: End | None = None
        self._shares_loop = True
        self._unread: deque[bytes] = deque()
        self._is_complete = False  # the other end sends no more messages
        self._is_over = False
        self._arrival: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._sent = self._sent_bytes = 0  # and not known to be read
        self._read = self._read_bytes = 0  # and not yet said so

    def connect(self, other: "End") -> None:
        self._other = other
        self._shares_loop = self.loop is other.loop

    async def read(self) -> bytes | None:
        """The next message; None when there are no more."""
        while not self._unread:
            if self._is_complete:
                return None
            self._arrival = self.loop.create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        data = self._unread.popleft()
        self._read += 1
        self._read_bytes += len(data)
        if self._read_bytes * 2 > WINDOW_BYTES or self._read * 2 > WINDOW_MESSAGES:
            self._send_event("_on_read", self._read, self._read_bytes)
            self._read = self._read_bytes = 0
        return data

    @property
    def is_full(self) -> bool:
        """Whether a writer has to wait."""
        return (self._sent_bytes > WINDOW_BYTES or self._sent > WINDOW_MESSAGES) and not self._is_over

    async def writable(self) -> None:
        """Returns when more may be sent."""
        while self.is_full:
            self._writable = self.loop.create_future()
            try:
                await self._writable
            finally:
                self._writable = None

    def send(self, data: bytes) -> None:
        """At once; then wait for `writable`. What is sent after the end of a call is dropped."""
        if not self._is_over:
            self._sent += 1
            self._sent_bytes += len(data)
            self._send_event("_on_message", data)

    def _send_event(self, event: str, *arguments: Any) -> None:
        """Have the other end take note of it, on its own loop."""
        other = self._other
        if other is None:
            return
        handle: Callable[..., None] = getattr(other, event)
        if self._shares_loop:
            handle(*arguments)
            return
        try:
            other.loop.call_soon_threadsafe(handle, *arguments)
        except RuntimeError:  # its loop is closed
            self._on_other_gone()

    def _on_message(self, data: bytes) -> None:
        if not self._is_over:
            self._unread.append(data)
            _wake(self._arrival)

    def _on_read(self, messages: int, size: int) -> None:
        self._sent -= messages
        self._sent_bytes -= size
        _wake(self._writable)

    def _on_last_message(self) -> None:
        self._is_complete = True
        _wake(self._arrival)

    def _end(self) -> None:
        """No wait outlasts it."""
        self._is_over = True
        self._other = None
        self._on_last_message()
        _wake(self._writable)

    @abstractmethod
    def _on_other_gone(self) -> None: ...


class ClientEnd(End):
    """Over when it has a status; messages that came before can still be read."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.status: RpcStatus | None = None
        self.on_end: Callable[[], None] | None = None

    def send_no_more(self) -> None:
        self._send_event("_on_last_message")

    def end(self, status: RpcStatus) -> None:
        """By this side: what came is not read any more, and the handler is cancelled."""
        if self.status is None:
            self._unread.clear()
            self._send_event("_on_cancel")
            self._on_status(status)

    def _on_status(self, status: RpcStatus, response: bytes | None = None) -> None:
        if self.status is None:
            if response is not None:
                self._unread.append(response)
            self.status = status
            self._end()
            if self.on_end is not None:
                self.on_end()

    def _on_other_gone(self) -> None:
        self._on_status(GONE)


class ServerEnd(End):
    """`request`: the only one, if it is known already."""

    def __init__(self, loop: asyncio.AbstractEventLoop, request: bytes | None = None) -> None:
        super().__init__(loop)
        if request is not None:
            self._unread.append(request)
            self._is_complete = True
        self.on_cancel: Callable[[], object] | None = None
        """Called when the caller is gone, or wants no more."""

    def give_up_if_gone(self) -> None:
        """A loop that is closed says nothing any more, not even that it is."""
        if self._other is not None and self._other.loop.is_closed():
            self._on_cancel()

    def finish(self, status: RpcStatus, response: bytes | None = None) -> None:
        """`response`: the only one, if it was not sent before."""
        self._send_event("_on_status", status, response)
        self._end()

    def _on_cancel(self) -> None:
        if not self._is_over:
            self._end()
            if self.on_cancel is not None:
                self.on_cancel()

    def _on_other_gone(self) -> None:
        self._on_cancel()


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
