"""A claimed run and its history: what a worker needs to go on."""

from ..core.records import NO_LABELS, ClaimedRun, HistoryPage, HistoryStep, RunKey
from ..core.scheduled_time import split_scheduled_time, with_scheduled_time
from ..core.states import StepKind, StepStatus
from ..v1 import worker_pb2 as pb
from .common import (
    read_error,
    read_lease,
    read_namespace,
    read_payload,
    write_error_if,
    write_lease,
    write_payload_if,
)
from .enums import STEP_KIND_FROM_WIRE, STEP_KIND_TO_WIRE, STEP_STATUS_FROM_WIRE, STEP_STATUS_TO_WIRE


def write_task(claimed: ClaimedRun) -> pb.Task:
    context, scheduled_at = split_scheduled_time(claimed.context)
    return pb.Task(
        run_id=claimed.run.run_id,
        workflow_type=claimed.workflow_type,
        input=write_payload_if(claimed.input),
        lease=write_lease(claimed.lease),
        workflow_id=claimed.workflow_id,
        namespace_id=claimed.run.namespace,
        version=claimed.version,
        attempt=claimed.attempt,
        context=write_payload_if(context),
        deadline_at_us=claimed.deadline_at or 0,
        labels=claimed.labels,
        history=write_history_page(claimed.history),
        cancel_requested=claimed.cancel_requested,
        cancel_reason=claimed.cancel_reason,
        last_seq=claimed.last_seq,
        claimed_at_us=claimed.claimed_at,
        parent_run_id=claimed.parent_run_id or "",
        created_at_us=claimed.created_at,
        pause_requested=claimed.pause_requested,
        scheduled_at_us=scheduled_at or 0,
    )


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


def write_history_page(page: HistoryPage) -> pb.HistoryPage | None:
    if not page.steps and not page.has_more:
        return None
    return pb.HistoryPage(
        steps=[write_history_step(step) for step in page.steps], has_more=page.has_more, next_after=page.next_after
    )


def read_history_page(letter: pb.HistoryPage) -> HistoryPage:
    steps = tuple(read_history_step(step) for step in letter.steps)
    return HistoryPage(steps, letter.has_more, letter.next_after)


def write_history_step(step: HistoryStep) -> pb.HistoryStep:
    return pb.HistoryStep(
        step_id=step.step_id,
        kind=STEP_KIND_TO_WIRE[step.kind],
        status=STEP_STATUS_TO_WIRE[step.status],
        attempt=step.attempt,
        begun_seq=step.begun_seq,
        seq=step.seq,
        at_us=step.at,
        output=write_payload_if(step.output),
        error=write_error_if(step.error),
        retry_at_us=step.retry_at or 0,
        wake_at_us=step.wake_at or 0,
        child_run_id=step.child_run_id or "",
        details=write_payload_if(step.details),
    )


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
