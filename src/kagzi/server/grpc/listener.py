"""The gRPC listener: options, binding, stopping."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import grpc

from ...core import limits
from ...wire.status import RpcStatus
from ..listen import ListenAddress, bind, cannot_listen
from ..startup import CannotStart

if TYPE_CHECKING:
    from ..tls import ServerTls

# Above the hard limit, so that Kagzi refuses a message slightly over it, with an error that names the limit.
RECEIVE_BYTES = limits.MESSAGE_HARD_BYTES + limits.MIB

# Calls that have arrived and that Python has not seen yet. By default gRPC cancels calls at random beyond 1,000,
# without an explanation. This is more than the interceptor admits at once, so that the interceptor refuses first, with
# its details.
PENDING_CALLS = 65_536
HANDSHAKE_MS = 10_000  # a connection that has not begun to speak HTTP/2 by then is closed
CONNECTION_CALLS = 49_152  # open at once on one connection; the client queues the rest

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.server.max_pending_requests", PENDING_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", PENDING_CALLS),
    ("grpc.max_concurrent_streams", CONNECTION_CALLS),
    ("grpc.max_receive_message_length", RECEIVE_BYTES),
    (
        "grpc.max_send_message_length",
        -1,
    ),  # a run with its input, context and output may be larger than the receive limit
    ("grpc.http2.bdp_probe", 0),  # with it a worker may send so much at once that its pings stand behind it too long
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),  # do not disconnect clients that ping often
    ("grpc.max_connection_idle_ms", 300_000),  # without a call; clients reconnect by themselves
]


class GrpcListener:
    """`reuse_port`: the processes of one server share a port. Otherwise off, or two servers on one port would each get
    some of the calls. `keys_first`: see `over_grpc`."""

    def __init__(
        self,
        handlers: Sequence[grpc.GenericRpcHandler],
        *,
        max_connections: int,
        reuse_port: bool = False,
        keys_first: bool = False,
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
        self._server.add_generic_rpc_handlers(over_grpc(handlers, keys_first=keys_first))

    async def start(self, address: ListenAddress) -> ListenAddress:
        """Returns the address it listens on, with the actual port if port 0 was requested. Raises CannotStart."""
        bound = self._bind(address)
        await self._server.start()
        return bound

    def _bind(self, address: ListenAddress) -> ListenAddress:
        if address.unix_path:
            Path(address.unix_path).unlink(missing_ok=True)
        elif address.port and not address.shared:
            bind(address, field="listen").close()  # raises a clear error if the port is in use
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
        """Refuses new calls at once; calls in flight get `grace_s` to finish."""
        await self._server.stop(grace_s)


def over_grpc(
    handlers: Sequence[grpc.GenericRpcHandler], *, keys_first: bool = False
) -> tuple[grpc.GenericRpcHandler, ...]:
    """Handlers as gRPC calls them. `keys_first`: calls with one request are registered as streams, too. Callers see no
    difference, but gRPC would read a whole request before its handler can ask for a key."""
    return tuple(_OverGrpc(handler, keys_first=keys_first) for handler in handlers)


class _OverGrpc(grpc.GenericRpcHandler):
    def __init__(self, handlers: grpc.GenericRpcHandler, *, keys_first: bool) -> None:
        self._handlers = handlers
        self._keys_first = keys_first
        self._made: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        path = handler_call_details.method
        made = self._made.get(path)
        if made is None:
            handler: Any = self._handlers.service(handler_call_details)
            if handler is None:
                return None
            made = self._made[path] = self._around(handler)
        return made

    def _around(self, handler: Any) -> "grpc.RpcMethodHandler[Any, Any]":
        if handler.unary_unary is not None and not self._keys_first:
            return grpc.unary_unary_rpc_method_handler(_unary(handler.unary_unary))
        return grpc.stream_stream_rpc_method_handler(_stream(handler.unary_unary or handler.stream_stream))


def _unary(act: Any) -> Any:
    async def answer(data: bytes, context: Any) -> bytes:
        outcome = await act(data, context)
        if not isinstance(outcome, RpcStatus):
            return cast("bytes", outcome)
        # gRPC keeps the exception that `abort` raises on its context. Its traceback holds this frame, which must not
        # hold the context, or both and the request would be kept until the garbage is collected.
        refused = context.abort(outcome.code, outcome.details, outcome.metadata)
        del data, context
        await refused
        raise AssertionError("unreachable: abort raises")

    return answer


def _stream(act: Any) -> Any:
    async def answer(_: object, context: Any) -> None:
        outcome = await act(None, context)
        if isinstance(outcome, RpcStatus):
            context.set_code(outcome.code)
            context.set_details(outcome.details)
            context.set_trailing_metadata(outcome.metadata)
        elif outcome is not None:  # the only response
            await context.write(outcome)

    return answer
