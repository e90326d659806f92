"""Reads what only workers read, and they from the message itself: here as records, to compare with what was written."""

from kagzi.core.records import NO_LABELS, ClaimedRun, HistoryPage, HistoryStep, RunKey
from kagzi.core.schedules.scheduled_time import with_scheduled_time
from kagzi.core.states import StepKind, StepStatus
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.common import read_error, read_lease, read_namespace, read_payload
from kagzi.wire.enums import STEP_KIND_FROM_WIRE, STEP_STATUS_FROM_WIRE


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
