"""Whoever crowds the HTTP port keeps no probe out, and no worker: a server that lives does not look as if it hung."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from kagzi.server.descriptors import connection_limits
from tests.server.stubs import Stubs
from tests.server.test_descriptors import LimitedServer, limited_server
from tests.support.transports import preferred_channel

DESCRIPTORS = 512
MOST = connection_limits(DESCRIPTORS).http
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
EVENTS = b"GET /api/v1/runs/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
PROBES = 20

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[LimitedServer]:
    async with limited_server(tmp_path, soft=DESCRIPTORS, hard=DESCRIPTORS) as server:
        yield server


@asynccontextmanager
async def crowd(server: LimitedServer, words: bytes, *, answered: bool) -> AsyncIterator[list[bytes]]:
    """Twice as many connections as there may be. The first lines of what they got."""
    host, port = server.http.rsplit(":", 1)
    async with AsyncExitStack() as stack:
        lines: list[bytes] = []
        for _ in range(2 * MOST):
            reader, writer = await asyncio.open_connection(host, int(port))
            stack.callback(writer.close)
            writer.write(words)
            if answered:
                lines.append(await reader.readline())
        yield lines


async def require_service(server: LimitedServer) -> None:
    """New probes are answered, each on a connection of its own, and calls go by WebSocket."""
    for _ in range(PROBES):
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"http://{server.http}/readyz")).status_code == 200
    async with preferred_channel(server.grpc) as channel:
        await Stubs(channel).start()


async def test_connections_that_say_nothing(server: LimitedServer) -> None:
    async with crowd(server, b"", answered=False):
        await require_service(server)


async def test_connections_that_send_half_a_request(server: LimitedServer) -> None:
    async with crowd(server, b"GET / HTTP/1.1\r\nHost: loc", answered=False):
        await require_service(server)


async def test_connections_that_wait_for_another_request(server: LimitedServer) -> None:
    async with crowd(server, REQUEST, answered=True) as lines:
        assert set(lines) == {b"HTTP/1.1 200 OK\r\n"}
        await require_service(server)


async def test_streams_leave_connections_to_others(server: LimitedServer) -> None:
    async with crowd(server, EVENTS, answered=True) as lines:
        assert lines.count(b"HTTP/1.1 200 OK\r\n") == MOST * 3 // 4
        assert set(lines[MOST * 3 // 4 :]) == {b"HTTP/1.1 429 Too Many Requests\r\n"}
        await require_service(server)
        async with httpx.AsyncClient() as client:
            refusal = await client.get(f"http://{server.http}/api/v1/runs/events")
        assert refusal.json()["metadata"] == {"limit": "http_lasting", "maximum": str(MOST * 3 // 4)}
        assert refusal.headers["retry-after"] == "5"
