"""Requires keys for pages with data, like the API. Probes need none, nor does the dashboard, which uses the API."""

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ....core.access import EVERY_NAMESPACE
from ....core.access import Scope as KeyScope
from ....core.errors import KagziError
from ....core.records import DEFAULT_NAMESPACE
from ..guard import caller_of
from ..page_data import PageData
from .base_path import base_of
from .bundle import Bundle
from .dashboard import SHORT, STATIC, is_public
from .plain import PLAIN, PlainPages

PUBLIC = frozenset({"/healthz", "/readyz"})
"""Exact paths: process supervisors and load balancers have no key."""
_ANY_KEY = ("/", PLAIN)
_OF_A_NAMESPACE = ("/runs", f"{PLAIN}/runs")


class PageGuard:
    """The front page: any valid key. Runs: `read` in their namespace. Anything else, such as `/metrics`, concerns the
    whole server: `read` everywhere."""

    def __init__(self, app: ASGIApp, data: PageData, bundle: Bundle, plain: PlainPages) -> None:
        self._app = app
        self._data = data
        self._bundle = bundle
        self._plain = plain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and self._data.access.asks and not self._is_public(scope["path"]):
            try:
                await self._admit(scope)
            except KagziError as error:
                app = self._plain.refusal(error, base_of(scope))
        await app(scope, receive, send)

    def _is_public(self, path: str) -> bool:
        """Paths below /r/ check keys themselves, as they have two responses."""
        if path in PUBLIC or path.startswith((STATIC, SHORT)):
            return True
        return is_public(path) and self._bundle.is_there

    async def _admit(self, scope: Scope) -> None:
        access, path = self._data.access, scope["path"]
        caller = await caller_of(access, scope["method"], dict(Headers(scope=scope)))
        if path in _ANY_KEY:
            return
        namespace = EVERY_NAMESPACE
        if path in _OF_A_NAMESPACE or path.startswith(tuple(f"{each}/" for each in _OF_A_NAMESPACE)):
            namespace = Request(scope).query_params.get("namespace") or DEFAULT_NAMESPACE
        access.require(caller, KeyScope.READ, namespace)
