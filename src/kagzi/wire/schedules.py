"""Schedules as messages."""

from collections.abc import Callable
from typing import Any, cast

import msgspec
from google.protobuf.message import Message

from ..core.errors import InvalidArgument
from ..core.limits import SCHEDULE_CATCHUP_DEFAULT, SCHEDULE_CATCHUP_WINDOW_US
from ..core.records import NO_LABELS, Payload
from ..core.schedules.schedule import OVERLAPS, Cause, Fire, Overlap, ScheduleRecord, ScheduleSpec
from ..core.times import Timestamp
from ..v1 import common_pb2
from ..v1 import workflow_schedule_pb2 as pb
from .common import (
    read_duration_us,
    read_namespace,
    read_payload,
    read_time,
    read_time_if,
    read_type,
    write_duration,
    write_payload_if,
    write_time,
    write_time_if,
)

_OVERLAP: dict[Overlap, int] = {word: pb.OverlapPolicy.Value(f"OVERLAP_POLICY_{word.upper()}") for word in OVERLAPS}
_OVERLAP_FROM_WIRE: dict[int, Overlap] = {0: "allow", **{number: word for word, number in _OVERLAP.items()}}
OVERLAP_TO_WIRE = cast("dict[Overlap, pb.OverlapPolicy]", _OVERLAP)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it was asked for. `enabled` None: nothing was said about it."""

    namespace: str
    schedule_id: str
    spec: ScheduleSpec
    enabled: bool | None
    request_id: str


def read_asked(message: pb.CreateWorkflowScheduleRequest, *, namespace_id: str = "") -> Asked:
    """`namespace_id`: of the message around it. Raises InvalidArgument."""
    if namespace_id and message.namespace_id and message.namespace_id != namespace_id:
        raise InvalidArgument(
            f"namespace_id={message.namespace_id!r} of the schedule differs from that of the request, {namespace_id!r}. "
            "Leave it empty.",
            field="namespace_id",
        )
    _check_task_queue(message.task_queue, message.workflow_type)
    has = message.HasField
    spec = ScheduleSpec(
        workflow_type=read_type(message.workflow_type),
        cron_expr=message.cron_expr,
        interval_us=read_duration_us(message.interval) if has("interval") else None,
        timezone=message.timezone,
        input=read_payload(message.input) if has("input") else None,
        context=read_payload(message.context) if has("context") else None,
        version=message.version,
        labels=dict(message.labels) if message.labels else NO_LABELS,
        priority=message.priority,
        overlap=_read_overlap(message.overlap),
        jitter_us=read_duration_us(message.jitter),
        start_at=read_time_if(message, "start_at"),
        end_at=read_time_if(message, "end_at"),
        max_catchup=message.max_catchup if has("max_catchup") else SCHEDULE_CATCHUP_DEFAULT,
        catchup_window_us=read_duration_us(message.catchup_window)
        if has("catchup_window")
        else SCHEDULE_CATCHUP_WINDOW_US,
        timeout_us=read_duration_us(message.timeout) if has("timeout") else None,
    )
    return Asked(
        namespace=read_namespace(message.namespace_id or namespace_id),
        schedule_id=message.schedule_id,
        spec=spec,
        enabled=message.enabled if has("enabled") else None,
        request_id=message.request_id,
    )


def write_asked(asked: Asked) -> pb.CreateWorkflowScheduleRequest:
    spec = asked.spec
    message = pb.CreateWorkflowScheduleRequest(
        namespace_id=asked.namespace,
        schedule_id=asked.schedule_id,
        request_id=asked.request_id,
        workflow_type=spec.workflow_type,
        cron_expr=spec.cron_expr,
        interval=None if spec.interval_us is None else write_duration(spec.interval_us),
        timezone=spec.timezone,
        input=write_payload_if(spec.input),
        context=write_payload_if(spec.context),
        version=spec.version or None,
        labels=spec.labels,
        priority=spec.priority,
        overlap=OVERLAP_TO_WIRE[spec.overlap],
        jitter=write_duration(spec.jitter_us),
        start_at=write_time_if(spec.start_at),
        end_at=write_time_if(spec.end_at),
        max_catchup=spec.max_catchup,
        catchup_window=write_duration(spec.catchup_window_us),
        timeout=None if spec.timeout_us is None else write_duration(spec.timeout_us),
    )
    if asked.enabled is not None:
        message.enabled = asked.enabled
    return message


def updated(message: pb.UpdateWorkflowScheduleRequest, spec: ScheduleSpec) -> ScheduleSpec:
    """The spec with what the message says. A cron expression takes the place of an interval and the other way round; a time of 0
    takes a bound away, a timeout of 0 that, and an empty payload the input or context. Raises InvalidArgument."""
    has = message.HasField
    if has("cron_expr") and has("interval"):
        raise InvalidArgument("cron_expr and interval are both given. Give one.", field="interval")
    if message.labels and not message.set_labels:
        raise InvalidArgument("labels are given without set_labels. Set it: they replace all labels.", field="labels")
    changes = {
        name: read(getattr(message, field)) for field, (name, read) in _UPDATES.items() if message.HasField(field)
    }
    if message.set_labels:
        changes["labels"] = dict(message.labels)
    if has("cron_expr"):
        changes["interval_us"] = None
    if has("interval"):
        changes |= {"cron_expr": "", "timezone": message.timezone}
    changed = msgspec.structs.replace(spec, **changes)
    _check_task_queue(message.task_queue, changed.workflow_type)
    return changed


def _payload_or_none(message: common_pb2.Payload) -> Payload | None:
    return read_payload(message) if message.data or message.metadata else None


def _read_overlap(number: int) -> Overlap:
    word = _OVERLAP_FROM_WIRE.get(number)
    if word is None:
        raise InvalidArgument(f"overlap={number} is none of the known policies.", field="overlap")
    return word


def _as_it_is(value: object) -> object:
    return value


# Fields of an update that have a presence: what they are called in a spec, and how they are read.
_UPDATES: dict[Any, tuple[str, Callable[[Any], object]]] = {
    **{field: (field, _as_it_is) for field in ("cron_expr", "timezone", "version", "max_catchup", "priority")},
    "workflow_type": ("workflow_type", read_type),
    **{field: (field, _payload_or_none) for field in ("input", "context")},
    **{field: (field, lambda at: read_time(at) or None) for field in ("start_at", "end_at")},
    **{field: (f"{field}_us", read_duration_us) for field in ("jitter", "catchup_window", "interval")},
    "timeout": ("timeout_us", lambda duration: read_duration_us(duration) or None),
    "overlap": ("overlap", _read_overlap),
}


def _check_task_queue(task_queue: str, workflow_type: str) -> None:
    if task_queue and read_type(task_queue) != read_type(workflow_type):
        raise InvalidArgument(
            f"task_queue={task_queue!r} differs from workflow_type={workflow_type!r}. "
            "Leave it empty: the queue of a run is its type.",
            field="task_queue",
        )


def read_required_time(message: Message, field: str) -> Timestamp:
    at = read_time_if(message, field)
    if at is None:
        raise InvalidArgument(f"{field} is missing. Give a time.", field=field)
    return at


def write_schedule(record: ScheduleRecord, *, payloads: bool = True) -> pb.WorkflowSchedule:
    spec = record.spec
    return pb.WorkflowSchedule(
        schedule_id=record.schedule_id,
        namespace_id=record.namespace,
        task_queue=spec.workflow_type,
        workflow_type=spec.workflow_type,
        cron_expr=spec.cron_expr,
        input=write_payload_if(spec.input if payloads else None),
        context=write_payload_if(spec.context if payloads else None),
        enabled=record.enabled,
        max_catchup=spec.max_catchup,
        next_fire_at=write_time_if(record.next_at),
        last_fired_at=write_time_if(record.last_fired_at),
        version=spec.version,
        created_at=write_time(record.created_at),
        updated_at=write_time(record.updated_at),
        timezone=spec.timezone,
        interval=None if spec.interval_us is None else write_duration(spec.interval_us),
        overlap=OVERLAP_TO_WIRE[spec.overlap],
        jitter=write_duration(spec.jitter_us),
        start_at=write_time_if(spec.start_at),
        end_at=write_time_if(spec.end_at),
        catchup_window=write_duration(spec.catchup_window_us),
        labels=spec.labels,
        paused_reason=record.paused_reason,
        priority=spec.priority,
        timeout=None if spec.timeout_us is None else write_duration(spec.timeout_us),
    )


def read_schedule(message: pb.WorkflowSchedule) -> ScheduleRecord:
    """As a client sees it: what only the server needs is left out."""
    has = message.HasField
    spec = ScheduleSpec(
        workflow_type=message.workflow_type,
        cron_expr=message.cron_expr,
        interval_us=read_duration_us(message.interval) if has("interval") else None,
        timezone=message.timezone,
        input=read_payload(message.input) if has("input") else None,
        context=read_payload(message.context) if has("context") else None,
        version=message.version,
        labels=dict(message.labels),
        priority=message.priority,
        overlap=_OVERLAP_FROM_WIRE.get(message.overlap, "allow"),
        jitter_us=read_duration_us(message.jitter),
        start_at=read_time_if(message, "start_at"),
        end_at=read_time_if(message, "end_at"),
        max_catchup=message.max_catchup,
        catchup_window_us=read_duration_us(message.catchup_window),
        timeout_us=read_duration_us(message.timeout) if has("timeout") else None,
    )
    return ScheduleRecord(
        namespace=message.namespace_id,
        schedule_id=message.schedule_id,
        spec=spec,
        enabled=message.enabled,
        paused_reason=message.paused_reason,
        next_at=read_time_if(message, "next_fire_at"),
        last_fired_at=read_time_if(message, "last_fired_at"),
        created_at=read_time(message.created_at),
        updated_at=read_time(message.updated_at),
    )


def write_fire(fire: Fire) -> pb.ScheduleFire:
    return pb.ScheduleFire(
        nominal_at=write_time(fire.nominal_at),
        fired_at=write_time(fire.at),
        run_id=fire.run_id or "",
        skipped_reason=fire.reason,
        cause=fire.cause,
        skipped_until=write_time_if(fire.skipped_until),
        skipped_count=fire.count,
    )


def read_fire(message: pb.ScheduleFire) -> Fire:
    return Fire(
        nominal_at=read_time(message.nominal_at),
        at=read_time(message.fired_at),
        cause=cast("Cause", message.cause),
        run_id=message.run_id or None,
        reason=message.skipped_reason,
        skipped_until=read_time_if(message, "skipped_until"),
        count=message.skipped_count,
    )
