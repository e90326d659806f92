"""Actions on a run: signal, cancel, pause, adopt, retry, fork. All are idempotent."""

from typing import Any

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ....core.records import RunKey
from ..route import Answer, ApiRequest, NoQuery, Route
from ..run_names import run_id_of, run_of
from ..views.verbs import (
    AdoptIn,
    ForkedView,
    ForkIn,
    NothingIn,
    ReasonIn,
    ReplacedView,
    ReplaceSignalIn,
    RetryRunIn,
    SignalIn,
    SignalledView,
    StatusView,
    outputs_of,
    replacement_of,
    signal_of,
)


async def signal(request: ApiRequest[NoQuery, SignalIn]) -> SignalledView:
    """With a workflow id: to its open run. The same Idempotency-Key is the same signal."""
    control = request.data.engine.control
    sent = signal_of(request.body, request.request_id, request.headers)
    signalled = await control.signal(**run_of(request), signal=sent)
    return SignalledView(run_id=signalled.run.run_id, delivered=signalled.delivered)


async def replace_signal(request: ApiRequest[NoQuery, ReplaceSignalIn]) -> ReplacedView:
    """A run that was paused because of the value resumes."""
    control = request.data.engine.control
    change = replacement_of(request.body, request.request_id)
    replaced = await control.replace_signal(**run_of(request), change=change)
    return ReplacedView(run_id=replaced.run.run_id, status=replaced.status, resumed=replaced.resumed)


async def cancel(request: ApiRequest[NoQuery, ReasonIn]) -> StatusView:
    """Asks the run to stop; it may clean up first."""
    control = request.data.engine.control
    return StatusView(status=await control.cancel(**run_of(request), reason=request.body.reason))


async def terminate(request: ApiRequest[NoQuery, ReasonIn]) -> StatusView:
    """Ends the run at once, without cleanup."""
    control = request.data.engine.control
    return StatusView(status=await control.terminate(**run_of(request), reason=request.body.reason))


async def pause(request: ApiRequest[NoQuery, ReasonIn]) -> StatusView:
    """A run that a worker holds pauses when the worker releases it."""
    control = request.data.engine.control
    return StatusView(status=await control.pause(**run_of(request), reason=request.body.reason))


async def resume(request: ApiRequest[NoQuery, NothingIn]) -> StatusView:
    """Has no effect on a run that is not paused."""
    return StatusView(status=await request.data.engine.control.resume(**run_of(request)))


async def adopt(request: ApiRequest[NoQuery, AdoptIn]) -> StatusView:
    """Resumes a paused run, on workers of that build only. Audited."""
    control, body = request.data.engine.control, request.body
    return StatusView(status=await control.adopt(**run_of(request), build_id=body.build_id, reason=body.reason))


async def retry(request: ApiRequest[NoQuery, RetryRunIn]) -> StatusView:
    """Continues a failed run at the step that failed."""
    control = request.data.engine.control
    status = await control.retry(**run_of(request), from_step=request.body.from_step, request_id=request.request_id)
    return StatusView(status=status)


async def fork(request: ApiRequest[NoQuery, ForkIn]) -> Answer:
    """Starts a new run with the recorded results of this one."""
    forked = await request.data.engine.control.fork(
        request.namespace,
        await run_id_of(request),
        from_step=request.body.from_step,
        outputs=outputs_of(request.body),
        version=request.body.version,
        workflow_id=request.body.workflow_id,
        request_id=request.request_id,
    )
    url = request.data.info.url_of(RunKey(request.namespace, forked.run_id))
    view = ForkedView(run_id=forked.run_id, workflow_id=forked.workflow_id, url=url or None)
    return Answer(view, 201, {"location": f"/api/v1/runs/{forked.run_id}"})


def _verb(name: str, handler: Any, summary: str, *, body: Any, answer: Any = StatusView, status: int = 200) -> Route:
    return Route(
        "POST",
        f"/runs/{{run}}/{name}",
        handler,
        Scope.CLIENT,
        summary,
        body=body,
        answer=answer,
        status=status,
        errors=(ErrorCode.CONFLICT, ErrorCode.PRECONDITION_FAILED),
    )


ROUTES = (
    _verb("signal", signal, "Send it a signal", body=SignalIn, answer=SignalledView),
    _verb("replace-signal", replace_signal, "Replace a signal's value", body=ReplaceSignalIn, answer=ReplacedView),
    _verb("cancel", cancel, "Cancel it", body=ReasonIn),
    _verb("terminate", terminate, "Terminate it", body=ReasonIn),
    _verb("pause", pause, "Pause it", body=ReasonIn),
    _verb("resume", resume, "Resume it", body=NothingIn),
    _verb("adopt", adopt, "Let it continue with one build only", body=AdoptIn),
    _verb("retry", retry, "Retry it", body=RetryRunIn),
    _verb("fork", fork, "Fork it", body=ForkIn, answer=ForkedView, status=201),
)
