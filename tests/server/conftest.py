"""A real server in this process, on each store, and stubs to talk to it.

`database_url`   a database with the schema and nothing else: SQLite file, then PostgreSQL
`empty_database_url`   the same without a schema
`start_server`   starts servers; they are stopped after the test
`server`         one of them, on `database_url`
`stubs`          to `server`: by WebSocket or gRPC, as the store has it (tests/support/transports.py)
`transport`      the three ways to a server; `serve` serves services of a test's own, each test on each way
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import msgspec
import pytest

from kagzi.core.limits import Settings
from kagzi.sdk.transport.calls import CallChannel
from kagzi.server.app import Server
from kagzi.server.calls import CallServer
from kagzi.server.config import ServerConfig
from kagzi.server.grpc.interceptor import Interceptor
from kagzi.server.grpc.listener import over_grpc
from kagzi.server.grpc.registration import handlers
from kagzi.server.in_process import InProcessListener
from kagzi.server.listen import ListenAddress
from kagzi.server.websocket import WebSocketListener
from tests.server.stubs import Stubs
from tests.support.migrated import copy_migrated_sqlite
from tests.support.transports import (
    GRPC,
    WEBSOCKET,
    PlainWebSocket,
    grpc_stub_channel,
    preferred_channel,
    transport_for,
)

IN_PROCESS = "in_process"
LISTENER_ID = "the listener of this test"
ANY_PORT = ListenAddress("127.0.0.1", 0)
QUICK = Settings(lease_ms=6_000, heartbeat_ms=500, reconnect_grace_ms=300, poll_interval_ms=500)

StartServer = Callable[..., Awaitable[Server]]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        copy_migrated_sqlite(tmp_path / "kagzi.db")
        return f"sqlite:///{tmp_path}/kagzi.db"
    return request.getfixturevalue("migrated_postgres_url")


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/kagzi.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def start_server() -> AsyncIterator[StartServer]:
    servers: list[Server] = []

    async def start(db: str = ":memory:", **changes: Any) -> Server:
        with_http = db != ":memory:" and transport_for(db) == WEBSOCKET
        config = ServerConfig(db=db, listen=ANY_PORT, http=ANY_PORT if with_http else None, settings=QUICK)
        server = Server(msgspec.structs.replace(config, **changes))
        await server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop(0)


@pytest.fixture
def lease_ms() -> int:
    """For tests that let one end."""
    return QUICK.lease_ms


@pytest.fixture
async def server(start_server: StartServer, database_url: str, lease_ms: int) -> Server:
    return await start_server(database_url, settings=msgspec.structs.replace(QUICK, lease_ms=lease_ms))


@pytest.fixture
async def stubs(server: Server, database_url: str) -> AsyncIterator[Stubs]:
    async with channel_to(server, transport_for(database_url)) as channel:
        yield Stubs(channel, server.grpc_address)


@pytest.fixture(params=[GRPC, WEBSOCKET, IN_PROCESS])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def channel_to(server: Server, transport: str) -> AsyncIterator[grpc.aio.Channel]:
    if transport != IN_PROCESS:
        way = preferred_channel if transport == WEBSOCKET else grpc_stub_channel
        async with way(server.grpc_address) as channel:
            yield channel
        return
    channel = CallChannel(server.open_call)
    yield cast("grpc.aio.Channel", channel)
    await channel.close()


@pytest.fixture
async def memory_stubs(start_server: StartServer, transport: str) -> AsyncIterator[Stubs]:
    """For what does not depend on the store. Over each transport: what it does must not depend on that, either."""
    server = await start_server(http=ANY_PORT if transport == WEBSOCKET else None)
    async with channel_to(server, transport) as channel:
        yield Stubs(channel, server.grpc_address)


def waited_for(server: Server, run_id: str, times: int) -> bool:
    """Whether so many calls wait for this run to end."""
    assert server._engine is not None
    waiting = server._engine._waits._waiting
    return sum(len(waits) for run, waits in waiting.items() if run.run_id == run_id) == times


Serve = Callable[[dict[str, object], Interceptor, Callable[[Stubs], Awaitable[None]]], Awaitable[None]]


@pytest.fixture
def serve(transport: str) -> Serve:
    return {GRPC: _serve_grpc, WEBSOCKET: _serve_websocket, IN_PROCESS: _serve_in_process}[transport]


async def _serve_grpc(
    services: dict[str, object], interceptor: Interceptor, use: Callable[[Stubs], Awaitable[None]]
) -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(over_grpc(handlers(interceptor, services)))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await use(Stubs(channel))
    finally:
        await server.stop(0)


async def _serve_in_process(
    services: dict[str, object], interceptor: Interceptor, use: Callable[[Stubs], Awaitable[None]]
) -> None:
    calls = CallServer(handlers(interceptor, services))
    calls.start()
    channel = CallChannel(InProcessListener(calls).open_call)
    try:
        await use(Stubs(cast("grpc.aio.Channel", channel)))
    finally:
        await channel.close()
        await calls.stop(0)


@asynccontextmanager
async def websocket_server(calls: CallServer, max_connections: int = 100) -> AsyncIterator[int]:
    """Its port. Those who know LISTENER_ID may connect."""
    listener = WebSocketListener(calls, listener_id=LISTENER_ID, max_connections=max_connections)
    calls.start()
    server = await asyncio.get_running_loop().create_server(listener.protocol, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await calls.stop(0)
        await listener.stop()


async def _serve_websocket(
    services: dict[str, object], interceptor: Interceptor, use: Callable[[Stubs], Awaitable[None]]
) -> None:
    async with websocket_server(CallServer(handlers(interceptor, services))) as port:
        client = PlainWebSocket()
        await client.open(port, LISTENER_ID)
        try:
            await use(Stubs(cast("grpc.aio.Channel", client.channel)))
        finally:
            await client.close()
