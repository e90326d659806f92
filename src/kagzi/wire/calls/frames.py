"""Many calls on one connection: the meaning of each message, and the call to which it belongs.

A frame is one message of a connection that preserves message boundaries (`websocket`): a byte for its kind, the number
of the call, and the content of that kind. The client assigns the numbers, each once. The two ends of a call (`call`)
decide how much it may write before the other side has read, as between two ends in one process.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

import grpc
import msgspec

from ...core import limits
from ..status import RpcStatus
from .call import GONE, OK, ClientEnd, End, Metadata, ServerEnd, connection_name, too_large

VERSION = 1
"""The version of the frames. Both sides must have the same."""
SUBPROTOCOL = f"kagzi.calls.{VERSION}"
HEADER_BYTES = 16 * limits.KIB
"""The limit for the header of a call: its path and metadata. gRPC has this limit, too."""
REQUEST_BYTES = limits.MESSAGE_HARD_BYTES + limits.MIB
"""The interceptor refuses a message slightly over the hard limit, and names the limit. Larger ones are not sent."""
RESPONSE_BYTES = limits.MESSAGE_READ_BYTES
FRAME_MARGIN_BYTES = HEADER_BYTES + 64
"""How much longer than its message a frame may be."""
_CACHED_HEADERS = 32  # a connection has few different headers


class Kind(IntEnum):
    OPEN = 1  # a call with many requests: deadline and header
    CALL = 2  # a call with a single request: the same, and the request
    MESSAGE = 3
    LAST = 4  # the client sends no more requests
    READ = 5  # how many messages and bytes were read since the last one
    CANCEL = 6
    ANSWER = 7  # a response; the call has succeeded
    STATUS = 8  # the call has ended


NO_DEADLINE = 0xFFFF_FFFF
_HEAD = Struct("!BI")
_OPEN = Struct("!BIIH")  # kind, call, milliseconds until the deadline, bytes of the header
_READ = Struct("!BIII")
_SIZE = _HEAD.size
_LAST_CALL = 0xFFFF_FFFF

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class BadFrame(Exception):
    """The data do not follow this protocol: the connection cannot be used any longer."""


class Opened(NamedTuple):
    """The header of a call."""

    path: str
    metadata: tuple[tuple[str, str], ...]


class _Status(msgspec.Struct, array_like=True):
    code: int
    details: str
    metadata: tuple[tuple[str, bytes], ...]


_header_decoder = msgspec.msgpack.Decoder(Opened)
_status_decoder = msgspec.msgpack.Decoder(_Status)


def write_open(call: int, header: bytes, timeout_s: float | None, request: bytes | None) -> bytes:
    left_ms = NO_DEADLINE if timeout_s is None else min(max(int(timeout_s * 1_000), 0), NO_DEADLINE - 1)
    if request is None:
        return _OPEN.pack(Kind.OPEN, call, left_ms, len(header)) + header
    return b"".join((_OPEN.pack(Kind.CALL, call, left_ms, len(header)), header, request))


def write_status(call: int, status: RpcStatus) -> bytes:
    code: int = status.code.value[0]
    return _HEAD.pack(Kind.STATUS, call) + msgspec.msgpack.encode(_Status(code, status.details, status.metadata))


def read_status(body: bytes) -> RpcStatus:
    """Raises BadFrame."""
    try:
        status = _status_decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise BadFrame(f"the status of a call cannot be read: {error}") from None
    return RpcStatus(_CODES.get(status.code, grpc.StatusCode.UNKNOWN), status.details, status.metadata)


class Calls(ABC):
    """The calls on one connection, on either side. `receive` handles each message, `lost` ends all calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_paused = False
        self.connection = ""
        """The name of the connection, on the server's side."""
        self.open_calls: dict[int, End] = {}
        self.send: Callable[[bytes], object] = _dropped
        """Sends a frame at once. Frames sent without a connection are dropped."""

    @abstractmethod
    def lost(self) -> None:
        """The connection is gone."""

    @abstractmethod
    def _receive(self, kind: int, call: int, frame: bytes) -> None:
        """Handle the kinds of frame that only one side may send. Raises BadFrame."""

    def receive(self, frame: bytes) -> None:
        """Raises BadFrame."""
        if len(frame) < _SIZE:
            raise BadFrame(f"a frame has {len(frame)} bytes; the shortest has {_SIZE}")
        kind, call = _HEAD.unpack_from(frame)
        if kind == Kind.MESSAGE:
            end = self.open_calls.get(call)
            if end is not None:  # otherwise it has just ended
                self._on_message(call, end, frame[_SIZE:])
        elif kind == Kind.READ:
            if len(frame) != _READ.size:
                raise BadFrame(f"a frame of kind READ has {len(frame)} bytes instead of {_READ.size}")
            end = self.open_calls.get(call)
            if end is not None:
                end.on_read(*_READ.unpack(frame)[2:])
        else:
            self._receive(kind, call, frame)

    def _on_message(self, call: int, end: End, data: bytes) -> None:
        end.on_message(data)

    def pause(self) -> None:
        """The connection is full: writers wait."""
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        for end in tuple(self.open_calls.values()):
            end.on_resumed()


def _dropped(frame: bytes) -> None:
    return


class _Remote:
    """A proxy for the other end of a call: sends every event over the connection."""

    def __init__(self, calls: Calls, call: int) -> None:
        self._calls = calls
        self._call = call
        self.loop = calls.loop

    @property
    def is_paused(self) -> bool:
        return self._calls.is_paused

    @property
    def connection(self) -> str:
        return self._calls.connection

    def on_message(self, data: bytes) -> None:
        self._calls.send(_HEAD.pack(Kind.MESSAGE, self._call) + data)

    def on_read(self, messages: int, size: int) -> None:
        self._calls.send(_READ.pack(Kind.READ, self._call, messages, size))


class RemoteServer(_Remote):
    def on_last_message(self) -> None:
        self._calls.send(_HEAD.pack(Kind.LAST, self._call))

    def on_cancel(self) -> None:
        if self._calls.open_calls.pop(self._call, None) is not None:
            self._calls.send(_HEAD.pack(Kind.CANCEL, self._call))


class RemoteClient(_Remote):
    def on_message(self, data: bytes) -> None:
        if len(data) > RESPONSE_BYTES:
            end = self._calls.open_calls.get(self._call)
            if isinstance(end, ServerEnd):
                end.refuse(too_large("SERVER", "Sent", len(data), RESPONSE_BYTES))
            return
        super().on_message(data)

    def on_status(self, status: RpcStatus, response: bytes | None = None) -> None:
        if response is not None and len(response) > RESPONSE_BYTES:
            status, response = too_large("SERVER", "Sent", len(response), RESPONSE_BYTES), None
        if self._calls.open_calls.pop(self._call, None) is None:
            return  # the caller is gone
        if status is OK and response is not None:
            self._calls.send(_HEAD.pack(Kind.ANSWER, self._call) + response)
            return
        if response is not None:
            super().on_message(response)
        self._calls.send(write_status(self._call, status))


class ClientCalls(Calls):
    """The client's side: opens calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.had_calls = False
        """Whether calls were open when the connection was lost."""
        self._last_call = 0
        self._headers: dict[tuple[str, Metadata], bytes] = {}

    @property
    def is_used_up(self) -> bool:
        """Whether all numbers are used: then another call needs a new connection."""
        return self._last_call >= _LAST_CALL

    def open(
        self, end: ClientEnd, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None
    ) -> None:
        header = self._header(path, metadata)
        if len(header) > HEADER_BYTES:
            text = f"the path and metadata of the call have {len(header)} bytes; the limit is {HEADER_BYTES}"
            end.on_status(RpcStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, text, ()))
            return
        self._last_call = call = self._last_call + 1
        self.open_calls[call] = end
        end.connect(RemoteServer(self, call))
        self.send(write_open(call, header, timeout_s, request))

    def _header(self, path: str, metadata: Metadata) -> bytes:
        header = self._headers.get((path, metadata))
        if header is None:
            header = msgspec.msgpack.encode((path, metadata))
            if len(self._headers) < _CACHED_HEADERS:
                self._headers[path, metadata] = header
        return header

    def _receive(self, kind: int, call: int, frame: bytes) -> None:
        if kind == Kind.ANSWER:
            status, response = OK, frame[_SIZE:]
        elif kind == Kind.STATUS:
            status, response = read_status(frame[_SIZE:]), None
        else:
            raise BadFrame(f"a frame has kind {kind}, which no server sends")
        end = self.open_calls.pop(call, None)
        if isinstance(end, ClientEnd):  # otherwise it has just been cancelled
            end.on_status(status, response)

    def lost(self) -> None:
        self.send = _dropped
        self.had_calls = bool(self.open_calls)
        open_calls, self.open_calls = self.open_calls, {}
        for end in open_calls.values():
            if isinstance(end, ClientEnd):
                end.on_status(GONE)


class ServerCalls(Calls):
    """The server's side. `begin` starts the handler of a call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.connection = connection_name("websocket")
        self._headers: dict[bytes, Opened] = {}

    @abstractmethod
    def begin(self, opened: Opened, end: ServerEnd, timeout_s: float | None) -> None: ...

    def _receive(self, kind: int, call: int, frame: bytes) -> None:
        if kind in (Kind.CALL, Kind.OPEN):
            self._open(call, frame, has_request=kind == Kind.CALL)
            return
        if kind not in (Kind.LAST, Kind.CANCEL):
            raise BadFrame(f"a frame has kind {kind}, which no client sends")
        end = self.open_calls.get(call)
        if not isinstance(end, ServerEnd):
            return  # it has just ended
        if kind == Kind.LAST:
            end.on_last_message()
        else:
            del self.open_calls[call]
            end.on_cancel()

    def _on_message(self, call: int, end: End, data: bytes) -> None:
        if end.owes_reading:
            raise BadFrame(f"call {call} sends more before what it has sent was read")
        end.on_message(data)

    def _open(self, call: int, frame: bytes, *, has_request: bool) -> None:
        if len(frame) < _OPEN.size:
            raise BadFrame(f"a frame that opens a call has {len(frame)} bytes; the shortest has {_OPEN.size}")
        _, _, left_ms, size = _OPEN.unpack_from(frame)
        start = _OPEN.size + size
        if len(frame) < start:
            raise BadFrame("the header of a call is cut")
        if size > HEADER_BYTES:
            raise BadFrame(f"the path and metadata of a call have {size} bytes; the limit is {HEADER_BYTES}")
        if call in self.open_calls:
            raise BadFrame(f"call {call} is open already")
        opened = self._opened(frame[_OPEN.size : start])
        end = ServerEnd(self.loop, frame[start:] if has_request else None)
        end.connect(RemoteClient(self, call))
        self.open_calls[call] = end
        self.begin(opened, end, None if left_ms == NO_DEADLINE else left_ms / 1_000)

    def _opened(self, header: bytes) -> Opened:
        opened = self._headers.get(header)
        if opened is None:
            try:
                opened = _header_decoder.decode(header)
            except msgspec.MsgspecError as error:
                raise BadFrame(f"the header of a call cannot be read: {error}") from None
            if len(self._headers) < _CACHED_HEADERS:
                self._headers[header] = opened
        return opened

    def lost(self) -> None:
        self.send = _dropped
        open_calls, self.open_calls = self.open_calls, {}
        for end in open_calls.values():
            if isinstance(end, ServerEnd):
                end.on_cancel()
