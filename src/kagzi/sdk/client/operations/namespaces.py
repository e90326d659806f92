"""`client.namespaces`: creates, limits, disables and deletes namespaces."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack, cast

from ....core.duration import Duration, parse_duration
from ....core.errors import InvalidArgument
from ....core.public import exported
from ....core.records import NamespaceRecord
from ....v1 import namespace_pb2 as pb
from ....wire.fields import reader
from ....wire.namespaces import LIMITS, limit_reader, write_changes
from ..filters import check_keywords
from . import Operations


@exported
@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """A namespace at the time of the call. A limit of None means no limit."""

    name: str  #: its name
    enabled: bool  #: whether it accepts new runs
    deleting: bool  #: whether it is being deleted
    created_at: datetime  #: when it was created
    max_open_runs: int | None  #: open runs
    max_running_runs: int | None  #: runs that workers hold at once
    max_starts_per_second: float | None  #: average rate of starts
    max_stored_bytes: int | None  #: stored payloads and errors
    max_sessions: int | None  #: connected workers
    max_schedules: int | None  #: schedules
    retention: Mapping[str, timedelta]  #: how long ended runs are kept, by status; else the server's setting
    stored_bytes: int | None  #: as last measured; None if not limited
    stored_bytes_at: datetime | None  #: when that was measured


class NamespaceKeywords(TypedDict, total=False):
    """Limits of a namespace, and how long its runs are kept. A limit of None means no limit."""

    max_open_runs: int | None  #: open runs
    max_running_runs: int | None  #: runs that workers hold at once
    max_starts_per_second: float | None  #: average rate of starts
    max_stored_bytes: int | None  #: stored payloads and errors
    max_sessions: int | None  #: connected workers
    max_schedules: int | None  #: schedules
    retention: Mapping[str, Duration]  #: how long ended runs are kept, by status: `{"completed": "7 days"}`


read_namespace_info = reader(
    pb.Namespace,
    NamespaceInfo,
    names={"name": "namespace_id", "retention": "retention_seconds"},
    unread=("limits",),
    retention=lambda message: {
        status: timedelta(seconds=seconds) for status, seconds in message.retention_seconds.items()
    },
    **cast("Any", {f"max_{name}": limit_reader(name) for name in LIMITS}),
)


class Namespaces(Operations):
    """`client.namespaces`: the namespaces of the server, and their limits."""

    async def list(self) -> AsyncIterator[NamespaceInfo]:
        """All namespaces, by name."""
        request = pb.ListNamespacesRequest()
        async for each in self._backend.rows(
            lambda link: link.namespaces.ListNamespaces, request, lambda page: page.namespaces
        ):
            yield read_namespace_info(each)

    async def get(self, name: str) -> NamespaceInfo:
        """The namespace with this `name`, also while it is being deleted. Raises NotFound."""
        request = pb.GetNamespaceRequest(namespace_id=name)
        response = await self._backend.call(lambda link: link.namespaces.GetNamespace, request)
        return read_namespace_info(response.namespace)

    async def create(self, name: str, **options: Unpack[NamespaceKeywords]) -> NamespaceInfo:
        """Create the namespace `name` with these `options`: see [NamespaceKeywords](#namespacekeywords). A limit that
        is not given means no limit. Raises AlreadyExists."""
        namespace, _ = _changes(name, options)
        request = pb.CreateNamespaceRequest(namespace=namespace)
        response = await self._backend.call(lambda link: link.namespaces.CreateNamespace, request)
        return read_namespace_info(response.namespace)

    async def update(self, name: str, **options: Unpack[NamespaceKeywords]) -> NamespaceInfo:
        """Set `options` of the namespace `name`: see [NamespaceKeywords](#namespacekeywords). Others stay unchanged.
        They take effect on every server at once. Raises NotFound."""
        namespace, fields = _changes(name, options)
        if not fields:
            raise InvalidArgument("update changes nothing. Name a limit, or retention.", field="max_open_runs")
        return await self._update(namespace, fields)

    async def enable(self, name: str) -> NamespaceInfo:
        """Let the namespace `name` accept new runs again."""
        return await self._update(pb.Namespace(namespace_id=name, enabled=True), ["enabled"])

    async def disable(self, name: str) -> NamespaceInfo:
        """Let the namespace `name` refuse new runs. Its open runs continue, and may start children."""
        return await self._update(pb.Namespace(namespace_id=name, enabled=False), ["enabled"])

    async def delete(self, name: str, *, confirm: str) -> None:
        """Delete the namespace `name` with all its runs, for good. `confirm` must repeat the name. It is deleted in the
        background; then the name is free. Raises PreconditionFailed while runs are open or schedules enabled."""
        request = pb.DeleteNamespaceRequest(namespace_id=name, confirm=confirm)
        await self._backend.call(lambda link: link.namespaces.DeleteNamespace, request)

    async def _update(self, namespace: pb.Namespace, fields: Sequence[str]) -> NamespaceInfo:
        request = pb.UpdateNamespaceRequest(namespace=namespace, fields=fields)
        response = await self._backend.call(lambda link: link.namespaces.UpdateNamespace, request)
        return read_namespace_info(response.namespace)


def _changes(name: str, options: NamespaceKeywords) -> tuple[pb.Namespace, list[str]]:
    check_keywords(options, NamespaceKeywords)
    changes: dict[str, Any] = {
        f"{option.removeprefix('max_')}_limit": value for option, value in options.items() if option != "retention"
    }
    if "retention" in options:
        changes["retention_seconds"] = {
            status: int(parse_duration(kept, what=f"retention[{status!r}]").total_seconds())
            for status, kept in options["retention"].items()
        }
    try:
        return write_changes(NamespaceRecord(namespace=name, **changes), changes)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"invalid limit: {error}", field=next(iter(changes))) from None
