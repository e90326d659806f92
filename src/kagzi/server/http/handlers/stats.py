"""/stats: figures about runs."""

from ....core.access import Scope
from ....core.workflow_types.names import canonical_type
from ..route import ApiRequest, Route
from ..views.common import timestamp
from ..views.stats import StatsQuery, StatsView, stats_view


async def get(request: ApiRequest[StatsQuery, None]) -> StatsView:
    query = request.query
    figures = await request.data.engine.stats.get(
        request.namespace,
        since=timestamp(query.since, "since"),
        until=timestamp(query.until, "until"),
        workflow_type=canonical_type(query.workflow or ""),
        step=query.step or "",
    )
    return stats_view(figures)


ROUTES = (
    Route(
        method="GET",
        path="/stats",
        handler=get,
        scope=Scope.READ,
        summary="Get how many runs started, ended and are open, and how long they took",
        query=StatsQuery,
        answer=StatsView,
        large=True,
    ),
)
