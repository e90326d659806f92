"""The gRPC listener: options, binding, stopping."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from ...core import limits
from ..listen import ListenAddress, bind, cannot_listen
from ..startup import CannotStart

if TYPE_CHECKING:
    from ..tls import ServerTls

# Above the hard limit, so that a message a little over it is answered by us, with the limit named.
RECEIVE_BYTES = limits.MESSAGE_HARD_BYTES + limits.MIB

# Calls that have arrived and that Python has not looked at yet. Beyond 1,000 of them gRPC would cancel calls at random,
# without a word of ours. This is more than the interceptor admits at once, so that it is the interceptor that refuses,
# with its details.
PENDING_CALLS = 65_536
HANDSHAKE_MS = 10_000  # a connection that does not begin to speak HTTP/2 is cut off
CONNECTION_CALLS = 49_152  # open at once on one connection; a client keeps the rest waiting on its own side

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.server.max_pending_requests", PENDING_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", PENDING_CALLS),
    ("grpc.max_concurrent_streams", CONNECTION_CALLS),
    ("grpc.max_receive_message_length", RECEIVE_BYTES),
    (
        "grpc.max_send_message_length",
        -1,
    ),  # a run with its input, context and output may be larger than what is received
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),  # a client that pings much is not cut off
    ("grpc.max_connection_idle_ms", 300_000),  # without a call; clients connect again by themselves
]


class GrpcListener:
    """`reuse_port`: the processes of one server share a port. Otherwise two servers on one port would each get some of
    the calls."""

    def __init__(
        self,
        handlers: Sequence[grpc.GenericRpcHandler],
        *,
        max_connections: int,
        reuse_port: bool = False,
        tls: "ServerTls | None" = None,
    ) -> None:
        options = [
            *_OPTIONS,
            ("grpc.so_reuseport", int(reuse_port)),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.max_allowed_incoming_connections", max_connections),
        ]
        self._credentials = None if tls is None else tls.credentials()
        self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers(tuple(handlers))

    async def start(self, address: ListenAddress) -> ListenAddress:
        """Where it listens: the address, with the port that was chosen for port 0. Raises CannotStart."""
        bound = self._bind(address)
        await self._server.start()
        return bound

    def _bind(self, address: ListenAddress) -> ListenAddress:
        if address.unix_path:
            Path(address.unix_path).unlink(missing_ok=True)
        elif address.port and not address.shared:
            bind(address, field="listen").close()  # finds out, in words, whether the port is free
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(str(address))
            else:
                port = self._server.add_secure_port(str(address), self._credentials)
        except RuntimeError as error:
            raise cannot_listen(address, OSError(str(error)), field="listen") from error
        if address.unix_path:
            return address
        if port == 0:
            raise CannotStart(f"cannot listen on {address}. Choose another address with --listen HOST:PORT.")
        return ListenAddress(address.host, port)

    async def stop(self, grace_s: float) -> None:
        """New calls are refused at once; those in flight get `grace_s` to finish."""
        await self._server.stop(grace_s)
