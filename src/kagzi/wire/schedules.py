"""Schedules, and requests to create or change them."""

from collections.abc import Callable
from typing import Any

import msgspec
from google.protobuf.message import Message

from ..core.errors import InvalidArgument
from ..core.records import Payload
from ..core.schedules.schedule import Fire, Overlap, ScheduleRecord
from ..core.times import Timestamp
from ..v1 import common_pb2
from ..v1 import workflow_schedule_pb2 as pb
from .common import read_duration_us, read_payload, read_time, read_time_if, read_type
from .enums import word_of
from .fields import reader, writer
from .requests import OVERLAP_FROM_WIRE, ScheduleRequest

_read_request = reader(
    pb.CreateWorkflowScheduleRequest,
    ScheduleRequest,
    unread=("task_queue",),  # it has no effect, and callers are told
)


def read_schedule_request(message: pb.CreateWorkflowScheduleRequest, *, namespace_id: str = "") -> ScheduleRequest:
    """`namespace_id`: the namespace of the enclosing message. Raises InvalidArgument."""
    if namespace_id:
        if message.namespace_id not in ("", namespace_id):
            raise InvalidArgument(
                f"namespace_id={message.namespace_id!r} of the schedule differs from that of the request, "
                f"{namespace_id!r}. Set it in the request only.",
                field="namespace_id",
            )
        message.namespace_id = namespace_id
    message.workflow_type = read_type(message.workflow_type)
    return _read_request(message)


def read_changes(message: pb.UpdateWorkflowScheduleRequest) -> dict[str, Any]:
    """The fields of a spec that the message changes. A time of 0 removes a bound, a timeout of 0 the timeout, and an
    empty payload the input or context. Raises InvalidArgument."""
    if message.labels and not message.set_labels:
        raise InvalidArgument("labels are given without set_labels. Set it: they replace all labels.", field="labels")
    changes = {
        name: read(getattr(message, field)) for field, (name, read) in _UPDATES.items() if message.HasField(field)
    }
    return changes | {"labels": dict(message.labels)} if message.set_labels else changes


def _payload_or_none(message: common_pb2.Payload) -> Payload | None:
    return read_payload(message) if message.data or message.metadata else None


def _read_overlap(number: int) -> Overlap:
    return word_of({0: "allow", **OVERLAP_FROM_WIRE}, number, pb.OverlapPolicy.DESCRIPTOR, "overlap")


def _as_it_is(value: object) -> object:
    return value


# Optional fields of an update: their names in a spec, and how they are read.
_UPDATES: dict[Any, tuple[str, Callable[[Any], object]]] = {
    **{field: (field, _as_it_is) for field in ("cron_expr", "timezone", "version", "max_catchup", "priority", "owner")},
    "workflow_type": ("workflow_type", read_type),
    **{field: (field, _payload_or_none) for field in ("input", "context")},
    **{field: (field, lambda at: read_time(at) or None) for field in ("start_at", "end_at")},
    **{field: (f"{field}_us", read_duration_us) for field in ("jitter", "catchup_window", "interval")},
    "timeout": ("timeout_us", lambda duration: read_duration_us(duration) or None),
    "overlap": ("overlap", _read_overlap),
}


def read_required_time(message: Message, field: str) -> Timestamp:
    at = read_time_if(message, field)
    if at is None:
        raise InvalidArgument(f"{field} is missing. Give a time.", field=field)
    return at


_write_schedule = writer(
    pb.WorkflowSchedule,
    ScheduleRecord,
    names={"next_at": "next_fire_at"},
    unsent=("due_at", "revision", "request_id"),
    task_queue=lambda record: record.spec.workflow_type,
)
write_fire = writer(
    pb.ScheduleFire, Fire, names={"at": "fired_at", "reason": "skipped_reason", "count": "skipped_count"}
)


def write_schedule(record: ScheduleRecord, *, payloads: bool = True) -> pb.WorkflowSchedule:
    if not payloads:
        spec = msgspec.structs.replace(record.spec, input=None, context=None)
        record = msgspec.structs.replace(record, spec=spec)
    return _write_schedule(record)
