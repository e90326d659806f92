"""A claimed run and its history: what a worker needs to continue it."""

from ..core.records import ClaimedRun, HistoryPage, HistoryStep
from ..core.schedules.scheduled_time import split_scheduled_time
from ..v1 import worker_pb2 as pb
from .common import (
    write_error_if,
    write_lease,
    write_payload_if,
)
from .enums import STEP_KIND_TO_WIRE, STEP_STATUS_TO_WIRE


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
        own_traces_from=claimed.own_traces_from,
    )


def write_history_page(page: HistoryPage) -> pb.HistoryPage | None:
    if not page.steps and not page.has_more:
        return None
    return pb.HistoryPage(
        steps=[write_history_step(step) for step in page.steps], has_more=page.has_more, next_after=page.next_after
    )


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
