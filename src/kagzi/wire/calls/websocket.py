"""Calls over a WebSocket: each frame is one binary message. The only module that uses the library, picows.

Imported only where a WebSocket is used: if the library cannot be imported, gRPC is used.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, cast

from picows import WSAutoPingStrategy, WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport
from picows.common import WSHandshakeError, WSUpgradeRequest, WSUpgradeResponse, WSUpgradeResponseWithListener

from ...core import limits
from .frames import FRAME_MARGIN_BYTES, RESPONSE_BYTES, SUBPROTOCOL, BadFrame, Calls

LISTENER_HEADER = "Kagzi-Listener"
"""The server that a client wants to reach: another one may listen behind a forwarded port."""
CLIENT_PING_S = 5.0  # of silence; with CLIENT_PONG_S, a client leaves a silent server before a lease ends
CLIENT_PONG_S = 4.0
SERVER_PING_S = 20.0
SERVER_PONG_S = 10.0
FRAME_BYTES = 64 * limits.KIB
"""The largest frame that a server reads: its read buffer becomes as large, and stays so while the connection lasts."""
PART_BYTES = 16 * limits.KIB
"""Larger messages are sent in parts. Whoever receives parts for longer than PARTS_PONG_S says so with pongs: on a slow
line, the answer to a ping may stand behind a message for longer than the other side waits for it."""
PARTS_PONG_S = 1.0
_TURN_BYTES = 64 * limits.KIB  # how much a server reads from a connection, and handles, before it serves others
_REASON_BYTES = 123  # the limit for the reason of a close frame
_CLOSE_S = 2.0

Refused: TypeAlias = tuple[int, str]
"""An HTTP status, and the reason."""

_WSProtocol: Any = import_module("picows.picows").WSProtocol  # missing in its stubs

# The library's messages about single connections do not help users; its callers log what matters.
_LOGGER = logging.getLogger("kagzi.websocket.library")
_LOGGER.setLevel(logging.CRITICAL + 1)


class WebSocket(WSListener):
    """One connection, on either side. `on_lost` gets the reason why it ended; empty if it was simply closed."""

    def __init__(self, calls: Calls, largest_bytes: int, on_lost: Callable[["WebSocket", str], None]) -> None:
        self.calls = calls
        self._largest_bytes = largest_bytes + FRAME_MARGIN_BYTES
        self._on_lost = on_lost
        self._transport: WSTransport | None = None
        self._parts: bytearray | None = None  # of an incomplete message
        self.on_parts: Callable[[int], None] | None = None
        """Called with the change in the size of these parts."""
        self._pong_at = 0.0
        self._reason = ""
        self._is_refused = False

    @property
    def underlying(self) -> asyncio.Transport | None:
        return None if self._transport is None else self._transport.underlying_transport

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport
        self.calls.send = partial(_send, transport)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if self._is_refused:
            return
        try:
            if frame.rsv1 or frame.rsv2 or frame.rsv3:
                raise BadFrame(
                    "a frame is marked as compressed, or otherwise extended, but no extension was agreed upon"
                )
            if frame.msg_type == WSMsgType.BINARY and frame.fin and self._parts is None:
                self.calls.receive(frame.get_payload_as_bytes())
            else:
                self._on_other_frame(transport, frame)
        except BadFrame as error:
            self.refuse(WSCloseCode.PROTOCOL_ERROR, str(error))

    def _on_other_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Handle messages in parts, which a proxy may create, and frames that are not part of the protocol."""
        if frame.msg_type == WSMsgType.CLOSE:
            self._reason = self._reason or frame.get_close_reason()
            if not transport.is_close_frame_sent:
                transport.send_close(WSCloseCode.OK)
            transport.disconnect()
        elif frame.msg_type in (WSMsgType.BINARY, WSMsgType.CONTINUATION):
            self._pong_for_part(transport, is_first=frame.msg_type == WSMsgType.BINARY)
            self._on_part(frame)
        elif frame.msg_type == WSMsgType.TEXT:
            self.refuse(WSCloseCode.UNSUPPORTED_DATA, "a message is text; calls are binary messages")

    def _pong_for_part(self, transport: WSTransport, *, is_first: bool) -> None:
        now = self.calls.loop.time()
        if is_first:
            self._pong_at = now
        elif now - self._pong_at >= PARTS_PONG_S:
            self._pong_at = now
            transport.send_pong()

    def _on_part(self, frame: WSFrame) -> None:
        if (frame.msg_type == WSMsgType.BINARY) == (self._parts is not None):
            raise BadFrame("the parts of a message are out of order")
        parts = self._parts = bytearray() if self._parts is None else self._parts
        if len(parts) + frame.payload_size > self._largest_bytes:
            self.refuse(WSCloseCode.MESSAGE_TOO_BIG, f"a message in parts has more than {self._largest_bytes} bytes")
            return
        parts += frame.get_payload_as_memoryview()
        if frame.fin:
            self._drop_parts(frame.payload_size)
            self.calls.receive(bytes(parts))
        elif self.on_parts is not None:
            self.on_parts(frame.payload_size)

    def _drop_parts(self, last_bytes: int = 0) -> None:
        """`last_bytes`: the size of the last part, which was not reported to `on_parts`."""
        parts, self._parts = self._parts, None
        if parts is not None and self.on_parts is not None:
            self.on_parts(last_bytes - len(parts))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._transport = None
        self._drop_parts()
        self.calls.lost()
        self._on_lost(self, self._reason)

    def pause_writing(self) -> None:
        self.calls.pause()

    def resume_writing(self) -> None:
        self.calls.resume()

    def refuse(self, code: WSCloseCode, reason: str) -> None:
        """End the connection because of what the other side sent, and tell it the reason."""
        self._is_refused = True
        self._reason = reason
        self._drop_parts()
        if self._transport is not None:
            self._transport.send_close(code, reason.encode()[:_REASON_BYTES].decode(errors="ignore"))
            self._transport.disconnect()
            self.calls.loop.call_later(_CLOSE_S, self.abort)

    async def close(self, reason: str = "") -> None:
        """Messages sent before are still delivered, unless the other side does not read for two seconds."""
        transport = self._transport
        if transport is None:
            return
        transport.send_close(WSCloseCode.GOING_AWAY, reason)
        transport.disconnect()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await transport.wait_disconnected()
        except Exception:  # noqa: BLE001  after any error the connection has ended
            self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.underlying_transport.abort()


def _send(transport: WSTransport, frame: bytes) -> None:
    if len(frame) <= PART_BYTES:
        transport.send(WSMsgType.BINARY, frame)
        return
    kind, whole = WSMsgType.BINARY, memoryview(frame)
    for start in range(0, len(frame), PART_BYTES):
        transport.send(kind, whole[start : start + PART_BYTES], start + PART_BYTES >= len(frame))
        kind = WSMsgType.CONTINUATION


def server_protocol(
    accept: Callable[[WSUpgradeRequest], "WebSocket | Refused"], handshake_s: float
) -> asyncio.BufferedProtocol:
    """The protocol for one connection of a server. `accept` gets the request and returns a WebSocket or a refusal."""

    def listener(request: WSUpgradeRequest) -> WSUpgradeResponseWithListener:
        accepted = accept(request)
        if isinstance(accepted, WebSocket):
            response = WSUpgradeResponse.create_101_response({"Sec-WebSocket-Protocol": SUBPROTOCOL})
            return WSUpgradeResponseWithListener(response, accepted)
        status, why = accepted
        return WSUpgradeResponseWithListener(WSUpgradeResponse.create_error_response(status, why.encode()), None)

    side = _Side("", "", False, SERVER_PING_S, SERVER_PONG_S, FRAME_BYTES)
    protocol: asyncio.BufferedProtocol = _protocol(_ServerProtocol, side, listener, handshake_s)
    return protocol


async def connect(
    websocket: "WebSocket",
    host: str,
    port: int,
    path: str,
    *,
    listener_id: str,
    handshake_s: float,
    context: ssl.SSLContext | None,
) -> None:
    """Raises OSError if it fails; if cancelled, it leaves nothing behind."""
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    headers = (("Sec-WebSocket-Protocol", SUBPROTOCOL), (LISTENER_HEADER, listener_id))
    side = _Side(name, path, True, CLIENT_PING_S, CLIENT_PONG_S, RESPONSE_BYTES + FRAME_MARGIN_BYTES, headers)
    protocol = _protocol(_WSProtocol, side, lambda: websocket, handshake_s)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(lambda: protocol, host, port, ssl=context)
    try:
        await protocol.wait_until_handshake_complete()
    except WSHandshakeError as error:
        transport.abort()
        why = (error.raw_body or b"").decode(errors="replace").strip()
        raise ConnectionRefusedError(f"{error}. {why}" if why else str(error)) from None
    except BaseException:
        transport.abort()
        raise
    if protocol.transport.is_disconnected:
        raise ConnectionResetError("it was closed before it was open")


def _bounded_buffer(protocol: Any, size_hint: int) -> memoryview:
    """The library handles everything that it reads in one iteration of the loop, so limit how much it reads."""
    return cast("memoryview", _WSProtocol.get_buffer(protocol, size_hint))[:_TURN_BYTES]


_ServerProtocol: Any = type("ServerProtocol", (_WSProtocol,), {"get_buffer": _bounded_buffer})


class _Side(NamedTuple):
    host_port: str
    path: str
    is_client: bool
    ping_s: float
    pong_s: float
    largest_bytes: int
    headers: tuple[tuple[str, str], ...] = ()


def _protocol(made_by: Any, side: _Side, listener: Callable[..., object], handshake_s: float) -> Any:
    return made_by(
        side.host_port,
        side.path,
        side.is_client,
        listener,
        _LOGGER,
        True,  # an exception in a listener ends its connection
        handshake_s,
        True,  # pings
        side.ping_s,
        side.pong_s,
        WSAutoPingStrategy.PING_WHEN_IDLE,
        True,  # pongs
        side.largest_bytes,
        side.headers,
        16 * 1024,  # the initial size of the read buffer
    )
