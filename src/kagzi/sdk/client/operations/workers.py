"""`client.workers`: lists workers and their events, and drains them."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....core.errors import InvalidArgument
from ....core.public import exported
from ....core.states import WorkerStatus
from ....core.workers import WorkerEventKind
from ....v1 import admin_pb2 as pb
from ....v1 import worker_pb2 as pb_worker
from ....wire.enums import WORKER_STATUS_FROM_WIRE, WORKER_STATUS_TO_WIRE
from ....wire.fields import reader
from ...workflow.workflow import Workflow
from . import Operations


@exported
@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker at the time of the call."""

    id: str  #: its id, new for each start
    status: WorkerStatus  #: its state
    hostname: str  #: the machine it runs on
    pid: int  #: its process
    build_id: str  #: which build of the code it runs
    sdk_version: str  #: the version of Kagzi
    workflows: tuple[tuple[str, str], ...]  #: the workflows it serves: pairs of name and version
    labels: Mapping[str, str]  #: its labels
    max_concurrent: int  #: how many runs it holds at most
    active: int  #: how many it holds now
    completed: int  #: runs it completed
    failed: int  #: runs that failed on it
    registered_at: datetime  #: when it started
    last_seen_at: datetime  #: when a server last received a message from it


@exported
@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """An event of a worker."""

    worker_id: str  #: the worker
    kind: WorkerEventKind  #: "registered", "reconnected", "draining", "drained", "left", "lost" or "trouble"
    at: datetime  #: when it happened
    detail: str  #: a description


read_worker_info = reader(
    pb_worker.Worker,
    WorkerInfo,
    names={
        "id": "worker_id",
        "sdk_version": "version",
        "workflows": "served",
        "active": "active_count",
        "completed": "total_completed",
        "failed": "total_failed",
        "last_seen_at": "last_heartbeat_at",
    },
    unread=("namespace_id", "task_queue", "workflow_types", "queue_concurrency_limit", "workflow_type_concurrency"),
    status=lambda message: WORKER_STATUS_FROM_WIRE.get(message.status, WorkerStatus.OFFLINE),
    workflows=lambda message: tuple((pair.workflow_type, pair.version) for pair in message.served),
)
read_worker_event = reader(pb.WorkerEvent, WorkerEvent)


class Workers(Operations):
    """`client.workers`: the workers of the namespace, and their events."""

    async def list(
        self,
        *,
        status: WorkerStatus | str | None = None,
        workflow: Workflow[Any, Any] | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[WorkerInfo]:
        """Workers, the newest registration first. Workers that left stay in the list for 30 days.

        Args:
            status: "online", "draining" or "offline". Default: any.
            workflow: Only workers that serve this workflow.
            limit: Return at most this many. Default: all.
        """
        request = pb.ListWorkersRequest(
            namespace_id=self._namespace,
            task_queue=workflow.name if isinstance(workflow, Workflow) else workflow,
            status_filter=None if status is None else WORKER_STATUS_TO_WIRE[_status(status)],
        )
        rows = self._backend.rows(lambda link: link.admin.ListWorkers, request, lambda page: page.workers, limit)
        async for worker in rows:
            yield read_worker_info(worker)

    async def get(self, id: str) -> WorkerInfo:
        """The worker with this `id`. Raises NotFound."""
        request = pb.GetWorkerRequest(namespace_id=self._namespace, worker_id=id)
        response = await self._backend.call(lambda link: link.admin.GetWorker, request)
        return read_worker_info(response.worker)

    async def events(self, id: str | None = None, *, limit: int | None = None) -> AsyncIterator[WorkerEvent]:
        """Events of the worker `id`, or of all, latest first, at most `limit`. Raises NotFound for an unknown
        worker."""
        request = pb.ListWorkerEventsRequest(namespace_id=self._namespace, worker_id=id or "")
        rows = self._backend.rows(lambda link: link.admin.ListWorkerEvents, request, lambda page: page.events, limit)
        async for event in rows:
            yield read_worker_event(event)

    async def drain(self, id: str) -> WorkerInfo:
        """Ask the worker `id` to stop: it takes no more work, finishes what it can within its `shutdown_grace`, hands
        back the rest and exits. Returns at once; its status is "offline" when it has left. Raises NotFound."""
        request = pb.DrainWorkerRequest(namespace_id=self._namespace, worker_id=id)
        response = await self._backend.call(lambda link: link.admin.DrainWorker, request)
        return read_worker_info(response.worker)


def _status(status: WorkerStatus | str) -> WorkerStatus:
    try:
        return WorkerStatus(status)
    except ValueError:
        words = ", ".join(WorkerStatus)
        raise InvalidArgument(f"status={status!r} must be one of {words}.", field="status") from None
