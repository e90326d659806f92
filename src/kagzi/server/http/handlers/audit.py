"""/audit: the changes that administrators made. `namespace=*` is every namespace."""

from ....core.access import Scope
from ..route import ApiRequest, Route
from ..views.common import Paged, paged, timestamp
from ..views.keys import AuditQuery, AuditView, audit_view


async def list_audit(request: ApiRequest[AuditQuery, None]) -> Paged[AuditView]:
    """Newest first."""
    query = request.query
    page = await request.data.engine.audit.list(
        request.namespace,
        query.page,
        since=timestamp(query.since, "since"),
        until=timestamp(query.until, "until"),
    )
    return paged(page, audit_view)


ROUTES = (
    Route(
        method="GET",
        path="/audit",
        handler=list_audit,
        scope=Scope.ADMIN,
        summary="List administrative changes",
        query=AuditQuery,
        answer=Paged[AuditView],
        large=True,
    ),
)
