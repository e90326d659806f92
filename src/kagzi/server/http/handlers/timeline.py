"""/runs/{run}/timeline: the steps of a run, as columns."""

from ....core.access import Scope
from ..route import ApiRequest, Route
from ..run_names import run_id_of
from ..views.timeline import TimelineQueryIn, TimelineView, timeline_query, timeline_view


async def get(request: ApiRequest[TimelineQueryIn, None]) -> TimelineView:
    """Up to 2,000 steps, without their values."""
    query = timeline_query(request.query)
    return timeline_view(await request.data.engine.steps.timeline(request.namespace, await run_id_of(request), query))


ROUTES = (
    Route(
        "GET",
        "/runs/{run}/timeline",
        get,
        Scope.READ,
        "Get its steps as a timeline draws them",
        query=TimelineQueryIn,
        answer=TimelineView,
        large=True,
    ),
)
