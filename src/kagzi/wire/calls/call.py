"""The two ends of a call without gRPC: in one process, or with a connection between them (`frames`).

The ends exchange encoded messages, as on every transport: they share no mutable objects, and sizes are known where they
are limited. In one process the ends may be on different event loops, each in its own thread. An end is used only on its
own loop; everything that it sends wakes the other loop once. With a connection between them, each end has a `Peer` that
sends its events over the connection.
"""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import grpc

from ...core import limits
from ..status import RpcStatus

WINDOW_BYTES = 64 * limits.KIB
"""A writer waits while more than this, or more than WINDOW_MESSAGES, has not been read."""
WINDOW_MESSAGES = 64

Metadata = tuple[tuple[str, str | bytes], ...]

OK = RpcStatus(grpc.StatusCode.OK, "", ())
GONE = RpcStatus(grpc.StatusCode.UNAVAILABLE, "Socket closed", ())
"""The other side ended in the middle of a call. The text is the one that gRPC uses for this."""
NOT_THERE = RpcStatus(grpc.StatusCode.UNAVAILABLE, "Connection refused", ())


class OpenCall(Protocol):
    """Opens a call of the method `path` on a server in this process. Called on the loop on which the call is used.

    `request`: the only request, if it is already known.
    """

    def __call__(
        self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None
    ) -> "ClientEnd": ...


_numbers = itertools.count(1)
_loops: "WeakKeyDictionary[asyncio.AbstractEventLoop, str]" = WeakKeyDictionary()


def connection_name(kind: str) -> str:
    """A name that no other connection of this process has or had."""
    return f"{kind}:{next(_numbers)}"


class Peer(Protocol):
    """The other end, as an end sees it: the end itself or its proxy, with the `on_` methods of an end."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    @property
    def is_paused(self) -> bool:
        """Whether the connection to it is full, even if this call has sent little."""
        ...

    @property
    def connection(self) -> str:
        """The name of the connection to it. In one process, each event loop is a connection."""
        ...


class End(ABC):
    """One end of a call. At most one reader and one writer at a time.

    Waits are plain futures: if workflow code waits for a queue, lock or event of asyncio, the worker assumes that
    another task of the run ends the wait (`sdk/execution/idle`).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._other: Peer | None = None
        self._shares_loop = True
        self._is_called_by_sender = False
        self._unread: deque[bytes] = deque()
        self._is_complete = False  # the other end sends no more messages
        self.is_over = False
        self._arrival: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._sent = self._sent_bytes = 0  # sent, and not yet reported as read
        self._read = self._read_bytes = 0  # read, and not yet reported
        self._unread_bytes = 0
        self.on_data: Callable[[bytes], None] | None = None
        """Called with each message as it arrives, unless earlier ones are unread. It must not raise. Not called if the
        other end is on the same loop: the code that sends would run the code that receives."""
        self.on_unread: Callable[[int], object] | None = None
        """Called with the change in the number of received but unread bytes."""

    @property
    def is_paused(self) -> bool:
        return False

    @property
    def connection(self) -> str:
        """The name of the connection between the ends."""
        other = self._other
        if other is None:
            return ""
        if not isinstance(other, End):
            return other.connection
        name = _loops.get(other.loop)
        if name is None:
            name = _loops[other.loop] = connection_name("in-process")
        return name

    @property
    def owes_reading(self) -> bool:
        """Whether the other side should have waited for this one to read before sending more."""
        return len(self._unread) > WINDOW_MESSAGES or self._unread_bytes > WINDOW_BYTES

    @property
    def unread_bytes(self) -> int:
        """The size of the messages that were received and not read."""
        return self._unread_bytes

    def connect(self, other: Peer) -> None:
        self._other = other
        self._shares_loop = self.loop is other.loop
        self._is_called_by_sender = self._shares_loop and isinstance(other, End)

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
        self._count_unread(-len(data))
        self._note_read(len(data))
        return data

    def _note_read(self, size: int) -> None:
        if self._is_complete:  # the other end has no writer to wake
            return
        self._read += 1
        self._read_bytes += size
        if self._read_bytes * 2 > WINDOW_BYTES or self._read * 2 > WINDOW_MESSAGES:
            self._send_event("on_read", self._read, self._read_bytes)
            self._read = self._read_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether a writer has to wait."""
        other = self._other
        return other is not None and (
            self._sent_bytes > WINDOW_BYTES or self._sent > WINDOW_MESSAGES or other.is_paused
        )

    async def writable(self) -> None:
        """Returns when more may be sent."""
        while self.is_full:
            self._writable = self.loop.create_future()
            try:
                await self._writable
            finally:
                self._writable = None

    def send(self, data: bytes) -> None:
        """Send at once; then wait for `writable`. Messages sent after the end of a call are dropped."""
        if not self.is_over:
            self._sent += 1
            self._sent_bytes += len(data)
            self._send_event("on_message", data)

    def _send_event(self, event: str, *arguments: Any) -> None:
        """Deliver an event to the other end, on its own loop."""
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

    def on_message(self, data: bytes) -> None:
        if not self.is_over:
            if self.on_data is not None and not self._unread and not self._is_called_by_sender:
                self._note_read(len(data))
                self.on_data(data)
                return
            self._unread.append(data)
            self._count_unread(len(data))
            _wake(self._arrival)

    def _count_unread(self, size: int) -> None:
        self._unread_bytes += size
        if self.on_unread is not None:
            self.on_unread(size)

    def on_read(self, messages: int, size: int) -> None:
        self._sent -= messages
        self._sent_bytes -= size
        _wake(self._writable)

    def on_resumed(self) -> None:
        """The connection to the other end is no longer full."""
        _wake(self._writable)

    def on_last_message(self) -> None:
        self._is_complete = True
        _wake(self._arrival)

    def _end(self) -> None:
        """End the call, and wake everything that waits for it."""
        self.is_over = True
        self._other = None
        self.on_last_message()
        _wake(self._writable)

    @abstractmethod
    def _on_other_gone(self) -> None: ...


class ClientEnd(End):
    """Over when it has a status; messages that arrived before can still be read."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.status: RpcStatus | None = None
        self.on_end: Callable[[], None] | None = None

    def resend(self, events: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
        """Repeat the events that were sent to the previous peer."""
        for event, arguments in events:
            self._send_event(event, *arguments)

    def send_no_more(self) -> None:
        self._send_event("on_last_message")

    def end(self, status: RpcStatus) -> None:
        """End the call from this side: unread messages are dropped, and the handler is cancelled."""
        if self.status is None:
            self._unread.clear()
            self._unread_bytes = 0
            self._send_event("on_cancel")
            self.on_status(status)

    def on_status(self, status: RpcStatus, response: bytes | None = None) -> None:
        if self.status is None:
            if response is not None:
                self._unread.append(response)
                self._count_unread(len(response))
            self.status = status
            self._end()
            if self.on_end is not None:
                self.on_end()

    def _on_other_gone(self) -> None:
        self.on_status(GONE)


class ServerEnd(End):
    """`request`: the only request, if it is already known."""

    def __init__(self, loop: asyncio.AbstractEventLoop, request: bytes | None = None) -> None:
        super().__init__(loop)
        if request is not None:
            self._unread.append(request)
            self._unread_bytes = len(request)
            self._is_complete = True
        self.when_cancelled: Callable[[], object] | None = None
        """Called when the caller is gone or has cancelled."""

    def give_up_if_gone(self) -> None:
        """Check whether the caller's loop is closed: a closed loop cannot report that."""
        if self._other is not None and self._other.loop.is_closed():
            self.on_cancel()

    def finish(self, status: RpcStatus, response: bytes | None = None) -> None:
        """`response`: the only response, if none was sent before."""
        self.when_cancelled = None  # a handler that is over and this end would keep each other
        self._send_event("on_status", status, response)
        self._end()
        self._drop_unread()

    def refuse(self, status: RpcStatus) -> None:
        """End the call early: the caller gets the status, and the handler is cancelled."""
        if not self.is_over:
            cancel = self.when_cancelled
            self.finish(status)
            if cancel is not None:
                cancel()

    def _drop_unread(self) -> None:
        self._unread.clear()
        self._count_unread(-self._unread_bytes)

    def on_cancel(self) -> None:
        if not self.is_over:
            self._end()
            self._drop_unread()
            if self.when_cancelled is not None:
                self.when_cancelled()

    def _on_other_gone(self) -> None:
        self.on_cancel()


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def too_large(who: str, what: str, size: int, most: int) -> RpcStatus:
    """Worded as in gRPC."""
    text = f"{who}: {what} message larger than max ({size} vs. {most})"
    return RpcStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, text, ())
