"""Namespaces, and the fields of them that a request changes."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from ..core.errors import InvalidArgument
from ..core.records import NamespaceRecord
from ..v1 import namespace_pb2 as pb
from .fields import reader, writer

LIMITS = tuple(field.name for field in pb.NamespaceLimits.DESCRIPTOR.fields)
_RECORD_FIELDS = {
    "enabled": ("enabled",),
    "retention_seconds": ("retention_seconds",),
    "limits": tuple(f"{name}_limit" for name in LIMITS),
    **{f"limits.{name}": (f"{name}_limit",) for name in LIMITS},
}

_MASK_OF_FIELD = {fields[0]: mask for mask, fields in _RECORD_FIELDS.items() if mask != "limits"}


def limit_reader(name: Any) -> Callable[[pb.Namespace], Any]:
    """Reads a limit of a namespace; None if it has none."""
    return lambda message: getattr(message.limits, name) if message.limits.HasField(name) else None


_read_namespace = reader(
    pb.Namespace,
    NamespaceRecord,
    unsent=("next_start_at",),
    unread=("limits",),
    **cast("Any", {f"{name}_limit": limit_reader(name) for name in LIMITS}),
)
write_namespace = writer(
    pb.Namespace,
    NamespaceRecord,
    unsent=("next_start_at", *_RECORD_FIELDS["limits"]),
    limits=lambda record: pb.NamespaceLimits(**{name: getattr(record, f"{name}_limit") for name in LIMITS}),
)


def read_new_namespace(message: pb.Namespace, namespace_id: str) -> NamespaceRecord:
    """The request names the namespace once, or twice alike. Raises InvalidArgument."""
    if message.namespace_id and namespace_id not in ("", message.namespace_id):
        raise InvalidArgument(
            f"namespace_id={namespace_id!r} and namespace.namespace_id={message.namespace_id!r} differ. Leave one out.",
            field="namespace_id",
        )
    message.namespace_id = message.namespace_id or namespace_id
    if not message.namespace_id:
        raise InvalidArgument("namespace_id is empty. Name the namespace.", field="namespace_id")
    return _read_namespace(message)


def write_changes(record: NamespaceRecord, fields: Iterable[str]) -> tuple[pb.Namespace, list[str]]:
    """The namespace and the field mask of a request that changes these fields of a record."""
    message = write_namespace(record)
    message.ClearField("created_at")
    return message, [_MASK_OF_FIELD[field] for field in fields]


def read_namespace_fields(fields: Iterable[str]) -> frozenset[str]:
    """The fields of a record that a mask names. Raises InvalidArgument for an unknown field."""
    named: set[str] = set()
    for field in fields:
        if field not in _RECORD_FIELDS:
            raise InvalidArgument(
                f"fields: {field!r} cannot be changed. Known are: {', '.join(_RECORD_FIELDS)}.", field="fields"
            )
        named.update(_RECORD_FIELDS[field])
    return frozenset(named)
