"""What a client asks a server about runs, one method a question."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from urllib.parse import urlencode

from ...core.commands import SignalGiven, SignalReplacement, StartRequest
from ...core.errors import NotFound
from ...core.ids import is_uuid
from ...core.records import DEFAULT_NAMESPACE, Payload, RunEnd, RunFilter, RunRecord, StepRecord
from ...core.states import RunStatus
from ...v1 import admin_pb2
from ...v1 import workflow_pb2 as pb
from ...v1.common_pb2 import PageRequest
from ...wire.common import write_payload
from ...wire.runs import read_run, read_run_status, write_filter, write_start
from ...wire.steps import read_step
from ..transport.connection import Connection
from .explanation import Explanation
from .paging import all_rows
from .waits import Waits
from .watching import Event, Watch


class RunCalls:
    def __init__(self, connection: Connection, waits: Waits) -> None:
        self._connection = connection
        self._waits = waits

    def url(self, namespace: str, run_id: str) -> str:
        """The page of a run, at the server that was connected to; empty if it has none."""
        if not self._connection.http_url:
            return ""
        suffix = "" if namespace == DEFAULT_NAMESPACE else f"?{urlencode({'namespace': namespace})}"
        return f"{self._connection.http_url}/runs/{run_id}{suffix}"

    async def find(self, namespace: str, id: str) -> RunRecord:
        """The run with this id, else the latest one with this workflow_id. Raises NotFound."""
        if not is_uuid(id):
            return await self._get(pb.GetWorkflowRequest(namespace_id=namespace, workflow_id=id))
        try:
            return await self.get(namespace, id)
        except NotFound as missing:
            try:
                return await self._get(pb.GetWorkflowRequest(namespace_id=namespace, workflow_id=id))
            except NotFound:
                raise missing from None

    async def get(self, namespace: str, run_id: str) -> RunRecord:
        return await self._get(pb.GetWorkflowRequest(namespace_id=namespace, run_id=run_id))

    async def _get(self, request: pb.GetWorkflowRequest) -> RunRecord:
        response = await self._connection.call(lambda link: link.workflows.GetWorkflow, request)
        return read_run(response.workflow)

    async def list(self, namespace: str, where: RunFilter, limit: int | None) -> AsyncIterator[RunRecord]:
        """Newest first, page by page."""
        letter = write_filter(where)

        async def ask(page: PageRequest) -> pb.ListWorkflowsResponse:
            request = pb.ListWorkflowsRequest(namespace_id=namespace, filter=letter, page=page)
            return await self._connection.call(lambda link: link.workflows.ListWorkflows, request)

        async for run in all_rows(ask, lambda answer: answer.workflows, limit):
            yield read_run(run)

    async def count(self, namespace: str, where: RunFilter) -> int:
        """How many there are; a server may stop counting at its cap."""
        request = pb.CountWorkflowsRequest(namespace_id=namespace, filter=write_filter(where))
        return (await self._connection.call(lambda link: link.workflows.CountWorkflows, request)).count

    async def explain(self, namespace: str, run_id: str) -> Explanation:
        request = pb.ExplainWorkflowRequest(namespace_id=namespace, run_id=run_id)
        answer = await self._connection.call(lambda link: link.workflows.ExplainWorkflow, request)
        return Explanation(answer.sentence, reason=answer.reason, facts=dict(answer.facts), remedy=answer.remedy)

    async def ended(self, namespace: str, run_id: str) -> RunEnd:
        """How the run ended, or the last of those it was continued as."""
        end = await self._waits.ended(namespace, run_id)
        while end.continued_as:
            end = await self._waits.ended(namespace, end.continued_as)
        return end

    def events(self, namespace: str, run_id: str, after: int) -> AsyncGenerator[Event]:
        """What happened beyond the number `after`, and what happens, until the run has ended."""
        return Watch(self._connection, namespace, run_id, after).events()

    # --- changing ------------------------------------------------------------------------------------------------------

    async def cancel(self, namespace: str, run_id: str, reason: str, request_id: str) -> RunStatus:
        request = pb.CancelWorkflowRequest(namespace_id=namespace, run_id=run_id, reason=reason, request_id=request_id)
        return read_run_status(
            (await self._connection.call(lambda link: link.workflows.CancelWorkflow, request)).status
        )

    async def terminate(self, namespace: str, run_id: str, reason: str, request_id: str) -> RunStatus:
        request = pb.TerminateWorkflowRequest(
            namespace_id=namespace, run_id=run_id, reason=reason, request_id=request_id
        )
        answer = await self._connection.call(lambda link: link.workflows.TerminateWorkflow, request)
        return read_run_status(answer.status)

    async def pause(self, namespace: str, run_id: str, reason: str) -> RunStatus:
        request = pb.PauseWorkflowRequest(namespace_id=namespace, run_id=run_id, reason=reason)
        return read_run_status((await self._connection.call(lambda link: link.workflows.PauseWorkflow, request)).status)

    async def resume(self, namespace: str, run_id: str) -> RunStatus:
        request = pb.ResumeWorkflowRequest(namespace_id=namespace, run_id=run_id)
        return read_run_status(
            (await self._connection.call(lambda link: link.workflows.ResumeWorkflow, request)).status
        )

    async def retry(self, namespace: str, run_id: str, from_step: str, request_id: str) -> RunStatus:
        request = pb.RetryWorkflowRequest(
            namespace_id=namespace, run_id=run_id, from_step=from_step, request_id=request_id
        )
        return read_run_status((await self._connection.call(lambda link: link.workflows.RetryWorkflow, request)).status)

    async def fork(
        self,
        namespace: str,
        run_id: str,
        from_step: str,
        outputs: Mapping[str, Payload],
        *,
        version: str,
        workflow_id: str,
        request_id: str,
    ) -> pb.ForkWorkflowResponse:
        request = pb.ForkWorkflowRequest(
            namespace_id=namespace,
            run_id=run_id,
            from_step=from_step,
            outputs={step_id: write_payload(output) for step_id, output in outputs.items()},
            version=version,
            workflow_id=workflow_id,
            request_id=request_id,
        )
        return await self._connection.call(lambda link: link.workflows.ForkWorkflow, request)

    async def signal(self, namespace: str, signal: SignalGiven, *, run_id: str = "", workflow_id: str = "") -> str:
        """Answers the id of the run that got it."""
        request = pb.SignalWorkflowRequest(
            namespace_id=namespace,
            run_id=run_id,
            workflow_id=workflow_id,
            signal_name=signal.name,
            payload=write_payload(signal.payload),
            request_id=signal.request_id,
        )
        return (await self._connection.call(lambda link: link.workflows.SignalWorkflow, request)).run_id

    async def replace_signal(
        self, namespace: str, change: SignalReplacement, *, run_id: str = "", workflow_id: str = ""
    ) -> pb.ReplaceSignalResponse:
        request = pb.ReplaceSignalRequest(
            namespace_id=namespace,
            run_id=run_id,
            workflow_id=workflow_id,
            signal_name=change.name,
            request_id=change.request_id,
        )
        if change.payload is None:
            request.drop = True
        else:
            request.payload.CopyFrom(write_payload(change.payload))
        return await self._connection.call(lambda link: link.workflows.ReplaceSignal, request)

    async def signal_with_start(self, start: StartRequest, signal: SignalGiven) -> pb.StartWorkflowResponse:
        request = pb.SignalWithStartRequest(
            start=write_start(start),
            signal_name=signal.name,
            payload=write_payload(signal.payload),
            request_id=signal.request_id,
            namespace_id=start.namespace,
        )
        return (await self._connection.call(lambda link: link.workflows.SignalWithStart, request)).started

    # --- steps ---------------------------------------------------------------------------------------------------------

    async def steps(self, namespace: str, run_id: str) -> "tuple[StepRecord, ...]":
        """All of them, in the order in which they were begun."""

        async def ask(page: PageRequest) -> admin_pb2.ListStepsResponse:
            request = admin_pb2.ListStepsRequest(
                namespace_id=namespace, run_id=run_id, include_payloads=True, page=page
            )
            return await self._connection.call(lambda link: link.admin.ListSteps, request)

        return tuple([read_step(step) async for step in all_rows(ask, lambda answer: answer.steps)])
