"""A connection to the server of the test environment: open from the start, and never interrupted by itself."""

from collections.abc import Callable

from ...core.providers import Clock
from ...sdk.transport.address import Address
from ...sdk.transport.calls import CallChannel
from ...sdk.transport.connection import Connection
from ...sdk.transport.link import Link
from ...sdk.transport.payload_codec import Codec, message_codec
from ...wire.calls.call import OpenCall
from .clock import SeededRng

_ADDRESS = Address(text="the test environment", embedded="test")


class InProcessConnection(Connection):
    """`find_server` returns the server; it is called on the first call."""

    def __init__(self, find_server: Callable[[], OpenCall], clock: Clock, codec: Codec | None) -> None:
        super().__init__(
            _ADDRESS,
            tls=None,
            api_key=None,
            clock=clock,
            rng=SeededRng(),
            websocket=False,
            codec=message_codec(codec),
        )
        self._find_server = find_server
        self._is_closed = False

    @property
    def link(self) -> Link:
        if self._link is None and not self._is_closed:
            self._link = Link("test", CallChannel(self._find_server()), (), self.codec)
        return super().link

    async def open(self, *, timeout_s: float | None = None) -> None:
        """Do nothing: there is no server to find."""

    async def move(self, failed: Link) -> None:
        """Do nothing: there is only one server."""

    async def close(self) -> None:
        self._is_closed = True
        await super().close()
