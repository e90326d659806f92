"""WorkflowService: what clients do with runs. Decodes the request, calls the engine, encodes the response."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypedDict

from ....core import limits
from ....core.errors import InvalidArgument, KagziError
from ....core.records import RunEnd, RunKey
from ....core.run.commands import StartRequest
from ....core.run.outcomes import Existing, Started
from ....engine import RUN_WAITS, Engine, Named
from ....engine.checks.requests import batch_size
from ....v1 import workflow_pb2 as pb
from ....wire.common import QUEUE_IGNORED, read_duration_ms, read_payload, write_error, write_time_if
from ....wire.enums import RUN_STATUS_TO_WIRE
from ....wire.runs import (
    read_filter,
    read_order,
    read_replacement,
    read_signal,
    read_start,
    read_where,
    write_explanation,
    write_outcome,
    write_run,
    write_started,
)
from ....wire.status import detail_of
from ..answer_budget import Answers
from ..deadlines import Deadlines
from ..incidents import Incidents
from ..interceptor import Context
from ..paging import read_page, write_page
from ..wait_stream import WaitStream, WaitStreams
from ..watch_stream import WatchStream
from .bulk import BulkService
from .transfers import TransferService


class WorkflowService(BulkService, TransferService):
    """`url_of` returns the URL of a run's page."""

    def __init__(
        self,
        engine: Engine,
        *,
        url_of: Callable[[RunKey], str],
        deadlines: Deadlines,
        incidents: Incidents,
        answers: Answers,
        exports: Answers,
    ) -> None:
        self._runs = engine.runs
        self._control = engine.control
        self._bulk = engine.bulk
        self._transfers = engine.transfers
        self._explanations = engine.explanations
        self._watching = engine.watching
        self._served = engine.served
        self._admit = engine.namespaces.admit
        self._url_of = url_of
        self._deadlines = deadlines
        self._incidents = incidents
        self._answers = answers
        self._exports = exports
        self._wait_streams = WaitStreams()

    async def StartWorkflow(self, request: pb.StartWorkflowRequest) -> pb.StartWorkflowResponse:
        start = read_start(request)
        answer = self._started(await self._runs.start(start), start.namespace)
        await self._warn([(start, answer)])
        return answer

    async def StartBatch(self, request: pb.StartBatchRequest) -> pb.StartBatchResponse:
        namespace = request.namespace_id
        batch_size(request.starts, limits.START_BATCH_ITEMS, "starts")  # before each of them is read
        _check_places(request)
        read = [_read_or_refuse(start, namespace) for start in request.starts]
        outcomes = iter(await self._runs.start_many([item for item in read if not isinstance(item, KagziError)]))
        response = pb.StartBatchResponse()
        started: list[tuple[StartRequest, pb.StartWorkflowResponse]] = []
        for start in read:
            item = response.items.add()
            outcome = start if isinstance(start, KagziError) else next(outcomes)
            if isinstance(outcome, KagziError):
                item.error.CopyFrom(write_error(detail_of(self._incidents.public_error("StartBatch", outcome))))
            elif isinstance(start, StartRequest):
                self._write_started(outcome, namespace, item.started)
                started.append((start, item.started))
        await self._warn(started)
        response.subscribed = self._subscribe(request, response.items)
        return response

    def _subscribe(self, request: pb.StartBatchRequest, items: Sequence[pb.StartBatchResponse.Item]) -> bool:
        """Returns whether the caller's wait stream now waits for the started runs."""
        run_ids = [run_id for place in request.waited if (run_id := items[place].started.run_id)]
        return bool(run_ids) and self._wait_streams.subscribe(request.namespace_id, request.wait_stream_id, run_ids)

    async def GetWorkflow(self, request: pb.GetWorkflowRequest) -> pb.GetWorkflowResponse:
        record = await self._runs.get(**_run_of(request))
        return pb.GetWorkflowResponse(workflow=write_run(record, url=self._url_of(record.run)))

    async def ListWorkflows(self, request: pb.ListWorkflowsRequest) -> pb.ListWorkflowsResponse:
        where, order = read_filter(request), read_order(request)
        page = await self._runs.list(request.namespace_id, where, read_page(request.page), order=order)
        runs = [write_run(record, url=self._url_of(record.run)) for record in page.rows]
        return pb.ListWorkflowsResponse(workflows=runs, page=write_page(page))

    async def CancelWorkflow(self, request: pb.CancelWorkflowRequest) -> pb.CancelWorkflowResponse:
        """`request_id` is not stored: the operation is idempotent, and a run with a cancellation request cannot
        continue as new."""
        status = await self._control.cancel(**_run_of(request), reason=request.reason)
        return pb.CancelWorkflowResponse(status=RUN_STATUS_TO_WIRE[status])

    async def TerminateWorkflow(self, request: pb.TerminateWorkflowRequest) -> pb.TerminateWorkflowResponse:
        """`request_id`: as in CancelWorkflow."""
        status = await self._control.terminate(**_run_of(request), reason=request.reason)
        return pb.TerminateWorkflowResponse(status=RUN_STATUS_TO_WIRE[status])

    async def PauseWorkflow(self, request: pb.PauseWorkflowRequest) -> pb.PauseWorkflowResponse:
        status = await self._control.pause(**_run_of(request), reason=request.reason)
        return pb.PauseWorkflowResponse(status=RUN_STATUS_TO_WIRE[status])

    async def ResumeWorkflow(self, request: pb.ResumeWorkflowRequest) -> pb.ResumeWorkflowResponse:
        status = await self._control.resume(**_run_of(request))
        return pb.ResumeWorkflowResponse(status=RUN_STATUS_TO_WIRE[status])

    async def AdoptWorkflow(self, request: pb.AdoptWorkflowRequest) -> pb.AdoptWorkflowResponse:
        status = await self._control.adopt(**_run_of(request), build_id=request.build_id, reason=request.reason)
        return pb.AdoptWorkflowResponse(status=RUN_STATUS_TO_WIRE[status])

    async def RetryWorkflow(self, request: pb.RetryWorkflowRequest) -> pb.RetryWorkflowResponse:
        status = await self._control.retry(
            **_run_of(request), from_step=request.from_step, request_id=request.request_id
        )
        return pb.RetryWorkflowResponse(status=RUN_STATUS_TO_WIRE[status])

    async def WakeStep(self, request: pb.WakeStepRequest) -> pb.WakeStepResponse:
        woken = await self._control.wake(**_run_of(request), step_id=request.step_id, request_id=request.request_id)
        return pb.WakeStepResponse(
            status=RUN_STATUS_TO_WIRE[woken.status],
            woken=woken.woken,
            step_id=woken.step_id,
            due_at=write_time_if(woken.due_at),
            run_id=woken.run.run_id,
        )

    async def ForkWorkflow(self, request: pb.ForkWorkflowRequest) -> pb.ForkWorkflowResponse:
        namespace = request.namespace_id
        forked = await self._control.fork(
            namespace,
            request.run_id,
            from_step=request.from_step,
            outputs={step_id: read_payload(output) for step_id, output in request.outputs.items()},
            version=request.version,
            workflow_id=request.workflow_id,
            request_id=request.request_id,
        )
        url = self._url_of(RunKey(namespace, forked.run_id))
        return pb.ForkWorkflowResponse(run_id=forked.run_id, workflow_id=forked.workflow_id, url=url)

    async def SignalWorkflow(self, request: pb.SignalWorkflowRequest) -> pb.SignalWorkflowResponse:
        signalled = await self._control.signal(**_run_of(request), signal=read_signal(request))
        return pb.SignalWorkflowResponse(delivered=signalled.delivered, run_id=signalled.run.run_id)

    async def ReplaceSignal(self, request: pb.ReplaceSignalRequest) -> pb.ReplaceSignalResponse:
        replaced = await self._control.replace_signal(**_run_of(request), change=read_replacement(request))
        return pb.ReplaceSignalResponse(
            run_id=replaced.run.run_id, status=RUN_STATUS_TO_WIRE[replaced.status], resumed=replaced.resumed
        )

    async def SignalWithStart(self, request: pb.SignalWithStartRequest) -> pb.SignalWithStartResponse:
        start = read_start(request.start, batch_namespace=request.namespace_id)
        outcome = await self._runs.signal_with_start(start, read_signal(request))
        answer = self._started(outcome, start.namespace)
        await self._warn([(start, answer)])
        return pb.SignalWithStartResponse(started=answer)

    async def CountWorkflows(self, request: pb.CountWorkflowsRequest) -> pb.CountWorkflowsResponse:
        count, capped = await self._runs.count(request.namespace_id, read_where(request.filter))
        return pb.CountWorkflowsResponse(count=count, capped=capped)

    async def ExplainWorkflow(self, request: pb.ExplainWorkflowRequest) -> pb.ExplainWorkflowResponse:
        explanation = await self._explanations.explain(**_run_of(request))
        return write_explanation(explanation)

    async def Wait(self, request: pb.WaitRequest, remaining_s: float | None) -> pb.WaitResponse:
        end = await self._deadlines.poll(
            lambda wait_ms: self._runs.wait(**_run_of(request), timeout_ms=wait_ms),
            wait_ms=_read_wait_ms(request),
            remaining_s=remaining_s,
        )
        if isinstance(end, RunEnd):
            return pb.WaitResponse(ended=True, outcome=write_outcome(end), status=RUN_STATUS_TO_WIRE[end.status])
        return pb.WaitResponse(ended=False, status=RUN_STATUS_TO_WIRE[end])

    async def Watch(self, context: Context) -> None:
        await WatchStream(self._watching, context, self._deadlines, self._admit).serve()

    async def WaitStream(self, context: Context) -> None:
        await WaitStream(
            self._runs, context, self._deadlines, self._admit, answers=self._answers, streams=self._wait_streams
        ).serve()

    async def _warn(self, started: Sequence[tuple[StartRequest, pb.StartWorkflowResponse]]) -> None:
        """Adds a warning for types that no worker serves. Costs nothing for runs that a worker already has."""
        waiting = [
            (start, answer)
            for start, answer in started
            if not answer.already_exists and answer.status != pb.WORKFLOW_STATUS_RUNNING
        ]
        for start, answer in started:
            if start.task_queue:
                answer.warning = QUEUE_IGNORED
        if waiting:
            named = [Named(start.namespace, start.workflow_type, start.version) for start, _ in waiting]
            for (_, answer), warning in zip(waiting, await self._served.warnings(named, RUN_WAITS), strict=True):
                answer.warning = " ".join(filter(None, (answer.warning, warning)))

    def _started(self, outcome: Started | Existing, namespace: str) -> pb.StartWorkflowResponse:
        answer = pb.StartWorkflowResponse()
        self._write_started(outcome, namespace, answer)
        return answer

    def _write_started(self, outcome: Started | Existing, namespace: str, answer: pb.StartWorkflowResponse) -> None:
        write_started(outcome, answer, url=self._url_of(RunKey(namespace, outcome.run_id)))


class RunRequest(Protocol):
    """A request about a run, by its id or by its workflow_id."""

    @property
    def namespace_id(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def workflow_id(self) -> str: ...


class RunOf(TypedDict):
    namespace: str
    run_id: str
    workflow_id: str


def _run_of(request: RunRequest) -> RunOf:
    return {"namespace": request.namespace_id, "run_id": request.run_id, "workflow_id": request.workflow_id}


def _read_or_refuse(start: pb.StartWorkflowRequest, namespace: str) -> StartRequest | InvalidArgument:
    try:
        return read_start(start, batch_namespace=namespace)
    except InvalidArgument as error:
        return error


def _check_places(request: pb.StartBatchRequest) -> None:
    for place in request.waited:
        if not 0 <= place < len(request.starts):
            raise InvalidArgument(
                f"waited={place} is outside 0..{len(request.starts) - 1}, the places of starts.", field="waited"
            )


def _read_wait_ms(request: pb.WaitRequest) -> int:
    return read_duration_ms(request.timeout) if request.HasField("timeout") else limits.POLL_WAIT_MS
