"""The channel interface that the SDK needs, and its implementation over gRPC. Others are in `calls` and `websocket`."""

from collections.abc import Callable
from typing import Any, Protocol

import grpc
import grpc.aio

from ...core import limits
from .address import Address


class Channel(Protocol):
    """The part of gRPC's channel that the generated stubs and the session use.

    A method is created from a path, an encoder and a decoder; calling it, with `timeout` and `metadata`, begins a call.
    A call can be cancelled, also by cancelling the task that awaits it, which reaches the server's handler. A failed
    call raises `grpc.aio.AioRpcError` with a status and the details from the server; a server that is gone is
    UNAVAILABLE.
    """

    @property
    def unary_unary(self) -> Callable[..., Any]: ...

    @property
    def unary_stream(self) -> Callable[..., Any]: ...

    @property
    def stream_unary(self) -> Callable[..., Any]: ...

    @property
    def stream_stream(self) -> Callable[..., Any]: ...

    async def close(self) -> None:
        """Cancels open calls."""
        ...


_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_receive_message_length", limits.MESSAGE_READ_BYTES),
    ("grpc.max_send_message_length", limits.MESSAGE_READ_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # how long one connection attempt may take
    ("grpc.keepalive_time_ms", 5_000),  # with the next: leaves a silent server before a lease ends
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.ping_timeout_ms", 4_000),  # as keepalive_timeout_ms, which alone does not end a silent connection
    ("grpc.http2.bdp_probe", 0),  # its pings stand behind what is sent, and keep those of keepalive from being sent
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.use_local_subchannel_pool", 1),  # a new channel starts without the backoff of an older one
)


def grpc_channel(target: str, credentials: grpc.ChannelCredentials | None, address: Address) -> Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(target, _options(address))
    return grpc.aio.secure_channel(target, credentials, _options(address))


def blocking_channel(target: str, credentials: grpc.ChannelCredentials | None, address: Address) -> grpc.Channel:
    if credentials is None:
        return grpc.insecure_channel(target, _options(address))
    return grpc.secure_channel(target, credentials, _options(address))


def _options(address: Address) -> list[tuple[str, Any]]:
    """A proxy from the environment is used for other machines only."""
    return list(_OPTIONS) if address.leaves_machine else [*_OPTIONS, ("grpc.enable_http_proxy", 0)]
