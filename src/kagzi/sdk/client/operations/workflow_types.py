"""`client.workflow_types`: the queues of workflow types: their limits, depth and state."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Unpack

import msgspec

from ....core.errors import InvalidArgument, not_found
from ....core.public import exported
from ....core.workflow_types.queues import TypeLimitKeywords, TypeLimits, WhenFull
from ....v1 import admin_pb2 as pb
from ....wire.fields import reader
from ....wire.queues import write_limits
from ...workflow.workflow import Workflow
from ..filters import check_keywords
from ..unserved import UNSERVED
from . import Operations


@exported
@dataclass(frozen=True, slots=True)
class WorkflowTypeInfo:
    """A workflow type and its limits at the time of the call. A limit of None means no limit."""

    workflow: str  #: its name
    paused: bool  #: whether it is paused: no run begins or continues
    max_running: int | None  #: runs executed at once
    max_running_per_key: int | None  #: of those, with the same key
    starts_per_second: float | None  #: runs that begin per second
    starts_per_second_per_key: float | None  #: of those, with the same key
    when_full: WhenFull  #: what happens to a start that exceeds a limit
    versions: tuple[str, ...]  #: versions that workers have registered
    default_version: str | None  #: the version that new runs get
    open_runs: int  #: among the 10,000 oldest open runs of the namespace; up to 10 seconds old


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
    limit_reason: str | None  #: the limit that keeps runs waiting although slots are free; None: no limit


@exported
@dataclass(frozen=True, slots=True)
class WorkflowSchema:
    """The schemas that the workers of a workflow registered: JSON Schema, decoded. None: not known, every value is
    accepted."""

    workflow: str  #: the workflow type
    version: str  #: the version of the workflow
    description: str  #: the docstring of the function
    input_schema: Mapping[str, Any] | None  #: of the input
    output_schema: Mapping[str, Any] | None  #: of the output
    signal_schemas: Mapping[str, Mapping[str, Any]]  #: of the signals that it waits for, by name
    registered_at: datetime | None  #: when workers first registered these; None: never


read_type_info = reader(pb.WorkflowType, WorkflowTypeInfo, names={"workflow": "workflow_type"})
read_queue_info = reader(pb.QueueDepth, QueueInfo, names={"workflow": "workflow_type"})


def _decoded(schema: str) -> Mapping[str, Any] | None:
    return msgspec.json.decode(schema) if schema else None


read_schema = reader(
    pb.WorkflowSchema,
    WorkflowSchema,
    names={"workflow": "workflow_type"},
    input_schema=lambda message: _decoded(message.input_schema),
    output_schema=lambda message: _decoded(message.output_schema),
    signal_schemas=lambda message: {name: _decoded(schema) for name, schema in message.signal_schemas.items()},
)


class WorkflowTypes(Operations):
    """`client.workflow_types`: the queues of workflow types, with their limits."""

    async def list(self) -> AsyncIterator[WorkflowTypeInfo]:
        """All workflow types, by name: those that workers have registered, and those with limits."""
        request = pb.ListWorkflowTypesRequest(namespace_id=self._namespace)
        async for each in self._backend.rows(
            lambda link: link.admin.ListWorkflowTypes, request, lambda page: page.types
        ):
            yield read_type_info(each)

    async def get(self, workflow: Workflow[Any, Any] | str) -> WorkflowTypeInfo:
        """The type of a `workflow`. Raises NotFound if no worker has registered it and it has no limits."""
        name = type_of(workflow)
        request = pb.ListWorkflowTypesRequest(namespace_id=self._namespace, workflow_type=name)
        response = await self._backend.call(lambda link: link.admin.ListWorkflowTypes, request)
        for each in response.types:
            return read_type_info(each)
        raise not_found("workflow type", name)

    async def schema(self, workflow: Workflow[Any, Any] | str, *, version: int | str | None = None) -> WorkflowSchema:
        """The schemas that workers registered for the input, output and signals of a `workflow`, at a `version`; None:
        the version that new runs get. Raises NotFound if no worker has registered it."""
        request = pb.GetWorkflowSchemaRequest(
            namespace_id=self._namespace,
            workflow_type=type_of(workflow),
            version="" if version is None else str(version),
        )
        response = await self._backend.call(lambda link: link.admin.GetWorkflowSchema, request)
        return read_schema(response.schema)

    async def update(self, workflow: Workflow[Any, Any] | str, **limits: Unpack[TypeLimitKeywords]) -> WorkflowTypeInfo:
        """Set `limits` of a `workflow`, given itself or by name: see [TypeLimitKeywords](#typelimitkeywords). They take
        effect on every server at once."""
        check_keywords(limits, TypeLimitKeywords)
        if not limits:
            raise InvalidArgument("update changes nothing. Name a limit.", field="max_running")
        try:
            changed = write_limits(TypeLimits(**limits))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"invalid limit: {error}", field=next(iter(limits))) from None
        changed.workflow_type = type_of(workflow)
        request = pb.UpdateWorkflowTypeRequest(namespace_id=self._namespace, type=changed, fields=list(limits))
        response = await self._backend.call(lambda link: link.admin.UpdateWorkflowType, request)
        UNSERVED.warn(self._namespace, response.type.workflow_type, response.warning)
        return read_type_info(response.type)

    async def pause(self, workflow: Workflow[Any, Any] | str) -> WorkflowTypeInfo:
        """Let no run of a `workflow` begin or continue until it is resumed. Starts are accepted and wait. Runs that a
        worker executes now continue."""
        request = pb.PauseWorkflowTypeRequest(namespace_id=self._namespace, workflow_type=type_of(workflow))
        response = await self._backend.call(lambda link: link.admin.PauseWorkflowType, request)
        return read_type_info(response.type)

    async def resume(self, workflow: Workflow[Any, Any] | str) -> WorkflowTypeInfo:
        """Let runs of a `workflow` begin and continue again."""
        request = pb.ResumeWorkflowTypeRequest(namespace_id=self._namespace, workflow_type=type_of(workflow))
        response = await self._backend.call(lambda link: link.admin.ResumeWorkflowType, request)
        return read_type_info(response.type)

    async def queue_depth(self, workflow: Workflow[Any, Any] | str | None = None) -> tuple[QueueInfo, ...]:
        """How many runs wait, by type and version: of one `workflow`, or of all that have waiting runs."""
        name = "" if workflow is None else type_of(workflow)
        request = pb.GetQueueDepthRequest(namespace_id=self._namespace, workflow_type=name)
        response = await self._backend.call(lambda link: link.admin.GetQueueDepth, request)
        return tuple(read_queue_info(queue) for queue in response.queues)


def type_of(workflow: Workflow[Any, Any] | str) -> str:
    name = workflow.name if isinstance(workflow, Workflow) else workflow
    if not name:
        raise InvalidArgument("workflow is empty. Name one, or give the workflow itself.", field="workflow")
    return name
