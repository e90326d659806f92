"""Namespaces: their limits, and how long their runs are kept."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from ....core.errors import InvalidArgument
from ....core.records import NamespaceRecord
from ....core.times import moment_text
from ..route import Input
from .common import Moment, View, moment

LIMITS = ("open_runs", "running_runs", "starts_per_second", "stored_bytes", "sessions", "schedules")


class NamespaceView(View, frozen=True, kw_only=True):
    """A namespace. A limit of null means no limit. `retention_seconds`: how long ended runs are kept, by status; the
    server's default for other statuses. `stored_bytes`: of payloads and errors, measured only if they are limited."""

    namespace: str
    enabled: bool
    deleting: bool
    created_at: Moment
    max_open_runs: int | None
    max_running_runs: int | None
    max_starts_per_second: float | None
    max_stored_bytes: int | None
    max_sessions: int | None
    max_schedules: int | None
    retention_seconds: Mapping[str, int]
    stored_bytes: int | None
    stored_bytes_at: Moment | None


class NamespaceSettings(Input, frozen=True, kw_only=True):
    """Fields that are left out stay unchanged, or unlimited for a new namespace; null removes a limit."""

    max_open_runs: int | UnsetType | None = UNSET
    max_running_runs: int | UnsetType | None = UNSET
    max_starts_per_second: float | UnsetType | None = UNSET
    max_stored_bytes: int | UnsetType | None = UNSET
    max_sessions: int | UnsetType | None = UNSET
    max_schedules: int | UnsetType | None = UNSET
    retention_seconds: dict[str, int] | UnsetType = UNSET


class NewNamespace(NamespaceSettings, frozen=True, kw_only=True):
    namespace: str


class NamespaceChanges(NamespaceSettings, frozen=True, kw_only=True):
    """`enabled` false: no new runs; existing ones continue."""

    enabled: bool | UnsetType = UNSET


class DeleteNamespaceQuery(Input, frozen=True, kw_only=True):
    """`confirm` repeats the name: all its runs are deleted."""

    confirm: str = ""


class DeletedNamespace(View, frozen=True, kw_only=True):
    namespace: str
    deleting: bool


def namespace_view(record: NamespaceRecord) -> NamespaceView:
    limits: dict[str, Any] = {f"max_{name}": getattr(record, f"{name}_limit") for name in LIMITS}
    return NamespaceView(
        namespace=record.namespace,
        enabled=record.enabled,
        deleting=record.deleting,
        created_at=moment_text(record.created_at),
        retention_seconds=record.retention_seconds,
        stored_bytes=record.stored_bytes,
        stored_bytes_at=moment(record.stored_bytes_at),
        **limits,
    )


def new_namespace(body: NewNamespace) -> NamespaceRecord:
    return NamespaceRecord(namespace=body.namespace, **_settings(body))


def namespace_changes(namespace: str, body: NamespaceChanges) -> tuple[NamespaceRecord, frozenset[str]]:
    """The new record, and the names of its changed fields. Raises InvalidArgument if there are none."""
    settings = _settings(body)
    if not isinstance(body.enabled, UnsetType):
        settings["enabled"] = body.enabled
    if not settings:
        known = ", ".join(body.__struct_fields__)
        raise InvalidArgument(f"the body names nothing to change. Name one of: {known}.", field="body")
    return NamespaceRecord(namespace=namespace, **settings), frozenset(settings)


def _settings(body: NamespaceSettings) -> dict[str, Any]:
    named: dict[str, Any] = {f"{name}_limit": getattr(body, f"max_{name}") for name in LIMITS}
    named["retention_seconds"] = body.retention_seconds
    return {field: value for field, value in named.items() if value is not UNSET}
