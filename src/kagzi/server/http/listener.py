"""The HTTP side: probes, and plain pages that say what is here. Imported only by servers that listen for HTTP."""

import asyncio
import contextlib
from collections.abc import Generator
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...core.errors import KagziError, RequestError
from ...core.records import DEFAULT_NAMESPACE, RunFilter
from ...engine import Engine, PageAsk
from ..grpc.incidents import Incidents
from ..health import Health
from ..info import ServerInfo
from ..listen import ListenAddress, bind
from .html import about_page, run_page, sorry_page
from .protocol import limited

_START_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 3
_STEPS_SHOWN = 500
_CHILDREN_SHOWN = 100
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Pages:
    def __init__(
        self,
        engine: Engine,
        health: Health,
        info: ServerInfo,
        grpc_address: str,
        store_url: str,
        *,
        incidents: Incidents,
    ) -> None:
        self._engine = engine
        self._health = health
        self._info = info
        self._grpc_address = grpc_address
        self._store_url = store_url
        self._incidents = incidents

    async def healthz(self, request: Request) -> Response:
        """The process answers."""
        return PlainTextResponse("ok\n")

    async def readyz(self, request: Request) -> Response:
        """Calls would be served."""
        problem = self._health.problem()
        return PlainTextResponse("ready\n") if problem is None else PlainTextResponse(f"{problem}\n", status_code=503)

    async def about(self, request: Request) -> Response:
        page = about_page(self._info, self._grpc_address, self._store_url, self._health.problem())
        return HTMLResponse(page)

    async def run(self, request: Request) -> Response:
        namespace = request.query_params.get("namespace") or DEFAULT_NAMESPACE
        run_id = request.path_params["run_id"]
        try:
            record = await self._engine.runs.get(namespace, run_id=run_id)
            steps = await self._engine.steps.list(
                namespace, run_id, name=None, page=PageAsk(size=_STEPS_SHOWN), payloads=False
            )
            children = await self._engine.runs.list(
                namespace, RunFilter(parent_run_id=run_id), PageAsk(size=_CHILDREN_SHOWN)
            )
        except RequestError:
            return HTMLResponse(sorry_page(f"run {run_id} not found in namespace {namespace}"), status_code=404)
        except KagziError as error:
            return HTMLResponse(
                sorry_page(self._incidents.public_error("the page of a run", error).message), status_code=503
            )
        page = run_page(
            record,
            steps.rows,
            more_steps=steps.has_more,
            children=children.rows,
            more_children=children.has_more,
        )
        return HTMLResponse(page)


class Guard:
    """Security headers on every answer; and on loopback a Host that is loopback, so that no web page elsewhere gets in
    by giving its own name this machine's address."""

    def __init__(self, app: ASGIApp, *, local_only: bool) -> None:
        self._app = app
        self._local_only = local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        app: ASGIApp = self._app
        if self._local_only and not _is_local(Request(scope).headers.get("host", "")):
            app = PlainTextResponse("This server responds to localhost only.\n", status_code=421)
        await app(scope, receive, send_guarded)


def _is_local(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in _LOCAL_HOSTS
    except ValueError:
        return False


class _Uvicorn(uvicorn.Server):
    """Signals are the process's business; and an idle listener does nothing, where uvicorn's own loop ticks."""

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


class HttpListener:
    """Bound when made, so that its URL is known before anything is served."""

    def __init__(self, address: ListenAddress, *, max_connections: int) -> None:
        self._max_connections = max_connections
        self._socket = bind(address, field="http")
        self.address = ListenAddress(address.host, self._socket.getsockname()[1])
        self.url = f"http://{self.address}"
        self._server: _Uvicorn | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self, pages: Pages) -> None:
        app = Starlette(
            routes=[
                Route("/", pages.about),
                Route("/healthz", pages.healthz),
                Route("/readyz", pages.readyz),
                Route("/runs/{run_id}", pages.run),
            ]
        )
        guarded = Guard(app, local_only=self.address.is_local)
        config = uvicorn.Config(
            guarded,
            http=limited(self._max_connections),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=_STOP_TIMEOUT_S,
        )
        self._server = _Uvicorn(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="kagzi http")
        await asyncio.wait_for(self._server.listening.wait(), _START_TIMEOUT_S)

    async def stop(self) -> None:
        """Requests in flight finish, within reason."""
        if self._server is not None and self._serving is not None:
            self._server.ending.set()
            await self._serving
        self._socket.close()
