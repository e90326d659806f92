"""/workflows: workflow types, their limits, and whether they are paused."""

from typing import Any

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ....core.workflow_types.names import canonical_type
from ....engine import LIMITS_WAIT, Named
from ..route import ApiRequest, NoQuery, Route
from ..views.common import Paged, PageQuery, paged
from ..views.workflows import (
    ChangedWorkflowType,
    SchemaQuery,
    SchemaView,
    WorkflowTypeChanges,
    WorkflowTypeView,
    changed_type_view,
    schema_view,
    type_changes,
    workflow_type_view,
)


async def list_types(request: ApiRequest[PageQuery, None]) -> Paged[WorkflowTypeView]:
    page = await request.data.engine.queues.list(request.namespace, request.query.page)
    return paged(page, workflow_type_view)


async def get(request: ApiRequest[NoQuery, None]) -> WorkflowTypeView:
    return workflow_type_view(await request.data.engine.queues.get(request.namespace, _type(request)))


async def change(request: ApiRequest[NoQuery, WorkflowTypeChanges]) -> ChangedWorkflowType:
    engine = request.data.engine
    limits, fields = type_changes(request.body)
    record = await engine.queues.update(request.namespace, _type(request), limits, fields)
    warning = await engine.served.warning(Named(request.namespace, record.workflow_type), LIMITS_WAIT)
    return changed_type_view(record, warning)


async def pause(request: ApiRequest[NoQuery, None]) -> WorkflowTypeView:
    return workflow_type_view(await request.data.engine.queues.pause(request.namespace, _type(request)))


async def resume(request: ApiRequest[NoQuery, None]) -> WorkflowTypeView:
    return workflow_type_view(await request.data.engine.queues.resume(request.namespace, _type(request)))


async def schema(request: ApiRequest[SchemaQuery, None]) -> SchemaView:
    schemas = request.data.engine.schemas
    return schema_view(await schemas.get(request.namespace, _type(request), request.query.version))


def _type(request: ApiRequest[Any, Any]) -> str:
    return canonical_type(request.path["workflow"])


ROUTES = (
    Route(
        method="GET",
        path="/workflows",
        handler=list_types,
        scope=Scope.READ,
        summary="List workflow types by name, with their limits and open runs",
        query=PageQuery,
        answer=Paged[WorkflowTypeView],
        large=True,
    ),
    Route(
        method="GET",
        path="/workflows/{workflow}",
        handler=get,
        scope=Scope.READ,
        summary="Get a workflow type",
        answer=WorkflowTypeView,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Route(
        method="PATCH",
        path="/workflows/{workflow}",
        handler=change,
        scope=Scope.ADMIN,
        summary="Change limits and rates of a workflow type",
        body=WorkflowTypeChanges,
        answer=ChangedWorkflowType,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Route(
        method="POST",
        path="/workflows/{workflow}/pause",
        handler=pause,
        scope=Scope.ADMIN,
        summary="Pause a workflow type: starts are accepted and wait, running runs continue",
        answer=WorkflowTypeView,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Route(
        method="POST",
        path="/workflows/{workflow}/resume",
        handler=resume,
        scope=Scope.ADMIN,
        summary="Resume a paused workflow type",
        answer=WorkflowTypeView,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Route(
        method="GET",
        path="/workflows/{workflow}/schema",
        handler=schema,
        scope=Scope.READ,
        summary="Get what a workflow type takes, returns and waits for, as JSON Schema",
        query=SchemaQuery,
        answer=SchemaView,
        errors=(ErrorCode.NOT_FOUND,),
        large=True,
    ),
)
