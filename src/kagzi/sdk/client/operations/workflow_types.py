"""`client.workflow_types`: workflow types as queues: their limits, depth and state."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....core.errors import InvalidArgument, not_found
from ....core.public import exported
from ....core.times import to_datetime
from ....core.workflow_types.queues import QueueStanding, TypeLimits, WhenFull, WorkflowTypeRecord
from ....v1 import admin_pb2 as pb
from ....v1.common_pb2 import PageRequest
from ....wire.queues import read_standing, read_type, write_limits
from ...workflow.workflow import Workflow
from ..backend import Backend
from ..paging import all_rows
from ..unserved import UNSERVED


class Unchanged:
    """The default of a limit that stays as it is. (None removes a limit.)"""


UNCHANGED = Unchanged()


@exported
@dataclass(frozen=True, slots=True)
class WorkflowTypeInfo:
    """A workflow type and its limits as they were when asked. A limit of None means no limit."""

    workflow: str  #: its name
    paused: bool  #: whether no run begins or goes on
    max_running: int | None  #: runs executed at once
    max_running_per_key: int | None  #: of those, with the same key
    starts_per_second: float | None  #: runs that begin per second
    starts_per_second_per_key: float | None  #: of those, with the same key
    when_full: WhenFull  #: what happens to a start beyond a limit
    versions: tuple[str, ...]  #: versions that workers have registered
    default_version: str | None  #: what new runs get
    open_runs: int  #: runs that have not ended, counted up to 10,000


@exported
@dataclass(frozen=True, slots=True)
class QueueInfo:
    """Runs of a workflow type, pinned to a version or to none, that wait for a worker."""

    workflow: str  #: the workflow type
    version: str | None  #: None: not pinned yet
    waiting: int  #: runs that wait
    oldest_waiting_since: datetime | None  #: since when the oldest waits
    workers: int  #: workers online that serve it
    free_slots: int  #: free slots of those workers
    held_back: str | None  #: why none begins although slots are free; None: nothing is in the way


class WorkflowTypes:
    """`client.workflow_types`: workflow types as queues, with their limits."""

    def __init__(self, backend: Backend, namespace: str) -> None:
        self._connection = backend.connection
        self._namespace = namespace

    async def list(self) -> AsyncIterator[WorkflowTypeInfo]:
        """All workflow types, by name: those that workers have registered, and those with limits."""

        async def ask(page: PageRequest) -> pb.ListWorkflowTypesResponse:
            return await self._ask(pb.ListWorkflowTypesRequest(namespace_id=self._namespace, page=page))

        async for each in all_rows(ask, lambda response: response.types):
            yield _info(read_type(each, self._namespace))

    async def get(self, workflow: Workflow[Any, Any] | str) -> WorkflowTypeInfo:
        """The type of a `workflow`. Raises NotFound if no worker has registered it and it has no limits."""
        name = type_of(workflow)
        response = await self._ask(pb.ListWorkflowTypesRequest(namespace_id=self._namespace, workflow_type=name))
        for each in response.types:
            return _info(read_type(each, self._namespace))
        raise not_found("workflow type", name)

    async def _ask(self, request: pb.ListWorkflowTypesRequest) -> pb.ListWorkflowTypesResponse:
        return await self._connection.call(lambda link: link.admin.ListWorkflowTypes, request)

    async def update(
        self,
        workflow: Workflow[Any, Any] | str,
        *,
        max_running: int | Unchanged | None = UNCHANGED,
        max_running_per_key: int | Unchanged | None = UNCHANGED,
        starts_per_second: float | Unchanged | None = UNCHANGED,
        starts_per_second_per_key: float | Unchanged | None = UNCHANGED,
        when_full: WhenFull | Unchanged = UNCHANGED,
    ) -> WorkflowTypeInfo:
        """Set limits; None removes one, and what is not given stays. They take effect on every server at once.

        Args:
            workflow: The workflow, or its name.
            max_running: How many runs are executed at once.
            max_running_per_key: How many runs with the same `concurrency_key`.
            starts_per_second: How many runs begin per second.
            starts_per_second_per_key: How many with the same `concurrency_key`.
            when_full: What happens to a start beyond `max_running`: "queue" (it waits; the default), "reject" or "cancel-oldest".
        """
        options = {
            "max_running": max_running,
            "max_running_per_key": max_running_per_key,
            "starts_per_second": starts_per_second,
            "starts_per_second_per_key": starts_per_second_per_key,
            "when_full": when_full,
        }
        changes: dict[str, Any] = {field: value for field, value in options.items() if not isinstance(value, Unchanged)}
        if not changes:
            raise InvalidArgument("update changes nothing. Name a limit.", field="max_running")
        try:
            limits = write_limits(type_of(workflow), TypeLimits(**changes))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"a limit is not a number that fits: {error}", field=next(iter(changes))) from None
        request = pb.UpdateWorkflowTypeRequest(namespace_id=self._namespace, type=limits, fields=list(changes))
        response = await self._connection.call(lambda link: link.admin.UpdateWorkflowType, request)
        UNSERVED.tell(self._namespace, response.type.workflow_type, response.warning)
        return _info(read_type(response.type, self._namespace))

    async def pause(self, workflow: Workflow[Any, Any] | str) -> WorkflowTypeInfo:
        """Let no run of a `workflow` begin or go on until it is resumed: starts are accepted and wait. What runs now
        runs on."""
        request = pb.PauseWorkflowTypeRequest(namespace_id=self._namespace, workflow_type=type_of(workflow))
        response = await self._connection.call(lambda link: link.admin.PauseWorkflowType, request)
        return _info(read_type(response.type, self._namespace))

    async def resume(self, workflow: Workflow[Any, Any] | str) -> WorkflowTypeInfo:
        """Let runs of a `workflow` begin and go on again."""
        request = pb.ResumeWorkflowTypeRequest(namespace_id=self._namespace, workflow_type=type_of(workflow))
        response = await self._connection.call(lambda link: link.admin.ResumeWorkflowType, request)
        return _info(read_type(response.type, self._namespace))

    async def queue_depth(self, workflow: Workflow[Any, Any] | str | None = None) -> tuple[QueueInfo, ...]:
        """How many runs wait, by type and version: of one `workflow`, or of all with runs that wait."""
        name = "" if workflow is None else type_of(workflow)
        request = pb.GetQueueDepthRequest(namespace_id=self._namespace, workflow_type=name)
        response = await self._connection.call(lambda link: link.admin.GetQueueDepth, request)
        return tuple(_queue(read_standing(queue)) for queue in response.queues)


def type_of(workflow: Workflow[Any, Any] | str) -> str:
    name = workflow.name if isinstance(workflow, Workflow) else workflow
    if not name:
        raise InvalidArgument("workflow is empty. Name one, or give the workflow itself.", field="workflow")
    return name


def _info(record: WorkflowTypeRecord) -> WorkflowTypeInfo:
    limits = record.limits
    return WorkflowTypeInfo(
        workflow=record.workflow_type,
        paused=limits.paused,
        max_running=limits.max_running,
        max_running_per_key=limits.max_running_per_key,
        starts_per_second=limits.starts_per_second,
        starts_per_second_per_key=limits.starts_per_second_per_key,
        when_full=limits.when_full,
        versions=record.versions,
        default_version=record.default_version or None,
        open_runs=record.open_runs,
    )


def _queue(standing: QueueStanding) -> QueueInfo:
    depth = standing.depth
    return QueueInfo(
        workflow=depth.workflow_type,
        version=depth.version or None,
        waiting=depth.waiting,
        oldest_waiting_since=None if depth.oldest_since is None else to_datetime(depth.oldest_since),
        workers=standing.workers,
        free_slots=standing.free_slots,
        held_back=standing.held_back or None,
    )
