"""`client.versions`: versions of workflows, default and deprecated ones, and the build that a run is pinned to."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....core.errors import InvalidArgument
from ....core.public import exported
from ....core.states import RunStatus
from ....v1 import admin_pb2 as pb
from ....v1 import workflow_pb2 as pb_workflow
from ....wire.fields import reader
from ....wire.requests import read_run_status
from ...workflow.workflow import Workflow
from . import Operations
from .workflow_types import type_of


@exported
@dataclass(frozen=True, slots=True)
class VersionInfo:
    """A version of a workflow at the time of the call."""

    workflow: str  #: the name of the workflow
    version: str  #: as text
    is_default: bool  #: runs without an explicit version get it
    is_set: bool  #: it is the default because it was set, not because it is the highest
    deprecated: bool  #: it accepts no new runs
    open_runs: int  #: its open runs
    open_is_capped: bool  #: whether that count stopped early
    workers: int  #: workers online that serve it
    first_seen_at: datetime  #: when a worker first registered it


read_version_info = reader(pb.WorkflowVersion, VersionInfo, names={"workflow": "workflow_type"})


class Versions(Operations):
    """`client.versions`: the versions of workflows, which of them new runs get, and which build may take a run."""

    async def list(self, workflow: Workflow[Any, Any] | str | None = None) -> AsyncIterator[VersionInfo]:
        """Versions of one `workflow`, or of all; the latest first."""
        name = "" if workflow is None else type_of(workflow)
        request = pb.ListVersionsRequest(namespace_id=self._namespace, workflow_type=name)
        rows = self._backend.rows(lambda link: link.admin.ListVersions, request, lambda page: page.versions)
        async for version in rows:
            yield read_version_info(version)

    async def counts(self, workflow: Workflow[Any, Any] | str) -> dict[str, int]:
        """Open runs of a `workflow` by version. A version without open runs can be removed."""
        return {version.version: version.open_runs async for version in self.list(workflow)}

    async def set_default(self, workflow: Workflow[Any, Any] | str, version: int | str | None) -> VersionInfo:
        """Give new runs of a `workflow` without an explicit version this `version`; None: the highest that is not
        deprecated. Returns the default. Raises NotFound, and PreconditionFailed for a deprecated one."""
        request = pb.SetDefaultVersionRequest(
            namespace_id=self._namespace,
            workflow_type=type_of(workflow),
            version="" if version is None else str(version),
        )
        response = await self._backend.call(lambda link: link.admin.SetDefaultVersion, request)
        return read_version_info(response.version)

    async def deprecate(
        self, workflow: Workflow[Any, Any] | str, version: int | str, *, undo: bool = False
    ) -> VersionInfo:
        """Let a `version` of a `workflow` accept no new runs; its open runs finish. `undo` allows new runs again.
        Raises NotFound, and PreconditionFailed for the version that was set as the default."""
        request = pb.DeprecateVersionRequest(
            namespace_id=self._namespace,
            workflow_type=type_of(workflow),
            version=str(version),
            undo=undo,
        )
        response = await self._backend.call(lambda link: link.admin.DeprecateVersion, request)
        return read_version_info(response.version)

    async def adopt(self, run: str, build_id: str | None, *, reason: str = "") -> RunStatus:
        """Let only workers with this `build_id` take a `run` from now on, for example a worker with repaired code; a
        paused run resumes. The run stays pinned to that build until you adopt it again, or until that code does not
        match its history either. Recorded in the audit log. Returns the resulting status of the run.

        Args:
            run: The run id, or the workflow_id.
            build_id: Of the workers. None: any worker may take the run again, and a paused run stays paused.
            reason: Recorded in the audit log.

        Raises NotFound; PreconditionFailed if the run has ended, or is being executed: pause it first.
        """
        if build_id is not None and not build_id:
            raise InvalidArgument("build_id is empty. Name a build, or None for every worker.", field="build_id")
        info = await self._backend.find(self._namespace, run)
        request = pb_workflow.AdoptWorkflowRequest(
            namespace_id=self._namespace, run_id=info.id, build_id=build_id or "", reason=reason
        )
        response = await self._backend.call(lambda link: link.workflows.AdoptWorkflow, request)
        return read_run_status(response.status)
