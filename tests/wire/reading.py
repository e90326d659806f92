"""Reads what only workers read, and they from the message itself: here as records, to compare with what was written."""

from kagzi.core.records import NO_LABELS, ClaimedRun, HistoryPage, HistoryStep, RunKey
from kagzi.core.schedules.scheduled_time import with_scheduled_time
from kagzi.core.states import StepKind, StepStatus
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.common import read_error, read_lease, read_namespace, read_payload
from kagzi.wire.enums import STEP_KIND_FROM_WIRE, STEP_STATUS_FROM_WIRE


def read_task(letter: pb.Task, *, worker_id: str = "") -> ClaimedRun:
    context = read_payload(letter.context) if letter.HasField("context") else None
    return ClaimedRun(
        run=RunKey(read_namespace(letter.namespace_id), letter.run_id),
        lease=read_lease(letter.lease),
        worker_id=worker_id,
        workflow_id=letter.workflow_id,
        workflow_type=letter.workflow_type,
        version=letter.version,
        attempt=letter.attempt,
        input=read_payload(letter.input) if letter.HasField("input") else None,
        context=with_scheduled_time(context, letter.scheduled_at_us or None),
        labels=dict(letter.labels) if letter.labels else NO_LABELS,
        created_at=letter.created_at_us,
        claimed_at=letter.claimed_at_us,
        deadline_at=letter.deadline_at_us or None,
        last_seq=letter.last_seq,
        history=read_history_page(letter.history),
        cancel_requested=letter.cancel_requested,
        cancel_reason=letter.cancel_reason,
        pause_requested=letter.pause_requested,
        parent_run_id=letter.parent_run_id or None,
    )


def read_history_page(letter: pb.HistoryPage) -> HistoryPage:
    steps = tuple(read_history_step(step) for step in letter.steps)
    return HistoryPage(steps, letter.has_more, letter.next_after)


def read_history_step(letter: pb.HistoryStep) -> HistoryStep:
    return HistoryStep(
        step_id=letter.step_id,
        kind=STEP_KIND_FROM_WIRE.get(letter.kind, StepKind.FUNCTION),
        status=STEP_STATUS_FROM_WIRE.get(letter.status, StepStatus.RUNNING),
        begun_seq=letter.begun_seq,
        attempt=letter.attempt,
        seq=letter.seq,
        at=letter.at_us,
        output=read_payload(letter.output) if letter.HasField("output") else None,
        error=read_error(letter.error) if letter.HasField("error") else None,
        retry_at=letter.retry_at_us or None,
        wake_at=letter.wake_at_us or None,
        child_run_id=letter.child_run_id or None,
        details=read_payload(letter.details) if letter.HasField("details") else None,
    )
