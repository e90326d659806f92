"""/inbox: runs that wait for a signal from people, and the signals they wait for, in one request."""

from ....core.access import Scope
from ....core.records import RunFilter
from ....core.workflow_types.names import canonical_type
from ..route import ApiRequest, Route
from ..views.common import Paged, paged
from ..views.inbox import InboxQuery, InboxRow, inbox_row


async def list_inbox(request: ApiRequest[InboxQuery, None]) -> Paged[InboxRow]:
    """The newest run first. Answer with `POST /runs/{run}/signal`."""
    data, namespace = request.data, request.namespace
    where = RunFilter(waiting=True, workflow_types=tuple(map(canonical_type, request.query.workflow)))
    page = await data.engine.runs.list(namespace, where, request.query.page)
    waits = await data.engine.steps.signal_waits(namespace, page.rows)
    return paged(page, lambda run: inbox_row(run, waits.get(run.run.run_id, ()), data))


ROUTES = (
    Route(
        "GET",
        "/inbox",
        list_inbox,
        Scope.READ,
        "List runs that wait for a signal, with what they wait for",
        query=InboxQuery,
        answer=Paged[InboxRow],
        large=True,
    ),
)
