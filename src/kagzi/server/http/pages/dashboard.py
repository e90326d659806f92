"""The dashboard: one page for all its paths, and the files that it loads. They contain no data and need no key: their
data come from the API, which requires one."""

from urllib.parse import quote, urlencode

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ....core.access import Scope as KeyScope
from ....core.errors import KagziError
from ....core.records import DEFAULT_NAMESPACE, RunFilter
from ....engine import PageAsk
from ..guard import caller_of
from ..page_data import PageData
from .base_path import base_of
from .bundle import Bundle, File
from .plain import PlainPages

NOUNS = ("runs", "workflows", "schedules", "workers", "inbox", "operations", "settings", "login")
"""The first segments of its paths."""
SHORT = "/r/"
"""Prefix of links with the beginning of a run id."""
STATIC = "/static/"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


def is_public(path: str) -> bool:
    """Whether the bundle serves this path, if there is one."""
    if not path.startswith("/"):  # `GET *`, and what else strangers send
        return False
    first = path.split("/", 2)[1]
    return path == "/" or first in NOUNS or path.startswith((STATIC, SHORT))


class Dashboard:
    """Falls back to the plain pages if there is no bundle."""

    def __init__(self, data: PageData, bundle: Bundle, plain: PlainPages) -> None:
        self._data = data
        self._bundle = bundle
        self._plain = plain

    def routes(self) -> list[Route]:
        paths = ["/", *(path for noun in NOUNS for path in (f"/{noun}", f"/{noun}/{{rest:path}}"))]
        return [
            *(Route(path, self.page) for path in paths),
            Route(f"{STATIC}{{name}}", self.static),
            Route(f"{SHORT}{{prefix}}", self.short),
        ]

    async def page(self, request: Request) -> Response:
        page = await self._index(request)
        return await self._plain.instead(request) if page is None else _response(request, page)

    async def missing(self, request: Request, _: Exception) -> Response:
        """An unknown path: browsers get the dashboard, which says so and has its navigation."""
        wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        page = await self._index(request) if wants_page else None
        return PlainTextResponse("Not Found", 404) if page is None else _response(request, page, 404)

    async def static(self, request: Request) -> Response:
        file = await self._bundle.file(request.path_params["name"], request.query_params.get("v"))
        if file is None:
            return PlainTextResponse("There is no such file. `make web` builds the dashboard.\n", status_code=404)
        return _response(request, file)

    async def short(self, request: Request) -> Response:
        """Redirects to the run whose id begins so, or to a list if several do, or none. If the caller may not see runs,
        the dashboard asks for a key."""
        namespace = request.query_params.get("namespace") or DEFAULT_NAMESPACE
        prefix = request.path_params["prefix"]
        try:
            await self._admit(request, namespace)
            runs = await self._data.engine.runs.list(namespace, RunFilter(id_prefix=prefix), PageAsk(size=2))
        except KagziError as error:
            page = await self._index(request)
            return self._plain.refusal(error) if page is None else _response(request, page)
        begin_so = [run.run.run_id for run in runs.rows if run.run.run_id.startswith(prefix)]
        base = base_of(request.scope)
        names = {} if namespace == DEFAULT_NAMESPACE else {"namespace": namespace}
        if len(begin_so) == 1:
            return RedirectResponse(_address(f"{base}runs/{quote(begin_so[0], safe='')}", names))
        return RedirectResponse(_address(f"{base}runs", {**names, "id_prefix": prefix}))

    async def _index(self, request: Request) -> File | None:
        return await self._bundle.page(base_of(request.scope), self._data.info.auth)

    async def _admit(self, request: Request, namespace: str) -> None:
        access = self._data.access
        if access.asks:
            caller = await caller_of(access, request.method, dict(Headers(scope=request.scope)))
            access.require(caller, KeyScope.READ, namespace)


def _address(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _response(request: Request, file: File, status_code: int = 200) -> Response:
    headers = {
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Cache-Control": "no-cache",
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
    }
    if status_code == 200 and file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = file.content
    if file.zipped and _takes_gzip(request.headers.get("accept-encoding", "")):
        content = file.zipped
        headers["Content-Encoding"] = "gzip"
    return Response(content, status_code, headers={**headers, "Content-Type": file.media_type})


def _takes_gzip(accepted: str) -> bool:
    words = [word.strip().replace(" ", "").lower() for word in accepted.split(",")]
    return any(word == "gzip" or (word.startswith("gzip;q=") and word.strip("0.") != "gzip;q=") for word in words)
