"""Steps as people see them."""

from ..core.records import RunKey, StepAttempt, StepRecord
from ..core.states import StepKind, StepStatus
from ..v1 import worker_pb2 as pb
from .common import (
    read_error,
    read_namespace,
    read_payload,
    read_retry,
    read_time,
    read_time_if,
    write_error,
    write_error_if,
    write_payload_if,
    write_retry_if,
    write_time,
    write_time_if,
)
from .enums import STEP_KIND_FROM_WIRE, STEP_KIND_TO_WIRE, STEP_STATUS_FROM_WIRE, STEP_STATUS_TO_WIRE


def write_step(record: StepRecord) -> pb.Step:
    return pb.Step(
        step_id=record.step_id,
        run_id=record.run.run_id,
        namespace_id=record.run.namespace,
        name=record.name,
        kind=STEP_KIND_TO_WIRE[record.kind],
        status=STEP_STATUS_TO_WIRE[record.status],
        attempt_number=record.attempt,
        input=write_payload_if(record.input),
        output=write_payload_if(record.output),
        error=write_error_if(record.error),
        created_at=write_time(record.created_at),
        started_at=write_time_if(record.started_at),
        finished_at=write_time_if(record.finished_at),
        child_run_id=record.child_run_id,
        seq=record.seq,
        retry_policy=write_retry_if(record.retry),
        timeout_ms=record.timeout_ms,
        retry_at=write_time_if(record.retry_at),
        wake_at=write_time_if(record.wake_at),
        parent_step_id=record.parent_step_id,
        parallel_group_id=record.parallel_group_id,
        attempts=[_write_attempt(attempt) for attempt in record.attempts],
        heartbeat_details=write_payload_if(record.details),
        worker_id=record.worker_id or "",
    )


def _write_attempt(attempt: StepAttempt) -> pb.StepAttempt:
    return pb.StepAttempt(
        attempt_number=attempt.attempt,
        started_at=write_time_if(attempt.started_at),
        finished_at=write_time(attempt.finished_at),
        error=write_error(attempt.error),
        worker_id=attempt.worker_id or "",
    )


def read_step(message: pb.Step) -> StepRecord:
    """What people see of a step; its begun_seq stays in the history (0 here)."""
    return StepRecord(
        run=RunKey(read_namespace(message.namespace_id), message.run_id),
        step_id=message.step_id,
        name=message.name,
        kind=STEP_KIND_FROM_WIRE.get(message.kind, StepKind.FUNCTION),
        status=STEP_STATUS_FROM_WIRE.get(message.status, StepStatus.RUNNING),
        attempt=message.attempt_number,
        begun_seq=0,
        seq=message.seq,
        created_at=read_time(message.created_at),
        started_at=read_time_if(message, "started_at"),
        finished_at=read_time_if(message, "finished_at"),
        output=read_payload(message.output) if message.HasField("output") else None,
        input=read_payload(message.input) if message.HasField("input") else None,
        error=read_error(message.error) if message.HasField("error") else None,
        retry=read_retry(message.retry_policy) if message.HasField("retry_policy") else None,
        timeout_ms=message.timeout_ms,
        retry_at=read_time_if(message, "retry_at"),
        wake_at=read_time_if(message, "wake_at"),
        child_run_id=message.child_run_id or None,
        parent_step_id=message.parent_step_id,
        parallel_group_id=message.parallel_group_id,
        worker_id=message.worker_id or None,
        attempts=tuple(_read_attempt(attempt) for attempt in message.attempts),
        details=read_payload(message.heartbeat_details) if message.HasField("heartbeat_details") else None,
    )


def _read_attempt(message: pb.StepAttempt) -> StepAttempt:
    return StepAttempt(
        attempt=message.attempt_number,
        started_at=read_time_if(message, "started_at"),
        finished_at=read_time(message.finished_at),
        error=read_error(message.error),
        worker_id=message.worker_id or None,
    )
