"""Creates spans of HTTP API requests by wrapping the app. Event streams and requests that wait have none."""

from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:  # needs OpenTelemetry
    from .spans import ServerTracing

_PREFIX = "/api/v1"
_UNMATCHED = "unmatched"


class TracedRequests:
    def __init__(self, app: ASGIApp, tracing: "ServerTracing") -> None:
        self._app = app
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, status = scope["method"], 500
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        span = self._tracing.request(method, headers)

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            route = scope.get("route")
            if route is None:
                self._tracing.requested(span, method, _UNMATCHED, status)
            elif not (route.stream or route.waits):  # otherwise the span is dropped: only ended spans are sent
                self._tracing.requested(span, method, _PREFIX + route.path, status)
