"""HTTP connections that end: so many at once, a request within a time, an answer that is read within a time."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from ...core.limits import KIB

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

REQUEST_S = 10.0
"""Within this, or at most twice this, a connection has sent a whole request, or another one; otherwise it is cut
off."""
UPLOAD_BYTES = 64 * KIB
"""A request of which so much comes within that goes on: an import may be long, and the line slow."""
ANSWER_CHECKS = 6
"""An answer that is not taken within so many of these ends its connection, too."""


class TimedProtocol(H11Protocol):
    """uvicorn waits for ever for the rest of a request, and for a client to read its answer."""

    max_connections = 1 << 20

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)
        super().connection_made(stream)
        self._checks = 0
        self._received_bytes = 0
        self._seen: RequestResponseCycle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        if len(self.connections) > self.max_connections:
            stream.abort()
        else:
            self._check_later()

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
        super().connection_lost(exc)

    def _check_later(self) -> None:
        self._check_timer = self.loop.call_later(REQUEST_S, self.check)

    def check(self) -> None:
        cycle = cast("RequestResponseCycle | None", cast("Any", self).cycle)
        uploads = cycle is not None and not cycle.response_started and self._received_bytes >= UPLOAD_BYTES
        self._received_bytes = 0
        # Another request, one that is still coming, or a stream that goes on.
        if cycle is not self._seen or uploads or _all_taken(cycle, self.transport):
            self._seen, self._checks = cycle, 0
        elif cycle is None or cycle.response_complete or self._checks >= ANSWER_CHECKS:
            self.transport.abort()
            return
        self._checks += 1
        self._check_later()


def _all_taken(cycle: "RequestResponseCycle | None", transport: asyncio.Transport) -> bool:
    """Whether the reader of an answer that goes on has taken all that there is of it."""
    begun = cycle is not None and cycle.response_started and not cycle.response_complete
    return begun and transport.get_write_buffer_size() == 0


def limited(max_connections: int) -> type[TimedProtocol]:
    return type("LimitedProtocol", (TimedProtocol,), {"max_connections": max_connections})
