"""`client.workers`: lists workers and their events, and drains them."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....core.errors import InvalidArgument
from ....core.public import exported
from ....core.records import WorkerRecord
from ....core.states import WorkerStatus
from ....core.times import to_datetime
from ....core.workers import WorkerEventKind
from ....v1 import admin_pb2 as pb
from ....v1.common_pb2 import PageRequest
from ....wire.enums import WORKER_STATUS_TO_WIRE
from ....wire.workers import read_worker, read_worker_event
from ...workflow.workflow import Workflow
from ..backend import Backend
from ..paging import all_rows


@exported
@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker as it was when asked."""

    id: str  #: its id, new for each start
    status: WorkerStatus  #: its state
    hostname: str  #: the machine it runs on
    pid: int  #: its process
    build_id: str  #: which build of the code it runs
    sdk_version: str  #: of Kagzi
    workflows: tuple[tuple[str, str], ...]  #: what it serves: pairs of workflow and version
    labels: Mapping[str, str]  #: its labels
    max_concurrent: int  #: how many runs it holds at most
    active: int  #: how many it holds now
    completed: int  #: runs it completed
    failed: int  #: runs that failed on it
    registered_at: datetime  #: when it started
    last_seen_at: datetime  #: when a server last heard of it


@exported
@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """Something that happened to a worker."""

    worker_id: str  #: the worker
    kind: WorkerEventKind  #: "registered", "reconnected", "draining", "drained", "left", "lost" or "trouble"
    at: datetime  #: when it happened
    detail: str  #: more about it, in words


class Workers:
    """`client.workers`: who executes runs, and what happened to them."""

    def __init__(self, backend: Backend, namespace: str) -> None:
        self._connection = backend.connection
        self._namespace = namespace

    async def list(
        self,
        *,
        status: WorkerStatus | str | None = None,
        workflow: Workflow[Any, Any] | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[WorkerInfo]:
        """Workers, the newest registration first. Those that left stay in the list for 30 days.

        Args:
            status: "online", "draining" or "offline". Default: any.
            workflow: Only workers that serve this workflow.
            limit: Return at most this many. Default: all.
        """
        wanted = None if status is None else WORKER_STATUS_TO_WIRE[_status(status)]

        async def ask(page: PageRequest) -> pb.ListWorkersResponse:
            request = pb.ListWorkersRequest(
                namespace_id=self._namespace, task_queue=_type_of(workflow), status_filter=wanted, page=page
            )
            return await self._connection.call(lambda link: link.admin.ListWorkers, request)

        async for worker in all_rows(ask, lambda response: response.workers, limit):
            yield _info(read_worker(worker))

    async def get(self, id: str) -> WorkerInfo:
        """The worker with this `id`. Raises NotFound."""
        request = pb.GetWorkerRequest(namespace_id=self._namespace, worker_id=id)
        response = await self._connection.call(lambda link: link.admin.GetWorker, request)
        return _info(read_worker(response.worker))

    async def events(self, id: str | None = None, *, limit: int | None = None) -> AsyncIterator[WorkerEvent]:
        """Events of the worker `id`, or of all, latest first, at most `limit`. Raises NotFound for an unknown worker."""

        async def ask(page: PageRequest) -> pb.ListWorkerEventsResponse:
            request = pb.ListWorkerEventsRequest(namespace_id=self._namespace, worker_id=id or "", page=page)
            return await self._connection.call(lambda link: link.admin.ListWorkerEvents, request)

        async for message in all_rows(ask, lambda response: response.events, limit):
            event = read_worker_event(message)
            yield WorkerEvent(event.worker_id, event.kind, to_datetime(event.at), event.detail)

    async def drain(self, id: str) -> WorkerInfo:
        """Ask the worker `id` to stop: it takes no more work, finishes what it can within its `shutdown_grace`, hands
        back the rest and leaves. Returns at once: its status is "offline" when it has left. Raises NotFound."""
        request = pb.DrainWorkerRequest(namespace_id=self._namespace, worker_id=id)
        response = await self._connection.call(lambda link: link.admin.DrainWorker, request)
        return _info(read_worker(response.worker))


def _status(status: WorkerStatus | str) -> WorkerStatus:
    try:
        return WorkerStatus(status)
    except ValueError:
        words = ", ".join(WorkerStatus)
        raise InvalidArgument(f"status={status!r} is none of {words}.", field="status") from None


def _type_of(workflow: Workflow[Any, Any] | str | None) -> str | None:
    return workflow.name if isinstance(workflow, Workflow) else workflow


def _info(record: WorkerRecord) -> WorkerInfo:
    return WorkerInfo(
        id=record.worker_id,
        status=record.status,
        hostname=record.hostname,
        pid=record.pid,
        build_id=record.build_id,
        sdk_version=record.sdk_version,
        workflows=tuple((served.workflow_type, served.version) for served in record.served),
        labels=record.labels,
        max_concurrent=record.max_concurrent,
        active=record.active_count,
        completed=record.total_completed,
        failed=record.total_failed,
        registered_at=to_datetime(record.registered_at),
        last_seen_at=to_datetime(record.last_heartbeat_at),
    )
