"""Health probes of a worker process, for example for Kubernetes: /healthz responds while the event loop runs, /readyz
while the worker is connected and takes work. A minimal HTTP server, so that workers need not load a web server."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from ...server.listen import ListenAddress, bind

REQUEST_S = 5.0
REQUEST_BYTES = 8_192
CONNECTIONS = 64

Problem = Callable[[], str | None]
"""Why no work is taken; None: no problem."""


@asynccontextmanager
async def health_probes(address: ListenAddress, problem: Problem) -> AsyncGenerator[ListenAddress]:
    """Serves probes at `address` inside the block; yields the address. Raises CannotStart if it is in use."""
    probes = _Probes(problem)
    bound = bind(address, field="health")
    server = await asyncio.start_server(probes.answer, sock=bound, limit=REQUEST_BYTES)
    try:
        yield ListenAddress(address.host, bound.getsockname()[1])
    finally:
        server.close()
        probes.close()


class _Probes:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._open: set[asyncio.StreamWriter] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handles one request, within a time limit, and closes the connection."""
        if len(self._open) >= CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head.partition(b"\r\n")[0]))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the probe will be repeated
        finally:
            self._open.discard(writer)
            writer.close()

    def close(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    def _response(self, line: bytes) -> bytes:
        method, path, *_ = (*line.split(b" "), b"", b"")
        status, text = self._answer(path.partition(b"?")[0])
        if method not in (b"GET", b"HEAD"):
            status, text = "405 Method Not Allowed", "use GET"
        body = f"{text}\n".encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (b"" if method == b"HEAD" else body)

    def _answer(self, path: bytes) -> tuple[str, str]:
        if path == b"/healthz":
            return "200 OK", "ok"
        if path == b"/readyz":
            problem = self._problem()
            return ("200 OK", "ready") if problem is None else ("503 Service Unavailable", problem)
        return "404 Not Found", "there are /healthz and /readyz"
