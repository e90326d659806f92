"""A real server in this process, on each store, and stubs to talk to it.

`database_url`   an empty database: SQLite file, then PostgreSQL
`start_server`   starts servers; they are stopped after the test
`server`         one of them, on `database_url`
`transport`      the two ways to a server; `serve` serves services of a test's own, each test on each way
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import msgspec
import pytest

from kagzi.core.limits import Settings
from kagzi.sdk.transport.in_process import InProcessChannel
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.grpc.interceptor import Interceptor
from kagzi.server.grpc.registration import handlers
from kagzi.server.in_process import InProcessListener
from kagzi.server.listen import ListenAddress
from tests.server.stubs import Stubs

ANY_PORT = ListenAddress("127.0.0.1", 0)
QUICK = Settings(lease_ms=2_000, heartbeat_ms=500, reconnect_grace_ms=300, poll_interval_ms=500)

StartServer = Callable[..., Awaitable[Server]]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/kagzi.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def start_server() -> AsyncIterator[StartServer]:
    servers: list[Server] = []

    async def start(db: str = ":memory:", **changes: Any) -> Server:
        config = ServerConfig(db=db, listen=ANY_PORT, http=None, settings=QUICK)
        server = Server(msgspec.structs.replace(config, **changes))
        await server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop(0)


@pytest.fixture
async def server(start_server: StartServer, database_url: str) -> Server:
    return await start_server(database_url)


@pytest.fixture
async def stubs(server: Server) -> AsyncIterator[Stubs]:
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        yield Stubs(channel, server.grpc_address)


@pytest.fixture(params=["grpc", "in_process"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def channel_to(server: Server, transport: str) -> AsyncIterator[grpc.aio.Channel]:
    if transport == "grpc":
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            yield channel
        return
    channel = InProcessChannel(server.open_call)
    yield cast("grpc.aio.Channel", channel)
    await channel.close()


@pytest.fixture
async def memory_stubs(start_server: StartServer, transport: str) -> AsyncIterator[Stubs]:
    """For what does not depend on the store. Over each transport: what it does must not depend on that, either."""
    server = await start_server()
    async with channel_to(server, transport) as channel:
        yield Stubs(channel, server.grpc_address)


Serve = Callable[[dict[str, object], Interceptor, Callable[[Stubs], Awaitable[None]]], Awaitable[None]]


@pytest.fixture
def serve(transport: str) -> Serve:
    return _serve_grpc if transport == "grpc" else _serve_in_process


async def _serve_grpc(
    services: dict[str, object], interceptor: Interceptor, use: Callable[[Stubs], Awaitable[None]]
) -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(tuple(handlers(interceptor, services)))
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
    listener = InProcessListener(handlers(interceptor, services))
    listener.start()
    channel = InProcessChannel(listener.open_call)
    try:
        await use(Stubs(cast("grpc.aio.Channel", channel)))
    finally:
        await channel.close()
        await listener.stop(0)
