"""A slow line to a server: a proxy for TCP that lets so many bytes a second through, in each direction, of all
connections together. What has been sent and not let through waits where a modem would keep it: in few bytes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

BUFFER_BYTES = 128 * 1024  # of each socket: the system doubles it
SLICES_PER_S = 50
SEGMENT_BYTES = 1_460  # as on a real line: of one to this machine, 64 KB
HOST = "127.0.0.2"
"""Where a slow line begins. Its ports are those of the server behind it, which names its WebSocket's port itself."""


class _Direction:
    """Connections take turns: each gets a slice of a second's bytes."""

    def __init__(self, bytes_per_s: float) -> None:
        self._slice_bytes = max(int(bytes_per_s / SLICES_PER_S), 1)
        self._bytes_per_s = bytes_per_s
        self._turn = asyncio.Lock()
        self.passed = 0

    async def carry(self, source: socket.socket, target: socket.socket, line: "SlowLine") -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(source, self._slice_bytes):
            async with self._turn:
                await asyncio.sleep(len(data) / self._bytes_per_s)
            await line.connected.wait()
            await loop.sock_sendall(target, data)
            self.passed += len(data)
        target.shutdown(socket.SHUT_WR)


class SlowLine:
    """`stall` and `mend`: while it stalls nothing moves, and no connection ends."""

    def __init__(self, up_bytes_per_s: float, down_bytes_per_s: float) -> None:
        self.up = _Direction(up_bytes_per_s)
        self.down = _Direction(down_bytes_per_s)
        self.connections = 0
        self.connected = asyncio.Event()
        self.connected.set()
        self._carrying: set[asyncio.Task[None]] = set()
        self._serving: set[asyncio.Task[None]] = set()

    def stall(self) -> None:
        self.connected.clear()

    def mend(self) -> None:
        self.connected.set()

    def break_all(self) -> None:
        """End the connections that there are."""
        for serving in tuple(self._serving):
            serving.cancel()

    async def listen(self, port: int) -> None:
        """Accept connections to this port of HOST, for the same port of 127.0.0.1."""
        listener = _socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
        _ = self._begin(self._accept(listener, port))

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        return task

    async def _accept(self, listener: socket.socket, port: int) -> None:
        with listener:
            while True:
                near, _ = await asyncio.get_running_loop().sock_accept(listener)
                near.setblocking(False)
                self.connections += 1
                serving = self._begin(self._serve(near, port))
                self._serving.add(serving)
                serving.add_done_callback(self._serving.discard)

    async def _serve(self, near: socket.socket, port: int) -> None:
        with near, _socket() as far, suppress(OSError):
            await asyncio.get_running_loop().sock_connect(far, ("127.0.0.1", port))
            ways = {
                asyncio.ensure_future(self.up.carry(near, far, self)),
                asyncio.ensure_future(self.down.carry(far, near, self)),
            }
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.wait(ways)

    async def close(self) -> None:
        carrying = tuple(self._carrying)
        for task in carrying:
            task.cancel()
        if carrying:
            await asyncio.wait(carrying)


def _socket() -> socket.socket:
    made = socket.socket()
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT_BYTES)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    return made


@asynccontextmanager
async def slow_line(*ports: int, up_bytes_per_s: float = 1e9, down_bytes_per_s: float = 1e9) -> AsyncIterator[SlowLine]:
    """A line to these ports of 127.0.0.1, from the same ports of HOST."""
    line = SlowLine(up_bytes_per_s, down_bytes_per_s)
    try:
        for port in ports:
            await line.listen(port)
        yield line
    finally:
        await line.close()
