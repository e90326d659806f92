"""`client.versions`: versions of workflows, the default one, and deprecated ones."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....core.public import exported
from ....core.times import to_datetime
from ....core.workflow_types.versions import VersionRecord
from ....v1 import admin_pb2 as pb
from ....v1.common_pb2 import PageRequest
from ....wire.versions import read_version
from ...workflow.workflow import Workflow
from ..backend import Backend
from ..paging import all_rows
from .workflow_types import type_of


@exported
@dataclass(frozen=True, slots=True)
class VersionInfo:
    """A version of a workflow as it was when asked."""

    workflow: str  #: the name of the workflow
    version: str  #: as text
    is_default: bool  #: runs that ask for no version get it
    is_set: bool  #: it is the default because somebody set it, not because it is the highest
    deprecated: bool  #: it takes no new runs
    open_runs: int  #: runs that it still has to finish
    open_is_capped: bool  #: whether that count stopped early
    workers: int  #: workers online that serve it
    first_seen_at: datetime  #: when a worker first registered it


class Versions:
    """`client.versions`: which versions of workflows there are, and which one new runs get."""

    def __init__(self, backend: Backend, namespace: str) -> None:
        self._connection = backend.connection
        self._namespace = namespace

    async def list(self, workflow: Workflow[Any, Any] | str | None = None) -> AsyncIterator[VersionInfo]:
        """Versions of a `workflow`, or of all; the latest one first."""
        name = "" if workflow is None else type_of(workflow)

        async def ask(page: PageRequest) -> pb.ListVersionsResponse:
            request = pb.ListVersionsRequest(namespace_id=self._namespace, workflow_type=name, page=page)
            return await self._connection.call(lambda link: link.admin.ListVersions, request)

        async for version in all_rows(ask, lambda response: response.versions):
            yield _info(read_version(version))

    async def counts(self, workflow: Workflow[Any, Any] | str) -> dict[str, int]:
        """Open runs of a `workflow` by version: a version with none left can be taken out of service."""
        return {version.version: version.open_runs async for version in self.list(workflow)}

    async def set_default(self, workflow: Workflow[Any, Any] | str, version: int | str | None) -> VersionInfo:
        """Let new runs of a `workflow` that ask for no version get this `version`; None: the highest that is not
        deprecated. Returns the default. Raises NotFound, and PreconditionFailed for a deprecated one."""
        request = pb.SetDefaultVersionRequest(
            namespace_id=self._namespace,
            workflow_type=type_of(workflow),
            version="" if version is None else str(version),
        )
        response = await self._connection.call(lambda link: link.admin.SetDefaultVersion, request)
        return _info(read_version(response.version))

    async def deprecate(
        self, workflow: Workflow[Any, Any] | str, version: int | str, *, undo: bool = False
    ) -> VersionInfo:
        """Let a `version` of a `workflow` take no new runs; those that are there finish. `undo` allows new runs again.
        Raises NotFound, and PreconditionFailed for one that was set as the default."""
        request = pb.DeprecateVersionRequest(
            namespace_id=self._namespace,
            workflow_type=type_of(workflow),
            version=str(version),
            undo=undo,
        )
        response = await self._connection.call(lambda link: link.admin.DeprecateVersion, request)
        return _info(read_version(response.version))


def _info(record: VersionRecord) -> VersionInfo:
    return VersionInfo(
        workflow=record.workflow_type,
        version=record.version,
        is_default=record.is_default,
        is_set=record.is_set,
        deprecated=record.deprecated,
        open_runs=record.open_runs,
        open_is_capped=record.open_is_capped,
        workers=record.workers,
        first_seen_at=to_datetime(record.first_seen_at),
    )
