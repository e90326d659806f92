"""/server: information about this server, and its health."""

import asyncio

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ....core.times import US_PER_MS, moment_text
from ..route import ApiRequest, NoQuery, Route
from ..views.server import HealthQuery, HealthView, Lags, ServerView, server_view


async def get(request: ApiRequest[NoQuery, None]) -> ServerView:
    data = request.data
    store_us = data.engine.store_lag_us()
    lags = Lags(round(await _turn_s() * 1_000, 3), None if store_us is None else store_us / US_PER_MS)
    return server_view(data.info, store_problem=data.engine.store_problem(), now=data.clock.now(), lags=lags)


async def _turn_s() -> float:
    """How long this process needs for everything else that is due now: other requests wait as long."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    return loop.time() - began


async def health(request: ApiRequest[HealthQuery, None]) -> HealthView:
    """Responds with 200 even if the server is unhealthy. Use /readyz for probes that check the status code."""
    problem = request.data.health.problem(request.query.service)
    return HealthView(
        status="serving" if problem is None else "not_serving",
        message=problem or "serving",
        at=moment_text(request.data.clock.now()),
    )


ROUTES = (
    Route(
        method="GET",
        path="/server",
        handler=get,
        scope=Scope.READ,
        summary="Get what this server is: its version, store, limits and clock",
        answer=ServerView,
        any_key=True,
    ),
    Route(
        method="GET",
        path="/server/health",
        handler=health,
        scope=Scope.READ,
        summary="Get whether this server serves, and why not",
        query=HealthQuery,
        answer=HealthView,
        errors=(ErrorCode.NOT_FOUND,),
        public=True,
    ),
)
