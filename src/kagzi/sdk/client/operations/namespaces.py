"""`client.namespaces`: creates, limits, disables and deletes namespaces."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ....core.duration import Duration, parse_duration
from ....core.errors import InvalidArgument
from ....core.public import exported
from ....core.records import NamespaceRecord
from ....core.times import to_datetime
from ....v1 import namespace_pb2 as pb
from ....v1.common_pb2 import PageRequest
from ....wire.namespaces import read_namespace_record, write_changes
from ..backend import Backend
from ..paging import all_rows
from .workflow_types import UNCHANGED, Unchanged


@exported
@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """A namespace as it was when asked. A limit of None means no limit."""

    name: str  #: its name
    enabled: bool  #: whether it takes new runs
    deleting: bool  #: whether it is being removed
    created_at: datetime  #: when it was made
    max_open_runs: int | None  #: runs that have not ended
    max_running_runs: int | None  #: runs that workers hold at once
    max_starts_per_second: float | None  #: starts, on average
    max_stored_bytes: int | None  #: payloads and errors that are kept
    max_sessions: int | None  #: connected workers
    max_schedules: int | None  #: schedules
    retention: Mapping[str, timedelta]  #: how long ended runs are kept, by status; others as the server says
    stored_bytes: int | None  #: as last measured; None if not limited
    stored_bytes_at: datetime | None  #: when that was measured


class Namespaces:
    """`client.namespaces`: what namespaces there are and what they may use."""

    def __init__(self, backend: Backend, namespace: str) -> None:
        del namespace  # they are not in one
        self._connection = backend.connection

    async def list(self) -> AsyncIterator[NamespaceInfo]:
        """All namespaces, by name."""

        async def ask(page: PageRequest) -> pb.ListNamespacesResponse:
            request = pb.ListNamespacesRequest(page=page)
            return await self._connection.call(lambda link: link.namespaces.ListNamespaces, request)

        async for each in all_rows(ask, lambda response: response.namespaces):
            yield _info(each)

    async def get(self, name: str) -> NamespaceInfo:
        """The namespace with this `name`, also while it is being deleted. Raises NotFound."""
        request = pb.GetNamespaceRequest(namespace_id=name)
        response = await self._connection.call(lambda link: link.namespaces.GetNamespace, request)
        return _info(response.namespace)

    async def create(
        self,
        name: str,
        *,
        max_open_runs: int | Unchanged | None = UNCHANGED,
        max_running_runs: int | Unchanged | None = UNCHANGED,
        max_starts_per_second: float | Unchanged | None = UNCHANGED,
        max_stored_bytes: int | Unchanged | None = UNCHANGED,
        max_sessions: int | Unchanged | None = UNCHANGED,
        max_schedules: int | Unchanged | None = UNCHANGED,
        retention: Mapping[str, Duration] | Unchanged = UNCHANGED,
    ) -> NamespaceInfo:
        """Create a namespace. A limit that is not given, or None, means no limit.

        Args:
            name: Its name.
            max_open_runs: Runs that have not ended.
            max_running_runs: Runs that workers hold at once.
            max_starts_per_second: Starts, on average.
            max_stored_bytes: Payloads and errors that are kept.
            max_sessions: Connected workers.
            max_schedules: Schedules.
            retention: How long runs are kept after they have ended, by status: `{"completed": "7 days"}`.

        Raises AlreadyExists.
        """
        namespace, _ = _changes(
            name,
            open_runs=max_open_runs,
            running_runs=max_running_runs,
            starts_per_second=max_starts_per_second,
            stored_bytes=max_stored_bytes,
            sessions=max_sessions,
            schedules=max_schedules,
            retention=retention,
        )
        request = pb.CreateNamespaceRequest(namespace=namespace)
        response = await self._connection.call(lambda link: link.namespaces.CreateNamespace, request)
        return _info(response.namespace)

    async def update(
        self,
        name: str,
        *,
        max_open_runs: int | Unchanged | None = UNCHANGED,
        max_running_runs: int | Unchanged | None = UNCHANGED,
        max_starts_per_second: float | Unchanged | None = UNCHANGED,
        max_stored_bytes: int | Unchanged | None = UNCHANGED,
        max_sessions: int | Unchanged | None = UNCHANGED,
        max_schedules: int | Unchanged | None = UNCHANGED,
        retention: Mapping[str, Duration] | Unchanged = UNCHANGED,
    ) -> NamespaceInfo:
        """Set limits; None removes one, and what is not given stays. They take effect on every server at once.

        Args:
            name: The namespace.
            max_open_runs: Runs that have not ended.
            max_running_runs: Runs that workers hold at once.
            max_starts_per_second: Starts, on average.
            max_stored_bytes: Payloads and errors that are kept.
            max_sessions: Connected workers.
            max_schedules: Schedules.
            retention: How long runs are kept after they have ended, by status: `{"completed": "7 days"}`.

        Raises NotFound.
        """
        namespace, fields = _changes(
            name,
            open_runs=max_open_runs,
            running_runs=max_running_runs,
            starts_per_second=max_starts_per_second,
            stored_bytes=max_stored_bytes,
            sessions=max_sessions,
            schedules=max_schedules,
            retention=retention,
        )
        if not fields:
            raise InvalidArgument("update changes nothing. Name a limit, or retention.", field="max_open_runs")
        return await self._update(namespace, fields)

    async def enable(self, name: str) -> NamespaceInfo:
        """Let the namespace `name` take new runs again."""
        return await self._update(pb.Namespace(namespace_id=name, enabled=True), ["enabled"])

    async def disable(self, name: str) -> NamespaceInfo:
        """Let the namespace `name` take no new runs; those it has go on, with the children they start."""
        return await self._update(pb.Namespace(namespace_id=name, enabled=False), ["enabled"])

    async def delete(self, name: str, *, confirm: str) -> None:
        """Delete the namespace `name` with all its runs, for good: `confirm` repeats the name. It is removed in the
        background, and then the name is free. Raises PreconditionFailed while runs are open or schedules enabled."""
        request = pb.DeleteNamespaceRequest(namespace_id=name, confirm=confirm)
        await self._connection.call(lambda link: link.namespaces.DeleteNamespace, request)

    async def _update(self, namespace: pb.Namespace, fields: Sequence[str]) -> NamespaceInfo:
        request = pb.UpdateNamespaceRequest(namespace=namespace, fields=fields)
        response = await self._connection.call(lambda link: link.namespaces.UpdateNamespace, request)
        return _info(response.namespace)


def _changes(
    name: str, *, retention: Mapping[str, Duration] | Unchanged, **limits: Any
) -> tuple[pb.Namespace, list[str]]:
    changes: dict[str, Any] = {
        f"{limit}_limit": value for limit, value in limits.items() if not isinstance(value, Unchanged)
    }
    if not isinstance(retention, Unchanged):
        changes["retention_seconds"] = {
            status: int(parse_duration(kept, what=f"retention[{status!r}]").total_seconds())
            for status, kept in retention.items()
        }
    try:
        return write_changes(NamespaceRecord(namespace=name, **changes), changes)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a limit is not a number that fits: {error}", field=next(iter(changes))) from None


def _info(namespace: pb.Namespace) -> NamespaceInfo:
    record = read_namespace_record(namespace)
    return NamespaceInfo(
        name=record.namespace,
        enabled=record.enabled,
        deleting=record.deleting,
        created_at=to_datetime(record.created_at),
        max_open_runs=record.open_runs_limit,
        max_running_runs=record.running_runs_limit,
        max_starts_per_second=record.starts_per_second_limit,
        max_stored_bytes=record.stored_bytes_limit,
        max_sessions=record.sessions_limit,
        max_schedules=record.schedules_limit,
        retention={status: timedelta(seconds=seconds) for status, seconds in record.retention_seconds.items()},
        stored_bytes=record.stored_bytes,
        stored_bytes_at=None if record.stored_bytes_at is None else to_datetime(record.stored_bytes_at),
    )
