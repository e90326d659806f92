"""Namespaces, and which of their fields are to be changed."""

from collections.abc import Iterable

from ..core.errors import InvalidArgument
from ..core.records import NamespaceRecord
from ..v1 import namespace_pb2 as pb
from .common import read_namespace, read_time_if, write_time

_LIMITS = ("open_runs", "running_runs", "starts_per_second", "stored_bytes", "sessions", "schedules")
_RECORD_FIELDS = {
    "enabled": ("enabled",),
    "retention_seconds": ("retention_seconds",),
    "limits": tuple(f"{name}_limit" for name in _LIMITS),
    **{f"limits.{name}": (f"{name}_limit",) for name in _LIMITS},
}

_MASK_OF_FIELD = {fields[0]: mask for mask, fields in _RECORD_FIELDS.items() if mask != "limits"}


def read_new_namespace(message: pb.Namespace, namespace_id: str) -> NamespaceRecord:
    """Of a request that names it in one place, or twice alike. Raises InvalidArgument."""
    named = {name for name in (message.namespace_id, namespace_id) if name}
    if len(named) > 1:
        raise InvalidArgument(
            f"namespace_id={namespace_id!r} and namespace.namespace_id={message.namespace_id!r} differ. Leave one out.",
            field="namespace_id",
        )
    if not named:
        raise InvalidArgument("namespace_id is empty. Name the namespace.", field="namespace_id")
    return _read(message, named.pop())


def read_namespace_record(message: pb.Namespace) -> NamespaceRecord:
    return _read(message, read_namespace(message.namespace_id))


def _read(message: pb.Namespace, namespace: str) -> NamespaceRecord:
    limits = message.limits
    return NamespaceRecord(
        namespace=namespace,
        enabled=message.enabled,
        created_at=read_time_if(message, "created_at") or 0,
        open_runs_limit=limits.open_runs if limits.HasField("open_runs") else None,
        running_runs_limit=limits.running_runs if limits.HasField("running_runs") else None,
        starts_per_second_limit=limits.starts_per_second if limits.HasField("starts_per_second") else None,
        stored_bytes_limit=limits.stored_bytes if limits.HasField("stored_bytes") else None,
        sessions_limit=limits.sessions if limits.HasField("sessions") else None,
        schedules_limit=limits.schedules if limits.HasField("schedules") else None,
        retention_seconds=dict(message.retention_seconds),
        deleting=message.deleting,
        stored_bytes=message.stored_bytes if message.HasField("stored_bytes") else None,
        stored_bytes_at=read_time_if(message, "stored_bytes_at"),
    )


def write_namespace(record: NamespaceRecord) -> pb.Namespace:
    return pb.Namespace(
        namespace_id=record.namespace,
        enabled=record.enabled,
        created_at=write_time(record.created_at),
        limits=pb.NamespaceLimits(
            open_runs=record.open_runs_limit,
            starts_per_second=record.starts_per_second_limit,
            stored_bytes=record.stored_bytes_limit,
            sessions=record.sessions_limit,
            schedules=record.schedules_limit,
            running_runs=record.running_runs_limit,
        ),
        retention_seconds=record.retention_seconds,
        deleting=record.deleting,
        stored_bytes=record.stored_bytes,
        stored_bytes_at=None if record.stored_bytes_at is None else write_time(record.stored_bytes_at),
    )


def write_changes(record: NamespaceRecord, fields: Iterable[str]) -> tuple[pb.Namespace, list[str]]:
    """A request's namespace and mask, for a change of these fields of a record."""
    message = write_namespace(record)
    message.ClearField("created_at")
    return message, [_MASK_OF_FIELD[field] for field in fields]


def read_namespace_fields(fields: Iterable[str]) -> frozenset[str]:
    """The fields of a record that a mask names. Raises InvalidArgument for one that is none."""
    named: set[str] = set()
    for field in fields:
        if field not in _RECORD_FIELDS:
            raise InvalidArgument(
                f"fields: {field!r} cannot be changed. Known are: {', '.join(_RECORD_FIELDS)}.", field="fields"
            )
        named.update(_RECORD_FIELDS[field])
    return frozenset(named)
