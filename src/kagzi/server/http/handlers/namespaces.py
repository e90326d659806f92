"""/namespaces: tenants and their limits."""

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ..route import ApiRequest, NoQuery, Route
from ..views.common import Paged, PageQuery, paged
from ..views.namespaces import (
    DeletedNamespace,
    DeleteNamespaceQuery,
    NamespaceChanges,
    NamespaceView,
    NewNamespace,
    namespace_changes,
    namespace_view,
    new_namespace,
)


async def list_namespaces(request: ApiRequest[PageQuery, None]) -> Paged[NamespaceView]:
    return paged(await request.data.engine.namespaces.list(request.query.page), namespace_view)


async def create(request: ApiRequest[NoQuery, NewNamespace]) -> NamespaceView:
    return namespace_view(await request.data.engine.namespaces.create(new_namespace(request.body)))


async def get(request: ApiRequest[NoQuery, None]) -> NamespaceView:
    return namespace_view(await request.data.engine.namespaces.get(request.path["namespace"]))


async def change(request: ApiRequest[NoQuery, NamespaceChanges]) -> NamespaceView:
    record, fields = namespace_changes(request.path["namespace"], request.body)
    return namespace_view(await request.data.engine.namespaces.update(record, fields))


async def delete(request: ApiRequest[DeleteNamespaceQuery, None]) -> DeletedNamespace:
    namespace = request.path["namespace"]
    await request.data.engine.namespaces.delete(namespace, confirm=request.query.confirm)
    return DeletedNamespace(namespace=namespace, deleting=True)


ROUTES = (
    Route(
        method="GET",
        path="/namespaces",
        handler=list_namespaces,
        scope=Scope.READ,
        summary="List namespaces by name",
        query=PageQuery,
        answer=Paged[NamespaceView],
        everywhere=True,
        large=True,
    ),
    Route(
        method="POST",
        path="/namespaces",
        handler=create,
        scope=Scope.ADMIN,
        summary="Create a namespace",
        body=NewNamespace,
        answer=NamespaceView,
        status=201,
        errors=(ErrorCode.CONFLICT, ErrorCode.PRECONDITION_FAILED),
        everywhere=True,
    ),
    Route(
        method="GET",
        path="/namespaces/{namespace}",
        handler=get,
        scope=Scope.READ,
        summary="Get a namespace, also while it is being deleted",
        answer=NamespaceView,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Route(
        method="PATCH",
        path="/namespaces/{namespace}",
        handler=change,
        scope=Scope.ADMIN,
        summary="Change limits and retention of a namespace, enable or disable it",
        body=NamespaceChanges,
        answer=NamespaceView,
        errors=(ErrorCode.NOT_FOUND,),
        everywhere=True,
    ),
    Route(
        method="DELETE",
        path="/namespaces/{namespace}",
        handler=delete,
        scope=Scope.ADMIN,
        summary="Delete a namespace with all its runs, for good",
        query=DeleteNamespaceQuery,
        answer=DeletedNamespace,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.PRECONDITION_FAILED),
        everywhere=True,
    ),
)
