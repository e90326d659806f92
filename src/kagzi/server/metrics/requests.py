"""Measures HTTP requests by wrapping the routes."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...engine.measurements.measurements import Measurements

_UNMATCHED = "unmatched"
_EVENTS = "text/event-stream"


class MeasuredRequests:
    """Times requests by the path template of their route; counts event streams."""

    def __init__(self, app: ASGIApp, measurements: Measurements) -> None:
        self._app = app
        self._measurements = measurements

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        began_s, status, streams = loop.time(), 500, False
        measurements = self._measurements

        async def watch(message: Message) -> None:
            nonlocal status, streams
            if message["type"] == "http.response.start":
                status = message["status"]
                if Headers(raw=message.get("headers", ())).get("content-type", "").startswith(_EVENTS):
                    streams = True
                    measurements.streams["events"] += 1
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            if streams:
                measurements.streams["events"] -= 1
            else:
                measurements.requested(_route(scope), f"{status // 100}xx", loop.time() - began_s)


def _route(scope: Scope) -> str:
    """The path template of the route, never text from the caller."""
    return getattr(scope.get("route"), "path", None) or _UNMATCHED
