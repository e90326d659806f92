"""Which transport the suites use that start a server: each suite sees both, without running twice.

On SQLite calls go by WebSocket, on PostgreSQL by gRPC; with KAGZI_TEST_CROSSED set (`make transports`) it is the other
way round. The server decides: one that offers no WebSocket is reached by gRPC.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import grpc.aio

from kagzi.sdk.transport.calls import CallChannel
from kagzi.sdk.transport.websocket import PreferredChannel
from kagzi.wire.calls.call import ClientEnd, Metadata
from kagzi.wire.calls.frames import REQUEST_BYTES, RESPONSE_BYTES, ClientCalls
from kagzi.wire.calls.path import PATH
from kagzi.wire.calls.websocket import WebSocket, connect

CONNECT_S = 30.0
GRPC = "grpc"
WEBSOCKET = "websocket"


def transport_for(database: str) -> str:
    """`database`: its URL."""
    is_sqlite = not database.startswith("postgres")
    return WEBSOCKET if is_sqlite != bool(os.environ.get("KAGZI_TEST_CROSSED")) else GRPC


def server_environment(database: str) -> dict[str, str]:
    """For a process that serves the database."""
    return {} if transport_for(database) == WEBSOCKET else {"KAGZI_WEBSOCKET": "off"}


@asynccontextmanager
async def grpc_stub_channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(address) as channel:
        yield channel


@asynccontextmanager
async def preferred_channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    """As the SDK has it: by WebSocket. Fails if a call went by gRPC after all."""
    channel = PreferredChannel(address, grpc.aio.insecure_channel(address), ())
    try:
        yield cast("grpc.aio.Channel", channel)
        assert not channel._grpc_only, "calls went by gRPC"
    finally:
        await channel.close()


class PlainWebSocket:
    """A connection that is not opened again, to whatever listens at the port."""

    def __init__(self) -> None:
        self.calls = ClientCalls(asyncio.get_running_loop())
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.websocket = WebSocket(self.calls, RESPONSE_BYTES, lambda _, reason: self.lost.set_result(reason))
        self.channel = CallChannel(self._open, REQUEST_BYTES)

    async def open(self, port: int, listener_id: str) -> None:
        await connect(
            self.websocket, "127.0.0.1", port, PATH, listener_id=listener_id, handshake_s=CONNECT_S, context=None
        )

    def _open(self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None) -> ClientEnd:
        end = ClientEnd(asyncio.get_running_loop())
        self.calls.open(end, path, metadata, timeout_s, request)
        return end

    async def close(self) -> None:
        await self.channel.close()
        await self.websocket.close()
