"""Reads what workers and clients read from messages in forms of their own: here as records, to compare with what was
written."""

from typing import Any

import kagzi.wire.schemas  # noqa: F401  how it writes what a worker serves is said there
from kagzi.core.records import (
    NO_LABELS,
    ClaimedRun,
    HistoryPage,
    HistoryStep,
    NamespaceRecord,
    RunKey,
    RunRecord,
    StepRecord,
    WorkerRecord,
)
from kagzi.core.schedules.schedule import Fire, ScheduleRecord
from kagzi.core.schedules.scheduled_time import with_scheduled_time
from kagzi.core.states import StepKind, StepStatus
from kagzi.core.stats import StatsBucket
from kagzi.core.workers import WorkerEvent
from kagzi.core.workflow_types.queues import QueueStanding, WorkflowTypeRecord
from kagzi.core.workflow_types.versions import VersionRecord
from kagzi.v1 import admin_pb2, namespace_pb2, workflow_pb2, workflow_schedule_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.common import own_queue, read_error, read_lease, read_namespace, read_payload, read_time_if
from kagzi.wire.enums import STEP_KIND_FROM_WIRE, STEP_STATUS_FROM_WIRE
from kagzi.wire.fields import reader
from kagzi.wire.namespaces import LIMITS, limit_reader


def _read_context(message: workflow_pb2.Workflow) -> Any:
    context = read_payload(message.context) if message.HasField("context") else None
    return with_scheduled_time(context, read_time_if(message, "scheduled_at"))


read_run = reader(
    workflow_pb2.Workflow,
    RunRecord,
    names={"attempt": "attempts", "wake_at": "wake_up_at"},
    unsent=("lost_leases",),
    unread=("url", "scheduled_at"),
    task_queue=lambda message: own_queue(message.task_queue, message.workflow_type),
    context=_read_context,
)
read_step = reader(
    pb.Step,
    StepRecord,
    names={"attempt": "attempt_number", "details": "heartbeat_details"},
    begun_seq=lambda _: 0,  # stays in the history
)
read_worker = reader(
    pb.Worker,
    WorkerRecord,
    names={"sdk_version": "version"},
    unread=("task_queue", "workflow_types", "queue_concurrency_limit", "workflow_type_concurrency"),
)
read_worker_event = reader(admin_pb2.WorkerEvent, WorkerEvent, unsent=("number",))
read_version = reader(admin_pb2.WorkflowVersion, VersionRecord)
read_type = reader(admin_pb2.WorkflowType, WorkflowTypeRecord, namespace=lambda _: "default")
read_standing = reader(admin_pb2.QueueDepth, QueueStanding, names={"oldest_since": "oldest_waiting_since"})
read_bucket = reader(
    admin_pb2.StatsBucket,
    StatsBucket,
    unread=("p50_ms", "p95_ms"),
    p50_us=lambda message: round(message.p50_ms * 1_000) if message.HasField("p50_ms") else None,
    p95_us=lambda message: round(message.p95_ms * 1_000) if message.HasField("p95_ms") else None,
)
_limits: dict[str, Any] = {f"{name}_limit": limit_reader(name) for name in LIMITS}
read_namespace_record = reader(
    namespace_pb2.Namespace, NamespaceRecord, unsent=("next_start_at",), unread=("limits",), **_limits
)
read_schedule = reader(
    workflow_schedule_pb2.WorkflowSchedule,
    ScheduleRecord,
    names={"next_at": "next_fire_at"},
    unsent=("due_at", "revision", "request_id"),
    unread=("task_queue",),
)
read_fire = reader(
    workflow_schedule_pb2.ScheduleFire,
    Fire,
    names={"at": "fired_at", "reason": "skipped_reason", "count": "skipped_count"},
)


def read_task(message: pb.Task, *, worker_id: str = "") -> ClaimedRun:
    context = read_payload(message.context) if message.HasField("context") else None
    return ClaimedRun(
        run=RunKey(read_namespace(message.namespace_id), message.run_id),
        lease=read_lease(message.lease),
        worker_id=worker_id,
        workflow_id=message.workflow_id,
        workflow_type=message.workflow_type,
        version=message.version,
        attempt=message.attempt,
        input=read_payload(message.input) if message.HasField("input") else None,
        context=with_scheduled_time(context, message.scheduled_at_us or None),
        labels=dict(message.labels) if message.labels else NO_LABELS,
        created_at=message.created_at_us,
        claimed_at=message.claimed_at_us,
        deadline_at=message.deadline_at_us or None,
        last_seq=message.last_seq,
        history=read_history_page(message.history),
        cancel_requested=message.cancel_requested,
        cancel_reason=message.cancel_reason,
        pause_requested=message.pause_requested,
        parent_run_id=message.parent_run_id or None,
    )


def read_history_page(message: pb.HistoryPage) -> HistoryPage:
    steps = tuple(read_history_step(step) for step in message.steps)
    return HistoryPage(steps, message.has_more, message.next_after)


def read_history_step(message: pb.HistoryStep) -> HistoryStep:
    return HistoryStep(
        step_id=message.step_id,
        kind=STEP_KIND_FROM_WIRE.get(message.kind, StepKind.FUNCTION),
        status=STEP_STATUS_FROM_WIRE.get(message.status, StepStatus.RUNNING),
        begun_seq=message.begun_seq,
        attempt=message.attempt,
        seq=message.seq,
        at=message.at_us,
        output=read_payload(message.output) if message.HasField("output") else None,
        error=read_error(message.error) if message.HasField("error") else None,
        retry_at=message.retry_at_us or None,
        wake_at=message.wake_at_us or None,
        child_run_id=message.child_run_id or None,
        details=read_payload(message.details) if message.HasField("details") else None,
    )
