"""Probes, pages and the API as one site. Imported with the first connection."""

import asyncio
import contextlib
from collections.abc import Generator
from typing import cast

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..metrics.exposition import CONTENT_TYPE
from ..metrics.page import MetricsPage
from ..metrics.requests import MeasuredRequests
from ..tracing.requests import TracedRequests
from .api import Api
from .guard import is_allowed
from .openapi import described
from .page_data import PageData
from .pages.base_path import BasePath
from .pages.bundle import Bundle
from .pages.dashboard import Dashboard
from .pages.guard import PageGuard
from .pages.plain import PlainPages
from .protocol import TimedProtocol, listed
from .routes import routes

_START_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 3
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Probes:
    def __init__(self, data: PageData) -> None:
        self._data = data
        self._metrics = MetricsPage(data.engine, data.info, data.health)

    async def healthz(self, request: Request) -> Response:
        """The process responds."""
        return PlainTextResponse("ok\n")

    async def readyz(self, request: Request) -> Response:
        """The server can serve calls."""
        problem = self._data.health.problem()
        if problem is not None:
            return PlainTextResponse(f"{problem}\n", status_code=503)
        summary = self._data.health.peers.summary()
        return PlainTextResponse(f"ready: {summary}\n" if summary else "ready\n")

    async def metrics(self, request: Request) -> Response:
        return Response(await self._metrics.text(), media_type=CONTENT_TYPE)


class Divided:
    """Routes everything below /api to the API, including unknown paths; everything else to the pages."""

    def __init__(self, api: ASGIApp, pages: ASGIApp) -> None:
        self._api = api
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        of_api = path in ("/api", "/openapi.json") or path.startswith("/api/")
        await (self._api if of_api else self._pages)(scope, receive, send)


class Guard:
    """Adds security headers to responses that do not set their own, and checks the Host header, see
    `guard.is_allowed`."""

    def __init__(self, app: ASGIApp, *, local_only: bool, hosts: tuple[str, ...] = ()) -> None:
        self._app = app
        self._local_only = local_only
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app: ASGIApp = self._app
        host = Request(scope).headers.get("host", "")
        if not is_allowed(host, local_only=self._local_only, hosts=self._hosts):
            names = " and ".join(("localhost", *self._hosts))
            text = f"This server responds to {names} only. --http-hosts allows other names.\n"
            app = PlainTextResponse(text, status_code=421)
        await app(scope, receive, send_guarded)


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the process, and does not poll while idle as uvicorn's own loop does."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        self.listening.set()
        await self.ending.wait()


class Web:
    """Serves the connections it is given (`protocol`), from `start` to `stop`. `most_lasting`: how many streams, and
    requests that wait, may be open at once."""

    def __init__(self, data: PageData, *, local_only: bool, most_lasting: int) -> None:
        probes, bundle, plain = Probes(data), Bundle(), PlainPages(data)
        dashboard = Dashboard(data, bundle, plain)
        table = routes()
        api: ASGIApp = Api(data, table, lambda: described(table), most_lasting)
        if data.tracing is not None:
            api = TracedRequests(api, data.tracing)
        app = Starlette(
            routes=[
                Route("/healthz", probes.healthz),
                Route("/readyz", probes.readyz),
                Route("/metrics", probes.metrics),
                *plain.routes(),
                *dashboard.routes(),
            ],
            exception_handlers={404: dashboard.missing},
        )
        whole = BasePath(Divided(api, PageGuard(app, data, bundle, plain)), data.base_path, data.proxies)
        config = uvicorn.Config(
            MeasuredRequests(Guard(whole, local_only=local_only, hosts=data.hosts), data.engine.measurements),
            http=listed(),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # `BasePath` decides which proxies to trust
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=_STOP_TIMEOUT_S,
        )
        self._server = _Uvicorn(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._serving = asyncio.create_task(self._server.serve(sockets=[]), name="kagzi http")
        await asyncio.wait_for(self._server.listening.wait(), _START_TIMEOUT_S)

    @property
    def by_age(self) -> dict[TimedProtocol, None]:
        """The connections, the oldest first."""
        return cast("type[TimedProtocol]", self._server.config.http_protocol_class).by_age

    def protocol(self) -> asyncio.Protocol:
        """The protocol of one new connection."""
        config = self._server.config
        make = cast("type[TimedProtocol]", config.http_protocol_class)
        state = {**self._server.lifespan.state}
        protocol = make(config=config, server_state=self._server.server_state, app_state=state)
        state["connection"] = protocol  # for streams, which are disconnected if the client does not read
        return protocol

    async def stop(self) -> None:
        """Requests in flight get a limited time to finish."""
        if self._serving is not None:
            self._server.ending.set()
            await self._serving
