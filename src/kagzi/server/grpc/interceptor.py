"""The interceptor of every call: admits calls and turns whatever they raise into a status.

No exception reaches a client as it is: Kagzi's own errors are sent with their details; any other becomes an incident,
whose number is sent and whose traceback is logged. A handler returns the status of a refused call instead of raising
it: an exception would keep the frames of the call, and so its request, for as long as something refers to it.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import grpc
from google.protobuf.message import DecodeError, Message

from ...core import limits
from ...core.access import EVERY_NAMESPACE, Caller
from ...core.errors import (
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    ServerUnavailable,
    limit_reached,
)
from ...core.outages import database_down
from ...core.providers import Ids
from ...core.raised.exceptions import drop_frames
from ...core.records import DEFAULT_NAMESPACE
from ...v1.worker_pb2 import SessionRequest
from ...wire.status import RpcStatus, to_status
from ..access.access import Access
from ..access.requirement import Requirement
from ..access.scopes import NEEDS
from .answer_budget import Answers
from .budgets import Budget, Budgets, FirstMessages, Opened, namespace_of
from .connections import PEER, Connections
from .incidents import Incidents

PROOF_HEADER = "kagzi-secret"
_NAMESPACE_SERVICE = "/kagzi.v1.NamespaceService/"
_WORKER_SERVICE = "/kagzi.v1.WorkerService/"
RETRY_HINT = "Try again."
MARGIN_S = 2.0
"""At most this much of a caller's deadline is reserved for sending the error."""
POLL_MARGIN_S = 0.25
"""The same for long polls: less than they reserve themselves to return an empty response (`deadlines.MARGIN_MS`)."""
_MARGIN = 0.1  # fraction of a short deadline
_STOPPING = f"the server is stopping. {RETRY_HINT}"

Request = TypeVar("Request", bound=Message)
Admit: TypeAlias = Callable[[str], Awaitable[None]]
"""Raises NotFound for a namespace that is being deleted."""
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


UnaryMethod: TypeAlias = Callable[..., Awaitable[Message]]
"""Called with the request; a long poll also gets the seconds until the caller's deadline. The namespace of the request
is set: an empty one has been replaced with that of the key, of the connection, or the default."""


class StreamMethod(Protocol):
    """Reads requests from the context and writes responses to it, as bytes."""

    def __call__(self, context: Context, /) -> Awaitable[None]: ...


class Interceptor:
    """Admits calls until `close`; later ones are refused with UNAVAILABLE, and clients retry them on another server or
    later."""

    def __init__(
        self,
        *,
        ids: Ids,
        secret: str = "",
        admit: Admit | None = None,
        store_problem: Callable[[], str] = str,
        access: Access | None = None,
        incidents: Incidents | None = None,
    ) -> None:
        self._access = access
        self._store_problem = store_problem
        self._incidents = incidents or Incidents(ids)
        self._secret = secret
        self._admit_namespace = admit
        self._open = True
        self.budgets = Budgets()
        self.connections = Connections()
        self._first_messages = FirstMessages(limits.SILENT_STREAMS)
        self.answers = Answers(limits.ANSWERS_BYTES, limits.ANSWERS_NAMESPACE_BYTES, limits.ANSWERS_KEPT_BYTES)
        self.exports = Answers(limits.EXPORTS_BYTES, limits.EXPORTS_NAMESPACE_BYTES)

    def close(self) -> None:
        self._open = False
        self._first_messages.close(lambda: ServerUnavailable(_STOPPING))

    def unary(
        self, name: str, method: UnaryMethod, request_type: type[Message], budget: Budget
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """The handler of a call with one request. Decodes the bytes here, so that an invalid message is refused like
        any other error. It may be called without the bytes: then it reads them once the caller is known."""

        within = _is_within_a_namespace(name, request_type)
        polls = budget is self.budgets.polls
        requirement = self._requirement(name)
        of_workers = name.startswith(_WORKER_SERVICE)

        async def handle(data: object, context: Context) -> bytes | RpcStatus:
            try:
                self._admit(context)
                caller = None if requirement is None else await requirement.enter(context.invocation_metadata())
                if data is None:
                    async with self._in_time(context, MARGIN_S):
                        data = await context.read()
                request: Any = read_message(data, request_type)
                if within and not request.namespace_id:
                    request.namespace_id = self._left_out(request, context, caller)
                if of_workers:
                    PEER.set(context.peer)
                namespace = namespace_of(request)
                if requirement is not None and caller is not None:
                    requirement.allow(caller, namespace)
                with budget.use(namespace):
                    async with self._in_time(context, POLL_MARGIN_S if polls else MARGIN_S):
                        if within:
                            await self._enter_namespace(request)
                        if not polls:
                            response = await method(request)
                        else:
                            async with _while_good(requirement, caller):
                                response = await method(request, context.time_remaining())
                return response.SerializeToString()
            except Exception as error:  # noqa: BLE001  every error becomes a status
                return self._refuse(name, error)

        return grpc.unary_unary_rpc_method_handler(_as_handler(handle))

    def read(
        self, name: str, method: UnaryMethod, request_type: type[Message], budget: Budget
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """The handler of a call with one request and one response that may be large. It holds a reservation for the
        response until that has been sent. It is registered as a stream, since only streams know when data was sent;
        callers see no difference. A long poll reserves when its wait is over."""

        within = _is_within_a_namespace(name, request_type)
        polls = budget is self.budgets.polls

        async def answer(context: Context) -> None:
            async with self._in_time(context, POLL_MARGIN_S if polls else MARGIN_S):
                request = read_message(await context.read(), request_type)
                if within:
                    await self._enter_namespace(request)
                await respond(request, namespace_of(request), context)

        async def respond(request: Message, namespace: str, context: Context) -> None:
            if polls:
                polled = await method(request, context.time_remaining())
                async with self.answers.reserve(namespace, polled.ByteSize()):
                    await context.write(polled.SerializeToString())
                return
            async with self.answers.reserve(namespace) as reservation:
                response = await method(request)
                reservation.use(response.ByteSize())
                await context.write(response.SerializeToString())

        return self.stream(name, answer, request_type, budget)

    def stream(
        self, name: str, method: StreamMethod, request_type: type[Message], budget: Budget
    ) -> "grpc.RpcMethodHandler[bytes, bytes]":
        """The handler of a call with many requests or many responses. Its first message names the namespace: until then
        it counts among the few silent streams, afterwards in the budget of its namespace."""

        requirement = self._requirement(name)

        async def handle(_: object, context: Context) -> RpcStatus | None:
            try:
                self._admit(context)
                caller = None if requirement is None else await requirement.enter(context.invocation_metadata())
                async with _while_good(requirement, caller):
                    first = await self._first_messages.read(context)
                    first, namespace = self._namespace_in(first, request_type, context, caller)
                    if requirement is not None and caller is not None:
                        requirement.allow(caller, namespace)
                    with budget.use(namespace):
                        await method(cast("Context", Opened(context, first)))
            except Exception as error:  # noqa: BLE001  as above
                return None if _is_gone(error) else self._refuse(name, error)
            return None

        return grpc.stream_stream_rpc_method_handler(_as_handler(handle))

    def _requirement(self, path: str) -> Requirement | None:
        """None: no key is required."""
        if self._access is None or not self._access.asks or (need := NEEDS[path]).public:
            return None
        return Requirement(self._access, need)

    def _left_out(self, request: Any, context: Context, caller: Caller | None) -> str:
        """The namespace of a request that names none: that of the key, if it is for one only; that of the connection;
        the default."""
        if caller is not None and caller.namespace != EVERY_NAMESPACE:
            return caller.namespace
        return self.connections.namespace_of(context.peer(), request) or DEFAULT_NAMESPACE

    def _namespace_in(
        self, first: object, request_type: type[Message], context: Context, caller: Caller | None
    ) -> tuple[object, str]:
        """The first message of a stream, with its namespace set, and that. The stream's method refuses one that has no
        first message, or an invalid one."""
        if not isinstance(first, bytes):
            return first, ""
        request = read_message(first, request_type)
        named: Any = request
        if isinstance(request, SessionRequest):
            named = request.hello.register if request.HasField("hello") else None
        elif "namespace_id" not in request.DESCRIPTOR.fields_by_name:
            named = None
        if named is not None and not named.namespace_id:
            named.namespace_id = self._left_out(named, context, caller)
            first = request.SerializeToString()
        return first, namespace_of(request)

    async def _enter_namespace(self, request: Any) -> None:
        if self._admit_namespace is not None:
            await self._admit_namespace(request.namespace_id)

    def _in_time(self, context: Context, margin_s: float) -> "_InTime":
        """Ends a call shortly before the caller's deadline, so that the caller receives the reason. Raises
        ServerUnavailable."""
        remaining_s = cast("float | None", context.time_remaining())  # the stubs of grpc omit None
        # gRPC computes it from the system clock: no time left when a call begins means that the clock was set.
        limit_s = remaining_s - min(margin_s, remaining_s * _MARGIN) if remaining_s else None
        return _InTime(limit_s, self.too_late)

    def too_late(self, limit_s: float) -> ServerUnavailable:
        words = self._store_problem()
        if words:
            return database_down(words)
        return ServerUnavailable(
            f"this could not be done within {limit_s:.1f} s. The server or its database is overloaded. {RETRY_HINT}"
        )

    def _admit(self, context: Context) -> None:
        if not self._open:
            raise ServerUnavailable(_STOPPING)
        if self._secret:
            proof = dict(context.invocation_metadata() or ()).get(PROOF_HEADER, "")
            if not hmac.compare_digest(str(proof).encode(), self._secret.encode()):
                raise PermissionDenied(
                    "this database is served only to users who can read its files: the secret is missing."
                )

    def _refuse(self, name: str, error: Exception) -> RpcStatus:
        status = to_status(self._incidents.public_error(name, error))
        drop_frames(error)
        return status


class _InTime:
    """A time limit around a block; `too_late` creates the error raised instead of TimeoutError. A plain class for
    speed: every call creates one."""

    __slots__ = ("_limit_s", "_timeout", "_too_late")

    def __init__(self, limit_s: float | None, too_late: Callable[[float], ServerUnavailable]) -> None:
        self._limit_s = limit_s
        self._too_late = too_late
        self._timeout = asyncio.timeout(limit_s)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            if self._limit_s is None:
                raise
            raise self._too_late(self._limit_s) from None


def read_message(data: object, request_type: type[Request]) -> Request:
    """Decodes the result of `context.read`, or a call's bytes. Raises ResourceExhausted for a message over the limit,
    InvalidArgument for an invalid or missing one, and for one with too many elements."""
    if not isinstance(data, bytes):
        raise InvalidArgument(f"the call ended before its first message, a {request_type.DESCRIPTOR.full_name}.")
    if len(data) > limits.MESSAGE_HARD_BYTES:
        raise ResourceExhausted(
            f"the message has {len(data)} bytes; the limit is {limits.MESSAGE_HARD_BYTES}. Send less at once.",
            metadata=limit_reached("message_bytes", limits.MESSAGE_HARD_BYTES),
        )
    try:
        if len(data) > limits.MESSAGE_UNCOUNTED_BYTES:
            from .elements import check_elements  # noqa: PLC0415  few messages are that large

            check_elements(data, request_type)
        return request_type.FromString(data)
    except DecodeError:
        raise InvalidArgument(f"the message is not a {request_type.DESCRIPTOR.full_name}.") from None


def _while_good(requirement: Requirement | None, caller: Caller | None) -> AbstractAsyncContextManager[None]:
    return nullcontext() if requirement is None or caller is None else requirement.while_good(caller)


def _is_gone(error: Exception) -> bool:
    """Whether the caller disconnected during a write. gRPC has no public name for this error."""
    return type(error).__name__ == "ExecuteBatchError"


def _is_within_a_namespace(path: str, request_type: type[Message]) -> bool:
    """False for the service of namespaces itself, which also returns those being deleted."""
    return "namespace_id" in request_type.DESCRIPTOR.fields_by_name and not path.startswith(_NAMESPACE_SERVICE)


def _as_handler(handle: Callable[..., Awaitable[bytes | RpcStatus | None]]) -> Any:
    # The stubs of grpc describe synchronous handlers only.
    return handle
