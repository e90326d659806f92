"""Steps of a run."""

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ..route import ApiRequest, Route
from ..run_names import run_id_of, run_of
from ..views.common import Paged, moment, paged
from ..views.steps import (
    StepLogsQuery,
    StepLogView,
    StepQuery,
    StepsQuery,
    StepView,
    WakeQuery,
    WokenView,
    step_log_view,
    step_view,
)
from ..views.verbs import NothingIn


async def list_steps(request: ApiRequest[StepsQuery, None]) -> Paged[StepView]:
    """In the order in which they were begun; or those that retries of the run have discarded."""
    page = await request.data.engine.steps.list(
        request.namespace,
        await run_id_of(request),
        name=request.query.name or None,
        page=request.query.page,
        payloads=request.query.payloads,
        forgotten=request.query.forgotten,
    )
    return paged(page, step_view)


async def get(request: ApiRequest[StepQuery, None]) -> StepView:
    """The step with its values and earlier attempts."""
    run_id = await run_id_of(request)
    query = request.query
    step = await request.data.engine.steps.get(request.namespace, run_id, query.id, retry_seq=query.retry_seq)
    return step_view(step)


async def list_logs(request: ApiRequest[StepLogsQuery, None]) -> Paged[StepLogView]:
    """The last log lines of each step, by step id; or of one step."""
    page = await request.data.engine.workers.step_logs.list(
        request.namespace, await run_id_of(request), step_id=request.query.id, page=request.query.page
    )
    return paged(page, step_log_view)


async def wake(request: ApiRequest[WakeQuery, NothingIn]) -> WokenView:
    """Makes a retry, a sleep or a delayed start due now."""
    woken = await request.data.engine.control.wake(
        **run_of(request), step_id=request.query.id, request_id=request.request_id
    )
    return WokenView(
        run_id=woken.run.run_id,
        step=woken.step_id or None,
        woken=woken.woken,
        status=woken.status,
        due_at=moment(woken.due_at),
    )


ROUTES = (
    Route(
        "GET",
        "/runs/{run}/steps",
        list_steps,
        Scope.READ,
        "List its steps",
        query=StepsQuery,
        answer=Paged[StepView],
        large=True,
    ),
    Route("GET", "/runs/{run}/step", get, Scope.READ, "Get a step", query=StepQuery, answer=StepView, large=True),
    Route(
        "GET",
        "/runs/{run}/step/logs",
        list_logs,
        Scope.READ,
        "List what its steps logged",
        query=StepLogsQuery,
        answer=Paged[StepLogView],
        large=True,
    ),
    Route(
        "POST",
        "/runs/{run}/step/wake",
        wake,
        Scope.CLIENT,
        "Wake a step, or the run",
        query=WakeQuery,
        body=NothingIn,
        answer=WokenView,
        errors=(ErrorCode.CONFLICT, ErrorCode.PRECONDITION_FAILED),
    ),
)
