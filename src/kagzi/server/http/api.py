"""The HTTP API as an ASGI application. Driven by the table of routes, it admits and decodes requests, calls their
handlers and encodes responses. Every error becomes a problem document; nothing here returns HTML."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from typing import Any, cast

import msgspec

from ...core import limits
from ...core.access import Caller
from ...core.errors import InvalidArgument, ResourceExhausted, ServerUnavailable, limit_reached
from ...core.outages import database_down
from ...core.raised.exceptions import drop_frames
from ..grpc.budgets import Budget
from . import sse
from .callers import admitted
from .decoding import NAMESPACE, namespace_in, read_body, read_query
from .matching import PREFIX, Table
from .page_data import PageData
from .problems import PROBLEM_JSON, BodyTooLarge, MediaTypeRefused, headers_of, problem_of, status_of
from .route import JSON, Answer, ApiRequest, NoBody, Route

logger = logging.getLogger("kagzi.server")

CALL_S = 30.0
"""Time limit of a request."""
POLL_S = limits.POLL_WAIT_MS / 1_000 + 5.0
"""Time limit of a request that waits."""
BODY_S = 20.0
"""Time limit for receiving a body; for each part of it if it is not JSON."""
_OPENAPI = f"{PREFIX}/openapi.json"
_RETRY_HINT = "Try again."
_LASTING_RETRY = timedelta(seconds=5)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Api:
    def __init__(
        self, data: PageData, routes: tuple[Route, ...], describe: Callable[[], bytes], most_lasting: int
    ) -> None:
        self._data = data
        self._table = Table(routes)
        self._describe = describe
        self._most_lasting = most_lasting
        self._lasting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        try:
            if exchange.method in ("GET", "HEAD") and exchange.raw_path in (_OPENAPI, "/openapi.json"):
                await exchange.answer(self._describe(), JSON)
                return
            await self._serve(exchange)
        except Exception as error:  # noqa: BLE001  every error becomes a response
            if exchange.started:
                self._data.incidents.public_error(exchange.place, error)  # logged; the rest of the response is not sent
                exchange.abort()
            else:
                await self._refuse(exchange, error)

    async def _refuse(self, exchange: "Exchange", error: Exception) -> None:
        public = self._data.incidents.public_error(exchange.place, error)
        drop_frames(error)
        await exchange.respond(
            msgspec.json.encode(problem_of(public)), PROBLEM_JSON, status_of(public), headers_of(public)
        )

    async def _serve(self, exchange: "Exchange") -> None:
        data = self._data
        if data.deadlines.over:
            raise ServerUnavailable(f"the server is stopping. {_RETRY_HINT}")
        route, path = self._table.find(exchange.method, exchange.raw_path)
        exchange.matched(route)
        namespace = path.get(NAMESPACE) or namespace_in(exchange.query)
        caller = await admitted(data, route, exchange.headers, namespace)
        _, query = read_query(exchange.query, route.query, namespaced=route.namespaced)
        with self._budget(route).use("" if route.everywhere else namespace), self._lasting_request(route):
            body = await self._body(exchange, route)  # its parts and the connection have time limits of their own
            async with (
                self._while_good(route, caller),
                self._in_time(POLL_S if route.waits else CALL_S) as in_time,
            ):
                if route.namespaced:
                    await data.engine.namespaces.admit(namespace)
                request = ApiRequest(
                    data=data,
                    caller=caller,
                    namespace=namespace,
                    path=path,
                    query=query,
                    body=body,
                    request_id=self._request_id(exchange),
                    headers=exchange.headers,
                )
                if route.takes != JSON:
                    in_time.reschedule(None)  # no limit while parts keep arriving
                await self._answer(exchange, route, request, in_time)

    @contextmanager
    def _lasting_request(self, route: Route) -> Generator[None]:
        """Streams and requests that wait leave connections to others. Raises ResourceExhausted."""
        if not (route.stream or route.waits):
            yield
            return
        if self._lasting >= self._most_lasting:
            raise ResourceExhausted(
                f"{self._lasting} streams and requests that wait are open on the HTTP port, as many as may be. "
                f"{_RETRY_HINT}",
                retry_after=_LASTING_RETRY,
                metadata=limit_reached("http_lasting", self._most_lasting),
            )
        self._lasting += 1
        try:
            yield
        finally:
            self._lasting -= 1

    def _while_good(self, route: Route, caller: Caller) -> AbstractAsyncContextManager[None]:
        return self._data.access.while_good(caller) if route.stream or route.waits else nullcontext()

    async def _answer(
        self, exchange: "Exchange", route: Route, request: ApiRequest[Any, Any], in_time: asyncio.Timeout
    ) -> None:
        if not route.large or route.waits:
            value = await route.handler(request)
            if isinstance(value, sse.EventStream):
                await self._stream(exchange, value, in_time)
            elif route.large:  # a long poll reserves when its wait is over
                data = msgspec.json.encode(value)
                async with self._data.answers.reserve(request.namespace, len(data)):
                    await self._write(exchange, route, data, in_time)
            else:
                await self._write(exchange, route, value, in_time)
            return
        async with self._data.answers.reserve(request.namespace) as reservation:
            await self._write(exchange, route, await route.handler(request), in_time, reservation.use)

    async def _write(
        self,
        exchange: "Exchange",
        route: Route,
        value: Any,
        in_time: asyncio.Timeout,
        use: Callable[[int], None] = lambda size: None,
    ) -> None:
        answer = value if isinstance(value, Answer) else Answer(value, route.status)
        status, headers = answer.status, answer.headers
        if isinstance(answer.value, AsyncIterator):
            await _write_parts(exchange, cast("AsyncGenerator[bytes]", answer.value), route.makes, in_time)
        elif answer.value is None and route.answer is None:
            await exchange.respond(b"", "", 204, headers)
        else:
            data = answer.value if isinstance(answer.value, bytes) else msgspec.json.encode(answer.value)
            use(len(data))
            in_time.reschedule(None)  # the connection limits how long a client may take to read it
            if route.method == "GET":
                await exchange.answer(data, route.makes, headers)
            else:
                await exchange.respond(data, route.makes, status, headers)

    async def _stream(self, exchange: "Exchange", stream: sse.EventStream, in_time: asyncio.Timeout) -> None:
        first = await anext(stream.frames, b"")  # a stream that cannot begin is refused like any other request
        if exchange.method == "HEAD":  # has headers only
            await stream.frames.aclose()
            await exchange.begin(200, sse.HEADERS)
            await exchange.end()
            return
        in_time.reschedule(None)
        exchange.allow_behind(sse.BEHIND_BYTES)
        await exchange.begin(200, sse.HEADERS)
        problem = partial(self._stream_problem, exchange)
        writing = sse.Writing(exchange.write, exchange.disconnected, problem, self._data.deadlines)
        try:
            await writing.run(first, stream.frames)
        except TimeoutError:
            logger.info("%s: a reader was more than %d bytes behind and was cut off", exchange.place, sse.BEHIND_BYTES)
            exchange.abort()
            return
        await exchange.end()

    def _stream_problem(self, exchange: "Exchange", error: Exception) -> bytes:
        return sse.event("problem", problem_of(self._data.incidents.public_error(exchange.place, error)))

    def _budget(self, route: Route) -> Budget:
        budgets = self._data.budgets
        if route.stream:
            return budgets.streams
        return budgets.polls if route.waits else budgets.calls

    def _request_id(self, exchange: "Exchange") -> str:
        value = exchange.headers.get("idempotency-key", "")
        if len(value) > limits.NAME_BYTES:
            raise InvalidArgument(
                f"Idempotency-Key has {len(value)} bytes; the limit is {limits.NAME_BYTES}. Shorten it.",
                field="Idempotency-Key",
                metadata=limit_reached("text_bytes", limits.NAME_BYTES),
            )
        return value or self._data.ids.token()

    async def _body(self, exchange: "Exchange", route: Route) -> Any:
        if route.method == "GET":
            return None
        media_type = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
        if route.takes != JSON:
            _check_media_type(media_type, route)
            return exchange.parts()
        data = await exchange.body()
        if data:
            _check_media_type(media_type, route)
        body = read_body(data, NoBody if route.body is None else route.body)
        return None if route.body is None else body  # a body that would be ignored is refused

    @asynccontextmanager
    async def _in_time(self, limit_s: float) -> AsyncGenerator[asyncio.Timeout]:
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                yield limit
        except TimeoutError:
            if not limit.expired():
                raise
            problem = self._data.engine.store_problem()
            if problem:
                raise database_down(problem) from None
            raise ServerUnavailable(
                f"this could not be done within {limit_s:.0f} s. The server or its database is overloaded. "
                f"{_RETRY_HINT}"
            ) from None


def _check_media_type(value: str, route: Route) -> None:
    if value != route.takes:
        raise MediaTypeRefused(
            f"the body has the media type {value[:64]!r}. Send {route.takes}, and say so in Content-Type.",
            field="Content-Type",
        )


async def _write_parts(
    exchange: "Exchange", parts: AsyncGenerator[bytes], media_type: str, in_time: asyncio.Timeout
) -> None:
    """Errors before the first part is sent still become a problem document."""
    first = await anext(parts, b"")
    in_time.reschedule(None)
    await exchange.begin(200, {"content-type": media_type})
    await exchange.write(first)
    async for part in parts:
        await exchange.write(part)
    await exchange.end()


class Exchange:
    """A request and its response on ASGI."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self.started = False
        self.method: str = scope["method"]
        self.raw_path = cast("bytes", scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        self.query: bytes = scope["query_string"]
        self.headers: Mapping[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }

    def matched(self, route: Route) -> None:
        """Sets the matched route where Starlette sets it, for metrics and tracing."""
        self._scope["route"] = route

    @property
    def place(self) -> str:
        """Method and path, for the log."""
        return f"{self.method} {self.raw_path[:256]}"

    # --- the request --------------------------------------------------------------------------------------------------

    async def body(self) -> bytes:
        """Raises BodyTooLarge, InvalidArgument."""
        _check_size(int(self.headers.get("content-length", "0") or 0))
        buffer = bytearray()
        async for part in self.parts():
            buffer += part
            _check_size(len(buffer))
        return bytes(buffer)

    async def parts(self) -> AsyncGenerator[bytes]:
        """The parts of the body as they arrive. Raises InvalidArgument if they stop arriving."""
        more = True
        while more:
            try:
                async with asyncio.timeout(BODY_S):
                    message = await self._receive()
            except TimeoutError:
                raise InvalidArgument(
                    f"the rest of the body did not come within {BODY_S:.0f} s. Send it.", field="body"
                ) from None
            if message["type"] == "http.disconnect":
                raise InvalidArgument("the body was cut off. Send all of it.", field="body")
            yield message.get("body", b"")
            more = message.get("more_body", False)

    async def disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # --- the response -------------------------------------------------------------------------------------------------

    async def answer(self, data: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        """Responds to a GET with an ETag; omits the data if the caller already has them."""
        tag = f'W/"{blake2b(data, digest_size=8).hexdigest()}"'
        tagged = {**(headers or {}), "etag": tag}
        if _has(self.headers.get("if-none-match", ""), tag):
            await self.respond(b"", "", 304, tagged)
        else:
            await self.respond(data, media_type, 200, tagged)

    async def respond(self, data: bytes, media_type: str, status: int, headers: Mapping[str, str]) -> None:
        described = {**headers}
        if status not in (204, 304):
            described |= {"content-type": media_type, "content-length": str(len(data))}
        await self.begin(status, described)
        if data:
            await self.write(data)
        await self.end()

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.started = True
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """Waits until the client has read most of the response."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    # --- the connection -----------------------------------------------------------------------------------------------

    @property
    def _transport(self) -> asyncio.Transport | None:
        connection = self._scope.get("state", {}).get("connection")
        return None if connection is None else connection.transport

    def allow_behind(self, size: int) -> None:
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=size)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _has(condition: str, tag: str) -> bool:
    """Whether If-None-Match contains the tag. Compares weakly: the `W/` prefix makes no difference."""
    tags = [each.strip().removeprefix("W/") for each in condition.split(",")]
    return "*" in tags or tag.removeprefix("W/") in tags


def _check_size(size: int) -> None:
    if size > limits.MESSAGE_HARD_BYTES:
        raise BodyTooLarge(
            f"the body has more than {limits.MESSAGE_HARD_BYTES} bytes, the limit. Send less at once.",
            metadata=limit_reached("message_bytes", limits.MESSAGE_HARD_BYTES),
        )
