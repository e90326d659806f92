"""The listener for calls over WebSocket on the HTTP port, with the same handlers and interceptor as gRPC.

Imported only by servers that have an HTTP listener and the WebSocket library.
"""

import asyncio
import hmac
import logging
from functools import partial
from typing import cast

from picows import WSCloseCode
from picows.common import WSUpgradeRequest

from ..core import limits
from ..core.budgets import ByteBudget
from ..core.errors import ResourceExhausted, limit_reached
from ..wire.calls.call import End, ServerEnd
from ..wire.calls.frames import REQUEST_BYTES, SUBPROTOCOL, Opened, ServerCalls
from ..wire.calls.websocket import LISTENER_HEADER, Refused, WebSocket, server_protocol
from ..wire.status import RpcStatus, to_status
from .calls import CallServer
from .grpc.incomplete import WHY_DROPPED, IncompleteMessages
from .grpc.listener import CONNECTION_CALLS

logger = logging.getLogger("kagzi.server")

HANDSHAKE_S = 10.0
_VERSION = "13"  # of RFC 6455
IDLE_S = 300.0
"""A connection without calls is closed after one to two times this long; clients reconnect by themselves."""
UNREAD_CONNECTION_BYTES = 16 * limits.MIB
"""Limit of the requests on one connection that no handler has read yet."""
UNREAD_BYTES = 64 * limits.MIB
_SHARE_BYTES = limits.MESSAGE_HARD_BYTES


class WebSocketListener:
    """Accepts connections from clients that know `listener_id`, until `stop`."""

    def __init__(self, calls: CallServer, *, listener_id: str, max_connections: int) -> None:
        self.calls = calls
        self.unread = ByteBudget(UNREAD_CONNECTION_BYTES, UNREAD_BYTES, _SHARE_BYTES)
        self._listener_id = listener_id
        self._max_connections = max_connections
        self._connections: set[WebSocket] = set()
        self._incomplete = IncompleteMessages()
        self._stopping = False

    def protocol(self) -> asyncio.BufferedProtocol:
        """The protocol of one new connection, which has not sent its request yet."""
        return server_protocol(self._accept, HANDSHAKE_S)

    def _accept(self, request: WSUpgradeRequest) -> "WebSocket | Refused":
        headers = request.headers
        if "Origin" in headers:
            return 403, "This is not for browsers."  # or any web page could call this machine
        if headers.get("Sec-WebSocket-Version", "") != _VERSION:
            return 426, f"This server speaks version {_VERSION} of WebSocket."
        if headers.get("Sec-WebSocket-Protocol", "") != SUBPROTOCOL:
            return 400, f"This server speaks {SUBPROTOCOL}."
        if not hmac.compare_digest(
            headers.get(LISTENER_HEADER, "").encode(errors="replace"), self._listener_id.encode()
        ):
            return 421, "This is another server than the one that was asked for."
        if self._stopping:
            return 503, "The server is stopping."
        if len(self._connections) >= self._max_connections:
            return 503, f"This server has {self._max_connections} connections, as many as it may."
        calls = _ServedCalls(self)
        websocket = WebSocket(calls, REQUEST_BYTES, self._lost)
        calls.websocket = websocket
        drop = partial(websocket.refuse, WSCloseCode.TRY_AGAIN_LATER, WHY_DROPPED)
        websocket.on_parts = partial(self._incomplete.count, drop=drop)
        self._connections.add(websocket)
        return websocket

    def _lost(self, websocket: WebSocket, reason: str) -> None:
        self._connections.discard(websocket)
        websocket.on_parts = None
        cast("_ServedCalls", websocket.calls).close()
        if reason:
            logger.info("a connection by WebSocket ended: %s", reason)

    async def stop(self) -> None:
        """Called after the last calls have ended; their responses are still sent."""
        self._stopping = True
        await asyncio.gather(*(each.close("the server is stopping") for each in tuple(self._connections)))


class _ServedCalls(ServerCalls):
    """The calls of one connection. Reading from it pauses while too many requests are unread."""

    def __init__(self, listener: WebSocketListener) -> None:
        super().__init__(asyncio.get_running_loop())
        self.websocket: WebSocket | None = None
        self._listener = listener
        self._unread_bytes = 0
        self._closing: asyncio.Task[None] | None = None
        self._calls_seen = self._calls_checked = 0
        self._idle = self.loop.call_later(IDLE_S, self._check_idle)

    def begin(self, opened: Opened, end: ServerEnd, timeout_s: float | None) -> None:
        self._calls_seen += 1
        if len(self.open_calls) > CONNECTION_CALLS:
            end.refuse(
                _refusal("connection_calls", CONNECTION_CALLS, f"{CONNECTION_CALLS} calls are open on one connection")
            )
            return
        end.on_unread = self._count
        self._count(end.unread_bytes)  # the bytes of a request that came with the call count until it is read
        self._listener.calls.begin(opened.path, end, opened.metadata, timeout_s)

    def _on_message(self, call: int, end: End, data: bytes) -> None:
        if self._listener.unread.is_over(self._unread_bytes):
            text = f"{self._unread_bytes} bytes of requests on one connection wait to be read"
            cast("ServerEnd", end).refuse(_refusal("unread_requests_bytes", UNREAD_CONNECTION_BYTES, text))
            return
        super()._on_message(call, end, data)

    def _count(self, size: int) -> None:
        self._unread_bytes += size
        self._listener.unread.used_bytes += size

    def pause(self) -> None:
        super().pause()
        underlying = None if self.websocket is None else self.websocket.underlying
        if underlying is not None and not underlying.is_closing():
            underlying.pause_reading()

    def resume(self) -> None:
        super().resume()
        underlying = None if self.websocket is None else self.websocket.underlying
        if underlying is not None and not underlying.is_closing():
            underlying.resume_reading()

    def _check_idle(self) -> None:
        if not self.open_calls and self._calls_seen == self._calls_checked and self.websocket is not None:
            self._closing = self.loop.create_task(self.websocket.close())
            return
        self._calls_checked = self._calls_seen
        self._idle = self.loop.call_later(IDLE_S, self._check_idle)

    def close(self) -> None:
        self._idle.cancel()
        self.websocket = None


def _refusal(limit: str, maximum: int, what: str) -> RpcStatus:
    error = ResourceExhausted(
        f"{what}; the limit is {maximum}. Send less at once, or try again.", metadata=limit_reached(limit, maximum)
    )
    return to_status(error)
