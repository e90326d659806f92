"""The plain pages: HTML without scripts, for browsers without JavaScript and servers without the dashboard."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ....core.errors import KagziError, RequestError
from ....core.records import DEFAULT_NAMESPACE, RunFilter
from ....engine import PageAsk
from ..page_data import PageData
from ..problems import headers_of, status_of
from .base_path import base_of
from .html import about_page, run_page, runs_page, sorry_page

_RUNS_SHOWN = 50
_STEPS_SHOWN = 500
_CHILDREN_SHOWN = 100
PLAIN = "/plain"


class PlainPages:
    def __init__(self, data: PageData) -> None:
        self._data = data

    def routes(self) -> list[Route]:
        return [
            Route(PLAIN, self.about),
            Route(f"{PLAIN}/runs", self.runs),
            Route(f"{PLAIN}/runs/{{run_id}}", self.run),
        ]

    async def instead(self, request: Request) -> Response:
        """The replacement for a dashboard page if the dashboard was not built."""
        path: str = request.scope["path"]
        rest: str = request.path_params.get("rest", "")
        if path == "/":
            return await self.about(request, is_bundle_missing=True)
        if path == "/runs":
            return await self.runs(request)
        if path.startswith("/runs/") and "/" not in rest:
            request.path_params["run_id"] = rest
            return await self.run(request)
        text = (
            "This page is a part of the dashboard, which was not built (`make web` in a checkout): see the start page."
        )
        return HTMLResponse(sorry_page(text, base_of(request.scope)), status_code=404)

    async def about(self, request: Request, *, is_bundle_missing: bool = False) -> Response:
        data = self._data
        problem, author = data.health.problem(), data.health.peers.author()
        return HTMLResponse(
            about_page(
                data.info,
                data.grpc_address,
                data.store_url,
                problem,
                author,
                base=base_of(request.scope),
                is_bundle_missing=is_bundle_missing,
            )
        )

    async def runs(self, request: Request) -> Response:
        namespace = _namespace(request)
        ask = PageAsk(size=_RUNS_SHOWN, token=request.query_params.get("token") or "")
        try:
            page = await self._data.engine.runs.list(namespace, RunFilter(), ask)
        except KagziError as error:
            return self.refusal(error, base_of(request.scope))
        return HTMLResponse(runs_page(page.rows, namespace, page.next_token, base_of(request.scope)))

    async def run(self, request: Request) -> Response:
        namespace, base = _namespace(request), base_of(request.scope)
        run_id = request.path_params["run_id"]
        try:
            record = await self._data.engine.runs.get(namespace, run_id=run_id)
            steps = await self._data.engine.steps.list(
                namespace, run_id, name=None, page=PageAsk(size=_STEPS_SHOWN), payloads=False
            )
            children = await self._data.engine.runs.list(
                namespace, RunFilter(parent_run_id=run_id), PageAsk(size=_CHILDREN_SHOWN)
            )
        except RequestError:
            text = f"run {run_id} not found in namespace {namespace}"
            return HTMLResponse(sorry_page(text, base), status_code=404)
        except KagziError as error:
            text = self._data.incidents.public_error("the page of a run", error).message
            return HTMLResponse(sorry_page(text, base), status_code=503)
        page = run_page(
            record,
            steps.rows,
            more_steps=steps.has_more,
            children=children.rows,
            more_children=children.has_more,
            base=base,
        )
        return HTMLResponse(page)

    def refusal(self, error: KagziError, base: str = "/") -> Response:
        public = self._data.incidents.public_error("a page", error)
        return HTMLResponse(sorry_page(public.message, base), status_code=status_of(public), headers=headers_of(public))


def _namespace(request: Request) -> str:
    return request.query_params.get("namespace") or DEFAULT_NAMESPACE
