"""A real server in this process, on each store, and stubs to talk to it.

`database_url`   an empty database: SQLite file, then PostgreSQL
`start_server`   starts servers; they are stopped after the test
`server`         one of them, on `database_url`
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest

from kagzi.core.limits import Settings
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from tests.server.stubs import Stubs

ANY_PORT = ListenAddress("127.0.0.1", 0)
QUICK = Settings(lease_ms=2_000, heartbeat_ms=500, reconnect_grace_ms=300, look_interval_ms=500)

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


@pytest.fixture
async def memory_stubs(start_server: StartServer) -> AsyncIterator[Stubs]:
    """For what does not depend on the store."""
    server = await start_server()
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        yield Stubs(channel, server.grpc_address)
