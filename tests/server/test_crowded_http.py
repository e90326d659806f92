"""Whoever crowds the HTTP port keeps no probe out, and no worker: a server that lives does not look as if it hung."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from kagzi.server.descriptors import connection_limits
from kagzi.server.http.listener import HttpListener
from kagzi.server.listen import ListenAddress
from tests.server.stubs import TIMEOUT_S, Stubs
from tests.server.test_descriptors import LimitedServer, limited_server
from tests.support.polling import until
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


async def test_connections_that_wait_for_the_code_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is loaded with the first request, and a probe may come meanwhile."""

    async def never(_: HttpListener) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(HttpListener, "_load_web", never)
    listener = HttpListener(ListenAddress("127.0.0.1", 0), max_connections=4)
    await listener.start(cast("Any", None))
    streams: list[Stream] = []
    for number in range(5):
        streams.append(await asyncio.open_connection("127.0.0.1", listener.address.port))
        streams[-1][1].write(REQUEST)
        waiting = min(number + 1, 4)
        await until(lambda waiting=waiting: sum(not each.is_silent for each in listener.undecided) == waiting)
    with suppress(ConnectionResetError):
        async with asyncio.timeout(TIMEOUT_S):
            assert await streams[0][0].read() == b""
    assert not any(reader.at_eof() for reader, _ in streams[1:])
    for _, writer in streams:
        writer.close()
    assert listener._web is not None
    listener._web.cancel()
    await listener.stop()
