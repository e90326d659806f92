"""The HTTP port: pages, probes and calls over WebSocket. It listens from the start, but loads the code of either with
the first connection that needs it: most servers that a test, a script or `kagzi dev` starts get no such connection, and
the code is a quarter of the cost of starting a server."""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from typing import TYPE_CHECKING, TypeGuard, TypeVar, cast

from ...wire.calls.path import PATH
from ..listen import ListenAddress, bind

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine

    from ..websocket import WebSocketListener
    from .page_data import PageData
    from .protocol import TimedProtocol
    from .web import Web

Result = TypeVar("Result")
_log = logging.getLogger("kagzi.server")

_BACKLOG = 2_048  # uvicorn's default
_AGAIN_S = 1.0
FIRST_BYTES_S = 10.0
"""A connection that has not sent its first bytes by then is closed."""
_WEBSOCKET = f"GET {PATH} ".encode()  # the first bytes of a WebSocket request
_PROBES = (b"/healthz", b"/readyz")
_RESERVED = 8  # one in so many connections is for probes and WebSockets
_LASTING = 4  # three in so many may be streams, and requests that wait
_UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class HttpListener:
    """Bound on construction, so that its URL is known early. `context`: TLS, for pages and calls."""

    def __init__(self, address: ListenAddress, *, max_connections: int, context: ssl.SSLContext | None = None) -> None:
        self._max_connections = max_connections
        self._socket = bind(address, field="http")
        self.address = ListenAddress(address.host, self._socket.getsockname()[1])
        self._context = context
        secure = "" if context is None else "s"
        self.url = f"http{secure}://{self.address}"
        self.websocket_url = f"ws{secure}://{self.address}{PATH}"
        self.undecided: dict[_Undecided, None] = {}  # the oldest first
        self._server: asyncio.Server | None = None
        self._stopping = False
        self._web: asyncio.Task[Web] | None = None
        self._websocket: asyncio.Task[WebSocketListener] | None = None

    async def start(self, data: PageData, websocket: Callable[[], WebSocketListener] | None = None) -> None:
        """`websocket`: creates the WebSocket listener, once its module is loaded."""
        self._data = data
        self._make_websocket = websocket
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Undecided(self),
            sock=self._socket,
            backlog=_BACKLOG,
            ssl=self._context,
            ssl_handshake_timeout=None if self._context is None else FIRST_BYTES_S,
        )

    @property
    def _served(self) -> dict[TimedProtocol, None]:
        return self._web.result().by_age if _has_result(self._web) else {}

    def end_one_beyond_limit(self, newest: _Undecided) -> None:
        """Ends a connection if there are more than may be: the oldest that has sent nothing, or that waits for another
        request; else the oldest that waits until the code is loaded. The newest one ends only if all others are being
        served: it may be a probe, or a WebSocket, which has a limit of its own."""
        if len(self.undecided) + len(self._served) <= self._max_connections:
            return
        silent = next((each for each in self.undecided if each.is_silent and each is not newest), None)
        if not self._end_idle(None if silent is None else silent.began_s):
            (silent or next(iter(self.undecided))).abort()

    def _end_idle(self, before_s: float | None = None) -> bool:
        """Ends the oldest connection without a request, if there is one. `before_s`: only if it is older than that."""
        idle = next((each for each in self._served if each.is_idle), None)
        if idle is None or (before_s is not None and idle.began_s > before_s):
            return False
        del self._served[idle]  # now: more connections may arrive before it is closed
        idle.transport.abort()
        return True

    def _accepts(self, head: bytes) -> bool:
        """Some connections are for probes, so that a server that is busy is not taken for one that hangs."""
        reserved = -(-self._max_connections // _RESERVED)
        if len(self._served) < self._max_connections - reserved or self._end_idle():
            return True
        path = head.split(b" ", 2)[1:2]
        return bool(path) and path[0].partition(b"?")[0].endswith(_PROBES)

    async def protocol_for(self, head: bytes) -> asyncio.BaseProtocol | None:
        """The protocol for a connection that begins with `head`. None: there is no room. Raises ImportError."""
        if head.startswith(_WEBSOCKET) and self._make_websocket is not None:
            self._websocket = self._websocket or _task(self._load_websocket(self._make_websocket))
            return (await asyncio.shield(self._websocket)).protocol()
        if not self._accepts(head):
            return None
        self._web = self._web or _task(self._load_web())
        return (await asyncio.shield(self._web)).protocol()

    async def _load_websocket(self, make: Callable[[], WebSocketListener]) -> WebSocketListener:
        await asyncio.to_thread(import_module, "kagzi.server.websocket")
        return make()

    async def _load_web(self) -> Web:
        while True:
            try:
                # In a thread: the import takes a tenth of a second, and calls must be served meanwhile.
                await asyncio.to_thread(import_module, f"{__package__}.web")
                from .web import Web  # noqa: PLC0415  see above

                lasting = max(self._max_connections * (_LASTING - 1) // _LASTING, 1)
                web = Web(self._data, local_only=self.address.is_local, most_lasting=lasting)
                await web.start()
            except Exception:  # the process may be out of descriptors for a while
                if self._stopping:
                    raise
                _log.exception("the HTTP port %s cannot be served yet", self.address)
                await asyncio.sleep(_AGAIN_S)
            else:
                return web

    async def stop_websockets(self) -> None:
        if self._websocket is not None:
            (listener,) = await asyncio.gather(self._websocket, return_exceptions=True)
            if not isinstance(listener, BaseException):
                await listener.stop()

    async def stop(self) -> None:
        """Requests in flight get a limited time to finish."""
        self._stopping = True
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.undecided):
            connection.abort()
        if self._web is not None:
            (web,) = await asyncio.gather(self._web, return_exceptions=True)
            if not isinstance(web, BaseException):
                await web.stop()
        self._socket.close()


class _Undecided(asyncio.Protocol):
    """A connection before its first bytes have arrived."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._head = b""
        self._deciding: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        loop = asyncio.get_running_loop()
        self.began_s = loop.time()
        self._timer = loop.call_later(FIRST_BYTES_S, self.abort)
        self._listener.undecided[self] = None
        self._listener.end_one_beyond_limit(self)

    @property
    def is_silent(self) -> bool:
        return self._deciding is None

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self._deciding is not None or (len(self._head) < len(_WEBSOCKET) and _WEBSOCKET.startswith(self._head)):
            return
        self._timer.cancel()
        self._transport.pause_reading()
        self._deciding = _task(self._hand_over())

    async def _hand_over(self) -> None:
        try:
            protocol = await self._listener.protocol_for(self._head)
            if protocol is None:
                self._transport.write(_UNAVAILABLE)
                self._transport.close()
                return
        except Exception:  # noqa: BLE001  the connection must be closed in any case
            _log.exception("a connection to %s cannot be served", self._listener.address)
            self._transport.write(_UNAVAILABLE)
            self._transport.close()
            return
        if self._transport.is_closing():
            return
        self._listener.undecided.pop(self, None)
        protocol.connection_made(self._transport)
        self._transport.set_protocol(protocol)
        self._transport.resume_reading()
        _feed(protocol, self._head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._listener.undecided.pop(self, None)

    def abort(self) -> None:
        self._listener.undecided.pop(self, None)
        self._transport.abort()


def _feed(protocol: asyncio.BaseProtocol, data: bytes) -> None:
    if isinstance(protocol, asyncio.Protocol):
        protocol.data_received(data)
        return
    buffered, rest = cast("asyncio.BufferedProtocol", protocol), memoryview(data)
    while rest:
        buffer = memoryview(buffered.get_buffer(len(rest)))
        size = min(len(buffer), len(rest))
        buffer[:size] = rest[:size]
        buffered.buffer_updated(size)
        rest = rest[size:]


def _has_result(task: asyncio.Task[Web] | None) -> TypeGuard[asyncio.Task[Web]]:
    return task is not None and task.done() and not task.cancelled() and task.exception() is None


def _task(coroutine: Coroutine[object, object, Result]) -> asyncio.Task[Result]:
    return asyncio.get_running_loop().create_task(coroutine, name="kagzi http")
