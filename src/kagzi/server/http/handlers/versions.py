"""/versions, and /workflows/{workflow}/versions: which version new runs get."""

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ....core.workflow_types.names import canonical_type
from ..route import ApiRequest, NoQuery, Route
from ..views.common import Paged, PageQuery, paged
from ..views.versions import DeprecateIn, VersionListQuery, VersionView, version_view


async def list_all(request: ApiRequest[VersionListQuery, None]) -> Paged[VersionView]:
    return await _list(request, request.query.workflow or "")


async def list_of_type(request: ApiRequest[PageQuery, None]) -> Paged[VersionView]:
    return await _list(request, request.path["workflow"])


async def _list(
    request: ApiRequest[VersionListQuery, None] | ApiRequest[PageQuery, None], workflow: str
) -> Paged[VersionView]:
    page = await request.data.engine.versions.list(request.namespace, canonical_type(workflow), request.query.page)
    return paged(page, version_view)


async def set_default(request: ApiRequest[NoQuery, None]) -> VersionView:
    return await _set_default(request, request.path["version"])


async def unset_default(request: ApiRequest[NoQuery, None]) -> VersionView:
    return await _set_default(request, "")


async def _set_default(request: ApiRequest[NoQuery, None], version: str) -> VersionView:
    workflow = canonical_type(request.path["workflow"])
    return version_view(await request.data.engine.versions.set_default(request.namespace, workflow, version))


async def deprecate(request: ApiRequest[NoQuery, DeprecateIn]) -> VersionView:
    undo = request.body.undo
    workflow, version = canonical_type(request.path["workflow"]), request.path["version"]
    return version_view(await request.data.engine.versions.deprecate(request.namespace, workflow, version, undo=undo))


ROUTES = (
    Route(
        method="GET",
        path="/versions",
        handler=list_all,
        scope=Scope.READ,
        summary="List versions of all workflow types, latest first",
        query=VersionListQuery,
        answer=Paged[VersionView],
        large=True,
    ),
    Route(
        method="GET",
        path="/workflows/{workflow}/versions",
        handler=list_of_type,
        scope=Scope.READ,
        summary="List versions of a workflow type, latest first",
        query=PageQuery,
        answer=Paged[VersionView],
        large=True,
    ),
    Route(
        method="POST",
        path="/workflows/{workflow}/versions/{version}/default",
        handler=set_default,
        scope=Scope.ADMIN,
        summary="Set the version that new runs get if they ask for none",
        answer=VersionView,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.PRECONDITION_FAILED),
    ),
    Route(
        method="DELETE",
        path="/workflows/{workflow}/versions/default",
        handler=unset_default,
        scope=Scope.ADMIN,
        summary="Set no version: new runs get the highest that is not deprecated. Returns the default",
        answer=VersionView,
        errors=(ErrorCode.NOT_FOUND,),
    ),
    Route(
        method="POST",
        path="/workflows/{workflow}/versions/{version}/deprecate",
        handler=deprecate,
        scope=Scope.ADMIN,
        summary="Deprecate a version: it takes no new runs, those that are there finish. Or undo that",
        body=DeprecateIn,
        answer=VersionView,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.PRECONDITION_FAILED),
    ),
)
