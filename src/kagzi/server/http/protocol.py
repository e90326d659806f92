"""Limits of HTTP connections: their number, and the time to send a request and to read a response."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from ...core.limits import KIB

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

REQUEST_S = 10.0
"""A connection that does not send a whole request, or another one, within one to two times this long is closed."""
UPLOAD_BYTES = 64 * KIB
"""A request that sends at least this much per REQUEST_S may continue: imports may be long, and connections slow."""
ANSWER_CHECKS = 6
"""A connection whose client has not read the response within this many checks is closed too."""


class _WithoutWarnings(logging.LoggerAdapter[logging.Logger]):
    """Does not warn of what strangers send: uvicorn logs a line for each request that it cannot read."""

    @property
    def level(self) -> int:
        return self.logger.level

    def warning(self, msg: object, *args: object, **_: Any) -> None:
        self.debug(msg, *args)


_LOGGER = _WithoutWarnings(logging.getLogger("uvicorn.error"))


class TimedProtocol(H11Protocol):
    """Adds timeouts: uvicorn waits forever for the rest of a request, and for a client to read its response."""

    by_age: "dict[TimedProtocol, None]"  # all connections, the oldest first

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)
        super().connection_made(stream)
        self.by_age[self] = None
        self.began_s = self.loop.time()
        self.logger = cast("logging.Logger", _LOGGER)
        self._checks = 0
        self._received_bytes = 0
        self._seen: RequestResponseCycle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._check_later()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being served: none has arrived as a whole since the last one."""
        cycle = cast("RequestResponseCycle | None", cast("Any", self).cycle)
        return cycle is None or cycle.response_complete

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.by_age.pop(self, None)
        if self._check_timer is not None:
            self._check_timer.cancel()
        super().connection_lost(exc)

    def _check_later(self) -> None:
        self._check_timer = self.loop.call_later(REQUEST_S, self.check)

    def check(self) -> None:
        cycle = cast("RequestResponseCycle | None", cast("Any", self).cycle)
        uploads = cycle is not None and not cycle.response_started and self._received_bytes >= UPLOAD_BYTES
        self._received_bytes = 0
        # Another request, one that is still arriving, or a stream in progress.
        if cycle is not self._seen or uploads or _all_taken(cycle, self.transport):
            self._seen, self._checks = cycle, 0
        elif cycle is None or cycle.response_complete or self._checks >= ANSWER_CHECKS:
            self.transport.abort()
            return
        self._checks += 1
        self._check_later()


def _all_taken(cycle: "RequestResponseCycle | None", transport: asyncio.Transport) -> bool:
    """Whether the client has read everything so far of a response in progress."""
    begun = cycle is not None and cycle.response_started and not cycle.response_complete
    return begun and transport.get_write_buffer_size() == 0


def listed() -> type[TimedProtocol]:
    """The protocol of one listener, with a list of its connections."""
    return type("ListedProtocol", (TimedProtocol,), {"by_age": {}})
