"""What a client asks a server about runs, one method a question."""

from collections.abc import AsyncIterator
from urllib.parse import urlencode

from ..core.errors import NotFound
from ..core.ids import is_uuid
from ..core.records import DEFAULT_NAMESPACE, RunEnd, RunFilter, RunRecord, StepRecord
from ..v1 import admin_pb2, common_pb2
from ..v1 import workflow_pb2 as pb
from ..wire.runs import read_run, write_filter
from ..wire.steps import read_step
from .connection import Connection
from .waits import Waits

_PAGE_ROWS = 200


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
        token = ""
        remaining = limit
        while remaining is None or remaining > 0:
            size = _PAGE_ROWS if remaining is None else min(remaining, _PAGE_ROWS)
            request = pb.ListWorkflowsRequest(
                namespace_id=namespace, filter=letter, page=common_pb2.PageRequest(page_size=size, page_token=token)
            )
            response = await self._connection.call(lambda link: link.workflows.ListWorkflows, request)
            for run in response.workflows:
                yield read_run(run)
            token = response.page.next_page_token
            if remaining is not None:
                remaining -= len(response.workflows)
            if not token or not response.page.has_more:
                return

    async def cancel(self, namespace: str, run_id: str, reason: str, request_id: str) -> None:
        request = pb.CancelWorkflowRequest(namespace_id=namespace, run_id=run_id, reason=reason, request_id=request_id)
        await self._connection.call(lambda link: link.workflows.CancelWorkflow, request)

    async def ended(self, namespace: str, run_id: str) -> RunEnd:
        return await self._waits.ended(namespace, run_id)

    async def steps(self, namespace: str, run_id: str) -> "tuple[StepRecord, ...]":
        """All of them, in the order in which they were begun."""
        steps: list[StepRecord] = []
        token = ""
        while True:
            request = admin_pb2.ListStepsRequest(
                namespace_id=namespace,
                run_id=run_id,
                include_payloads=True,
                page=common_pb2.PageRequest(page_size=_PAGE_ROWS, page_token=token),
            )
            response = await self._connection.call(lambda link: link.admin.ListSteps, request)
            steps.extend(read_step(step) for step in response.steps)
            token = response.page.next_page_token
            if not token or not response.page.has_more:
                return tuple(steps)
