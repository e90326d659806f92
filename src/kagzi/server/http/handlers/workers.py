"""/workers: workers and their events."""

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ....core.workflow_types.names import canonical_type
from ....engine import BY_OPERATOR
from ..route import ApiRequest, NoQuery, Route
from ..views.common import Paged, PageQuery, paged
from ..views.workers import (
    WorkerEventQuery,
    WorkerEventView,
    WorkerListQuery,
    WorkerView,
    worker_event_view,
    worker_view,
)


async def list_workers(request: ApiRequest[WorkerListQuery, None]) -> Paged[WorkerView]:
    query = request.query
    page = await request.data.engine.workers.list(
        request.namespace,
        workflow_type=canonical_type(query.workflow or "") or None,
        status=query.status,
        page=query.page,
    )
    return paged(page, worker_view)


async def get(request: ApiRequest[NoQuery, None]) -> WorkerView:
    return worker_view(await request.data.engine.workers.get(request.namespace, request.path["worker"]))


async def list_all_events(request: ApiRequest[WorkerEventQuery, None]) -> Paged[WorkerEventView]:
    query = request.query
    page = await request.data.engine.workers.events(request.namespace, query.worker_id or "", query.page)
    return paged(page, worker_event_view)


async def list_events(request: ApiRequest[PageQuery, None]) -> Paged[WorkerEventView]:
    page = await request.data.engine.workers.events(request.namespace, request.path["worker"], request.query.page)
    return paged(page, worker_event_view)


async def drain(request: ApiRequest[NoQuery, None]) -> WorkerView:
    worker = await request.data.engine.workers.drain(request.namespace, request.path["worker"], BY_OPERATOR)
    return worker_view(worker)


ROUTES = (
    Route(
        method="GET",
        path="/workers",
        handler=list_workers,
        scope=Scope.READ,
        summary="List workers, the newest registration first",
        query=WorkerListQuery,
        answer=Paged[WorkerView],
        large=True,
    ),
    Route(
        method="GET",
        path="/workers/{worker}",
        handler=get,
        scope=Scope.READ,
        summary="Get a worker",
        answer=WorkerView,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Route(
        method="GET",
        path="/workers/{worker}/events",
        handler=list_events,
        scope=Scope.READ,
        summary="List what happened to a worker, latest first",
        query=PageQuery,
        answer=Paged[WorkerEventView],
        errors=(ErrorCode.NOT_FOUND,),
        large=True,
    ),
    Route(
        method="GET",
        path="/worker-events",
        handler=list_all_events,
        scope=Scope.READ,
        summary="List what happened to all workers, latest first",
        query=WorkerEventQuery,
        answer=Paged[WorkerEventView],
        errors=(ErrorCode.NOT_FOUND,),
        large=True,
    ),
    Route(
        method="POST",
        path="/workers/{worker}/drain",
        handler=drain,
        scope=Scope.ADMIN,
        summary="Drain a worker: it takes no more work, finishes what it can in its grace time, and leaves",
        answer=WorkerView,
        errors=(ErrorCode.NOT_FOUND,),
    ),
)
