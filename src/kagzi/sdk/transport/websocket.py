"""The faster transport: calls as WebSocket messages while the server offers it and it works, else gRPC.

A server says over gRPC (GetServerInfo) whether it offers WebSocket, so gRPC is always asked first: when a channel is
opened, and again when the WebSocket has ended, since another server may be there by then. Calls that begin meanwhile
wait for the response, within their own deadlines. A WebSocket that cannot be reached although gRPC can is tried again
later, while calls go by gRPC: the server may only have had too many connections. One that breaks repeatedly while gRPC
works is not used any more for the life of the channel. Both are logged once.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import grpc
import grpc.aio

from ...core.errors import InvalidArgument
from ...v1 import admin_pb2
from ...wire.calls.call import GONE, ClientEnd, Metadata
from ...wire.calls.frames import REQUEST_BYTES, RESPONSE_BYTES, VERSION, ClientCalls
from ...wire.status import RpcStatus
from .address import is_local
from .calls import CallChannel
from .channel import Channel

logger = logging.getLogger("kagzi.connection")

INFO_PATH = "/kagzi.v1.AdminService/GetServerInfo"
VARIABLE = "KAGZI_WEBSOCKET"
_ON = ("", "1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")
CONNECT_S = 2.0
"""How long a WebSocket may take to open before gRPC is used instead."""
_ASK_S = 2.0
_PAUSE_S = 0.1  # between two attempts
AGAIN_S = 60.0
"""How long calls go by gRPC before a WebSocket that could not be reached is tried again."""
DEATHS = 3
DEATHS_WITHIN_S = 60.0


def websocket_allowed(environment: Mapping[str, str]) -> bool:
    """Whether the environment allows WebSocket. Raises InvalidArgument."""
    word = environment.get(VARIABLE, "").lower()
    if word not in (*_ON, *_OFF):
        raise InvalidArgument(f"{VARIABLE}={word!r} is neither on nor off.", field=VARIABLE)
    return word in _ON


class Offer(NamedTuple):
    """A server's offer of its WebSocket."""

    url: str
    version: int
    listener_id: str

    def problem(self, target: str, context: ssl.SSLContext | None, *, with_key: bool = False) -> str:
        """Why a client that reaches the server as `target` cannot use it; empty if it can. `with_key`: calls carry a
        key."""
        if self.version != VERSION:
            return f"the server speaks version {self.version} of it, this SDK {VERSION}"
        if urlsplit(self.url).scheme != ("ws" if context is None else "wss"):
            return "one of the two uses TLS, and the other does not"
        if is_local(urlsplit(self.url).netloc) and not is_local(target):
            return "its WebSocket is for its own machine only"
        if with_key and context is None and target.startswith("unix:") and not is_local(urlsplit(self.url).netloc):
            return "its WebSocket would carry the key unencrypted"  # a Unix socket has no host: the offered one is used
        return ""


class PreferredChannel:
    """`target`: of gRPC; the WebSocket has the same host. `metadata`: of the request for the offer."""

    def __init__(
        self, target: str, over_grpc: Channel, metadata: Metadata, context: ssl.SSLContext | None = None
    ) -> None:
        self._target = target
        self._over_grpc = over_grpc
        self._metadata = metadata
        self._context = context
        self._ask = over_grpc.unary_unary(
            INFO_PATH,
            request_serializer=admin_pb2.GetServerInfoRequest.SerializeToString,
            response_deserializer=admin_pb2.GetServerInfoResponse.FromString,
        )
        self._over_websocket = CallChannel(self._open_call, REQUEST_BYTES)
        self._offer: Offer | None = None
        self._grpc_only = False
        self._again_at = float("inf")  # when to try the WebSocket again, if calls go by gRPC
        self._calls: ClientCalls | None = None
        self._websocket: Any = None
        self._connecting: asyncio.Task[None] | None = None
        self._tried_at = float("-inf")
        self._waiting: list[tuple[ClientEnd, _Unsent, Callable[[ClientCalls], None]]] = []
        self._deaths: deque[float] = deque(maxlen=DEATHS)
        self._died = ""  # the listener whose connection ended last
        self.unary_unary = self._choosing("unary_unary")
        self.unary_stream = self._choosing("unary_stream")
        self.stream_unary = self._choosing("stream_unary")
        self.stream_stream = self._choosing("stream_stream")

    def _choosing(self, kind: str) -> Callable[..., Any]:
        def method(path: str, **options: Any) -> Callable[..., Any]:
            by_grpc: Callable[..., Any] = getattr(self._over_grpc, kind)(path, **options)
            if path == INFO_PATH:  # always by gRPC: it returns the offer, and works without WebSocket
                return by_grpc
            by_websocket: Callable[..., Any] = getattr(self._over_websocket, kind)(path, **options)

            def begin(*request: Any, **how: Any) -> Any:
                if not self._grpc_only:
                    return by_websocket(*request, **how)
                self._try_again_if_due()
                return by_grpc(*request, **how)

            return begin

        return method

    async def settle(self, info: admin_pb2.GetServerInfoResponse | None = None) -> None:
        """Connect now, so that no call has to wait or to be retried by gRPC. `info`: the server's latest response.
        Never raises, and takes seconds at most."""
        if self._calls is None and self._connecting is None and not self._grpc_only:
            if info is not None:
                self._take(info)
            if not self._grpc_only:
                await asyncio.wait({self._connected()})

    async def close(self) -> None:
        await self._over_websocket.close()
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting})
        if self._websocket is not None:
            await self._websocket.close()
        await self._over_grpc.close()

    # --- calls --------------------------------------------------------------------------------------------------------

    def _open_call(
        self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None
    ) -> ClientEnd:
        loop = asyncio.get_running_loop()
        end = ClientEnd(loop)
        calls = self._calls
        if calls is not None and not calls.is_used_up:
            calls.open(end, path, metadata, timeout_s, request)
            return end
        began_at = loop.time()

        def open_now(calls: ClientCalls) -> None:
            left_s = None if timeout_s is None else timeout_s - (loop.time() - began_at)
            calls.open(end, path, metadata, left_s, request)

        unsent = _Unsent(loop)
        end.connect(unsent)
        self._waiting.append((end, unsent, open_now))
        self._connecting = self._connected()
        return end

    def _end_waiting(self, status: RpcStatus) -> None:
        waiting, self._waiting = self._waiting, []
        for end, _, _ in waiting:
            end.on_status(status)

    # --- the connection -----------------------------------------------------------------------------------------------

    def _connected(self) -> "asyncio.Task[None]":
        """A task that ends when connecting was tried."""
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._try_to_connect(), name="kagzi-websocket")
        return self._connecting

    async def _try_to_connect(self) -> None:
        status = GONE
        try:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(self._tried_at + _PAUSE_S - loop.time())
            self._tried_at = loop.time()
            if self._offer is None:
                self._take(await self._server_info())
            if not self._grpc_only and self._offer is not None:
                await self._open(self._offer)
        except grpc.aio.AioRpcError as error:  # the server is gone: waiting calls get gRPC's error
            trailing = cast("Iterable[tuple[str, str | bytes]]", error.trailing_metadata() or ())
            details = tuple((key, value) for key, value in trailing if isinstance(value, bytes))
            status = RpcStatus(error.code(), error.details() or "", details)
        except Exception:
            self._give_up(logging.WARNING, "calls to %s go by gRPC, since its WebSocket failed", self._target)
            logger.exception("the WebSocket to %s failed", self._target)
        finally:
            self._connecting = None
            self._end_waiting(status)

    def _try_again_if_due(self) -> None:
        loop = asyncio.get_running_loop()
        if self._connecting is None and loop.time() >= self._again_at:
            self._connecting = loop.create_task(self._try_again(), name="kagzi-websocket")

    async def _try_again(self) -> None:
        """While calls go by gRPC: none of them waits for it."""
        self._again_at = asyncio.get_running_loop().time() + AGAIN_S
        try:
            info = await self._server_info()
            offer = Offer(info.websocket_url, info.websocket_version, info.listener_id)
            if offer.url and not offer.problem(self._target, self._context, with_key=bool(self._metadata)):
                async with asyncio.timeout(CONNECT_S):
                    self._calls = await self._dial(offer)
                self._grpc_only = False
                logger.info("calls to %s go by WebSocket again", self._target)
        except (OSError, grpc.aio.AioRpcError):
            return  # as before
        finally:
            self._connecting = None

    async def _server_info(self) -> admin_pb2.GetServerInfoResponse:
        request = admin_pb2.GetServerInfoRequest()
        info: admin_pb2.GetServerInfoResponse = await self._ask(request, timeout=_ASK_S, metadata=self._metadata)
        return info

    def _take(self, info: admin_pb2.GetServerInfoResponse) -> None:
        offer = Offer(info.websocket_url, info.websocket_version, info.listener_id)
        if not offer.url:
            self._give_up(logging.DEBUG, "the server at %s offers no WebSocket", self._target)
        elif problem := offer.problem(self._target, self._context, with_key=bool(self._metadata)):
            self._give_up(logging.INFO, "calls to %s go by gRPC: %s", self._target, problem)
        elif self._is_dying(offer):
            self._give_up(
                logging.WARNING,
                "the WebSocket to %s ended %d times within %d s, and gRPC did not: calls go by gRPC from now on. "
                "If a proxy cuts it off, set KAGZI_WEBSOCKET=off",
                self._target,
                DEATHS,
                int(DEATHS_WITHIN_S),
            )
        else:
            self._offer = offer

    def _is_dying(self, offer: Offer) -> bool:
        if offer.listener_id != self._died:  # another process: the server was restarted
            self._deaths.clear()
        now = asyncio.get_running_loop().time()
        return len(self._deaths) == DEATHS and now - self._deaths[0] < DEATHS_WITHIN_S

    def _give_up(self, level: int, text: str, *arguments: object) -> None:
        self._grpc_only = True
        logger.log(level, text, *arguments)

    async def _open(self, offer: Offer) -> None:
        """Raises AioRpcError if the server itself is gone."""
        self._offer = None
        try:
            async with asyncio.timeout(CONNECT_S):
                calls = await self._dial(offer)
        except (OSError, ImportError) as error:  # a TimeoutError is an OSError
            info = await self._server_info()
            if info.listener_id == offer.listener_id:  # the server is up, but its WebSocket cannot be reached
                self._give_up_because(error, offer)
            return
        self._calls = calls
        waiting, self._waiting = self._waiting, []
        for end, unsent, open_now in waiting:
            if end.status is None:
                open_now(calls)
                end.resend(unsent.events)

    def _give_up_because(self, error: OSError | ImportError, offer: Offer) -> None:
        if isinstance(error, OSError):
            self._again_at = asyncio.get_running_loop().time() + AGAIN_S
        host, port = self._where(offer)
        why = "no answer" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        self._give_up(
            logging.INFO if isinstance(error, ImportError) else logging.WARNING,
            "calls to %s go by gRPC, since its WebSocket at %s cannot be used: %s. If that is how it should be, "
            "set KAGZI_WEBSOCKET=off",
            self._target,
            f"{host}:{port}",
            why,
        )

    async def _dial(self, offer: Offer) -> ClientCalls:
        from ...wire.calls.websocket import WebSocket, connect  # noqa: PLC0415  its library may be missing

        calls = ClientCalls(asyncio.get_running_loop())

        def lost(websocket: object, reason: str) -> None:
            self._lost(calls, offer)

        websocket = WebSocket(calls, RESPONSE_BYTES, lost)
        host, port = self._where(offer)
        await connect(
            websocket,
            host,
            port,
            urlsplit(offer.url).path,
            listener_id=offer.listener_id,
            handshake_s=CONNECT_S,
            context=self._context,
        )
        self._websocket = websocket
        return calls

    def _where(self, offer: Offer) -> tuple[str, int]:
        """The host that gRPC reaches: the server's name for itself may not be valid elsewhere."""
        url = urlsplit(offer.url)
        own = "" if self._target.startswith("unix:") else self._target.rpartition(":")[0].strip("[]")
        return own or url.hostname or "", url.port or 0

    def _lost(self, calls: ClientCalls, offer: Offer) -> None:
        if calls is self._calls:
            self._calls = self._websocket = None
            if calls.had_calls:
                self._deaths.append(calls.loop.time())
                self._died = offer.listener_id


class _Unsent:
    """Replaces the server while there is no connection: keeps the requests of a call until then."""

    is_paused = False
    connection = ""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.events: list[tuple[str, tuple[Any, ...]]] = []

    def on_message(self, data: bytes) -> None:
        self.events.append(("on_message", (data,)))

    def on_last_message(self) -> None:
        self.events.append(("on_last_message", ()))

    def on_read(self, messages: int, size: int) -> None:
        return  # nothing has been sent yet

    def on_cancel(self) -> None:
        self.events.clear()
