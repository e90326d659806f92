"""Operations on all runs that a filter matches."""

from ....core.access import Scope
from ....core.bulk import BulkAction, filter_digest, meant
from ....core.error_details import ErrorCode
from ....core.errors import InvalidArgument, PreconditionFailed
from ....core.records import RunFilter
from ....engine import PageAsk
from ..route import Answer, ApiRequest, NoQuery, Route
from ..views.common import Paged, PageQuery, paged
from ..views.operations import OperationIn, OperationView, PreviewView, filter_view, operation_view
from ..views.runs import run_view

SAMPLES = 5


async def list_operations(request: ApiRequest[PageQuery, None]) -> Paged[OperationView]:
    """Newest first."""
    return paged(await request.data.engine.bulk.list(request.namespace, request.query.page), operation_view)


async def begin(request: ApiRequest[NoQuery, OperationIn]) -> Answer:
    """202: it runs in the background. With `dry_run` 200: the runs that it would affect, and the `filter_digest` to
    send with the operation itself."""
    body, engine = request.body, request.data.engine
    where, action = body.filter.where, body.action
    engine.bulk.check(request.namespace, where, body.reason)
    digest = filter_digest(request.namespace, action, where)
    if body.dry_run:
        return Answer(await _preview(request, action, meant(action, where), digest))
    if not body.filter_digest:
        raise InvalidArgument(
            "filter_digest is missing. Send the operation with dry_run first, and the digest that it answers with the "
            "operation itself.",
            field="filter_digest",
        )
    if body.filter_digest != digest:
        raise PreconditionFailed(
            "filter_digest is of another operation: the namespace, the action or the filter differ from what was "
            "shown. Send this one with dry_run and look again.",
            field="filter_digest",
        )
    operation = await engine.bulk.start(
        request.namespace, action, where, reason=body.reason, request_id=request.request_id
    )
    return Answer(operation_view(operation), 202, {"location": f"/api/v1/operations/{operation.operation_id}"})


async def _preview(
    request: ApiRequest[NoQuery, OperationIn], action: BulkAction, where: RunFilter, digest: str
) -> PreviewView:
    page = await request.data.engine.runs.list(request.namespace, where, PageAsk(size=SAMPLES, count=True))
    return PreviewView(
        action=action,
        filter=filter_view(where),
        count=page.total or 0,
        capped=page.total_is_capped,
        samples=tuple(run_view(run, request.data) for run in page.rows),
        filter_digest=digest,
    )


async def get(request: ApiRequest[NoQuery, None]) -> OperationView:
    """The operation and its progress."""
    return operation_view(await request.data.engine.bulk.get(request.namespace, request.path["operation"]))


async def stop(request: ApiRequest[NoQuery, None]) -> OperationView:
    """Changes already made are kept."""
    return operation_view(await request.data.engine.bulk.stop(request.namespace, request.path["operation"]))


ROUTES = (
    Route(
        "GET",
        "/operations",
        list_operations,
        Scope.READ,
        "List operations on many runs",
        query=PageQuery,
        answer=Paged[OperationView],
        large=True,
    ),
    Route(
        "POST",
        "/operations",
        begin,
        Scope.CLIENT,
        "Cancel, terminate, retry, resume or delete many runs",
        body=OperationIn,
        answer=OperationView,
        status=202,
        other_answers={200: PreviewView},
        errors=(ErrorCode.PRECONDITION_FAILED,),
    ),
    Route("GET", "/operations/{operation}", get, Scope.READ, "Get an operation", answer=OperationView),
    Route("POST", "/operations/{operation}/stop", stop, Scope.CLIENT, "Stop an operation", answer=OperationView),
)
