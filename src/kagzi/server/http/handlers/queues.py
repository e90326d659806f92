"""/queues: how many runs wait for a worker, since when, and why."""

from ....core.access import Scope
from ....core.workflow_types.names import canonical_type
from ..route import ApiRequest, NoQuery, Route
from ..views.common import Paged, whole
from ..views.queues import QueueQuery, QueueView, queue_view


async def list_queues(request: ApiRequest[QueueQuery, None]) -> Paged[QueueView]:
    return await _depths(request, request.query.workflow or "")


async def get(request: ApiRequest[NoQuery, None]) -> Paged[QueueView]:
    return await _depths(request, request.path["workflow"])


async def _depths(request: ApiRequest[QueueQuery, None] | ApiRequest[NoQuery, None], workflow: str) -> Paged[QueueView]:
    depths = await request.data.engine.queues.depths(request.namespace, canonical_type(workflow))
    return whole(depths, queue_view)


ROUTES = (
    Route(
        method="GET",
        path="/queues",
        handler=list_queues,
        scope=Scope.READ,
        summary="List the queues in which runs wait for a worker, by type and version",
        query=QueueQuery,
        answer=Paged[QueueView],
        large=True,
    ),
    Route(
        method="GET",
        path="/queues/{workflow}",
        handler=get,
        scope=Scope.READ,
        summary="Get the queues of a workflow type, one for each version that runs wait for",
        answer=Paged[QueueView],
    ),
)
