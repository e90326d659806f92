"""Workflow types: their limits, their versions, and whether they are paused."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ....core.errors import InvalidArgument
from ....core.records import Payload
from ....core.workflow_types.queues import TypeLimits, WhenFull, WorkflowTypeRecord
from ....core.workflow_types.schemas import SchemaRecord
from ..payloads import is_json, payload_view
from ..route import Input
from .common import Moment, View, moment


class WorkflowTypeView(View, frozen=True, kw_only=True):
    """A workflow type. A limit of null means no limit. `open_runs` is counted up to a cap."""

    workflow: str
    paused: bool
    max_running: int | None
    max_running_per_key: int | None
    starts_per_second: float | None
    starts_per_second_per_key: float | None
    when_full: WhenFull
    versions: tuple[str, ...]
    default_version: str | None
    open_runs: int


class ChangedWorkflowType(WorkflowTypeView, frozen=True, kw_only=True):
    """`warning`: for people, if no worker serves the type."""

    warning: str | None


class WorkflowTypeChanges(Input, frozen=True, kw_only=True):
    """Fields that are left out stay unchanged; null removes a limit."""

    paused: bool | UnsetType = UNSET
    max_running: int | UnsetType | None = UNSET
    max_running_per_key: int | UnsetType | None = UNSET
    starts_per_second: float | UnsetType | None = UNSET
    starts_per_second_per_key: float | UnsetType | None = UNSET
    when_full: WhenFull | UnsetType = UNSET


class SchemaQuery(Input, frozen=True, kw_only=True):
    """`version`: default: the version of new runs."""

    version: str = ""


class SchemaView(View, frozen=True, kw_only=True):
    """What workers registered about a type. Schemas are JSON Schema; null: unknown, and every value is accepted.
    `registered_at`: since when these are registered; null: never."""

    workflow: str
    version: str
    description: str
    input_schema: msgspec.Raw
    output_schema: msgspec.Raw
    signal_schemas: Mapping[str, msgspec.Raw]
    registered_at: Moment | None


def schema_view(record: SchemaRecord) -> SchemaView:
    return SchemaView(
        workflow=record.workflow_type,
        version=record.version,
        description=record.description,
        input_schema=_schema(record.input_schema),
        output_schema=_schema(record.output_schema),
        signal_schemas={name: _schema(schema) for name, schema in record.signal_schemas.items()},
        registered_at=moment(record.registered_at or None),
    )


def _schema(text: str) -> msgspec.Raw:
    """Workers may register text that is not JSON."""
    return payload_view(Payload(text.encode()) if is_json(text.encode()) else None)


def workflow_type_view(record: WorkflowTypeRecord) -> WorkflowTypeView:
    return WorkflowTypeView(**_fields(record))


def changed_type_view(record: WorkflowTypeRecord, warning: str) -> ChangedWorkflowType:
    return ChangedWorkflowType(**_fields(record), warning=warning or None)


def _fields(record: WorkflowTypeRecord) -> dict[str, Any]:
    return {
        "workflow": record.workflow_type,
        **msgspec.structs.asdict(record.limits),
        "versions": record.versions,
        "default_version": record.default_version or None,
        "open_runs": record.open_runs,
    }


def type_changes(body: WorkflowTypeChanges) -> tuple[TypeLimits, list[str]]:
    """The new limits, and the names of the changed fields. Raises InvalidArgument if there are none."""
    named = {field: value for field, value in msgspec.structs.asdict(body).items() if value is not UNSET}
    if not named:
        known = ", ".join(body.__struct_fields__)
        raise InvalidArgument(f"the body names nothing to change. Name one of: {known}.", field="body")
    return TypeLimits(**named), list(named)
