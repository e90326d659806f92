"""Rows become records. The one place that knows the names of columns and how JSON columns are written."""

from collections.abc import Mapping

import msgspec

from ...core.error_details import ErrorDetail, decode_detail, encode_detail
from ...core.records import (
    NO_LABELS,
    ClaimedRun,
    HistoryPage,
    HistoryStep,
    Lease,
    NamespaceRecord,
    Payload,
    RunKey,
    RunRecord,
    Served,
    StepAttempt,
    StepRecord,
    WorkerRecord,
)
from ...core.retry import RetryPolicy
from ...core.states import (
    RUN_STATUS_OF_CODE,
    STEP_KIND_OF_CODE,
    STEP_STATUS_OF_CODE,
    WAIT_REASON_OF_CODE,
    RunStatus,
    WorkerStatus,
)
from .connections import Row

_encode = msgspec.json.Encoder().encode
_policy_decoder = msgspec.json.Decoder(RetryPolicy)
_strings_decoder = msgspec.json.Decoder(dict[str, str])
_seconds_decoder = msgspec.json.Decoder(dict[str, int])
_served_decoder = msgspec.json.Decoder(tuple[Served, ...])

WORKER_STATUS_OF_CODE = dict(enumerate(WorkerStatus, start=1))
CODE_OF_WORKER_STATUS = {status: code for code, status in WORKER_STATUS_OF_CODE.items()}

_policies: dict[RetryPolicy, str] = {}
_POLICIES_KEPT = 1_000


def write_policy(policy: RetryPolicy | None) -> str | None:
    """A program has few policies and sends them with every step, so their text is kept."""
    if policy is None:
        return None
    text = _policies.get(policy)
    if text is None:
        if len(_policies) >= _POLICIES_KEPT:
            _policies.clear()
        text = _policies[policy] = _encode(policy).decode()
    return text


def read_policy(text: str | None) -> RetryPolicy | None:
    return None if text is None else _policy_decoder.decode(text)


def write_error(error: ErrorDetail | None) -> str | None:
    return None if error is None else encode_detail(error).decode()


def read_error(text: str | None) -> ErrorDetail | None:
    return None if text is None else decode_detail(text)


def write_strings(strings: Mapping[str, str] | None) -> str | None:
    """Labels and payload metadata."""
    return None if strings is None else _encode(strings).decode()


def write_retention(seconds: Mapping[str, int]) -> str | None:
    return _encode(seconds).decode() if seconds else None


def write_served(served: tuple[Served, ...]) -> str:
    return _encode(served).decode()


def read_labels(text: str | None) -> Mapping[str, str]:
    return NO_LABELS if text is None else _strings_decoder.decode(text)


def read_payload(data: bytes | None, metadata: str | None) -> Payload | None:
    if data is None:
        return None
    return Payload(data, None if metadata is None else _strings_decoder.decode(metadata))


def require_payload(data: bytes, metadata: str | None) -> Payload:
    """Of a column that is never NULL."""
    return Payload(data, None if metadata is None else _strings_decoder.decode(metadata))


def read_history_step(row: Row) -> HistoryStep:
    return HistoryStep(
        step_id=row["step_id"],
        kind=STEP_KIND_OF_CODE[row["kind"]],
        status=STEP_STATUS_OF_CODE[row["status"]],
        begun_seq=row["begun_seq"],
        attempt=row["attempt"],
        seq=row["seq"],
        at=row["finished_at"] or 0,
        output=read_payload(row["output"], row["output_meta"]),
        error=read_error(row["error"]),
        retry_at=row["retry_at"],
        wake_at=row["wake_at"],
        child_run_id=row["child_run_id"],
        details=read_payload(row["details"], row["details_meta"]),
    )


def read_claimed_run(
    row: Row, *, now: int, last_seq: int, input: Payload | None, context: Payload | None, history: HistoryPage
) -> ClaimedRun:
    return ClaimedRun(
        run=RunKey(row["namespace"], row["run_id"]),
        lease=Lease(row["lease"], row["nonce"]),
        worker_id=row["worker_id"],
        workflow_id=row["workflow_id"],
        workflow_type=row["workflow_type"],
        version=row["version"],
        attempt=row["attempt"],
        input=input,
        context=context,
        labels=read_labels(row["labels"]),
        created_at=row["created_at"],
        claimed_at=now,
        deadline_at=row["deadline_at"],
        last_seq=last_seq,
        history=history,
        cancel_requested=row["cancel_requested_at"] is not None,
        cancel_reason=row["cancel_reason"] or "",
        parent_run_id=row["parent_run_id"],
    )


def read_run(
    row: Row,
    *,
    waits: tuple[str, ...] = (),
    input: Payload | None = None,
    context: Payload | None = None,
    output: Payload | None = None,
) -> RunRecord:
    status = RUN_STATUS_OF_CODE[row["status"]]
    reason = row["wait_reason"]
    return RunRecord(
        run=RunKey(row["namespace"], row["run_id"]),
        workflow_id=row["workflow_id"],
        workflow_type=row["workflow_type"],
        version=row["version"],
        status=status,
        wait_reason=None if reason is None else WAIT_REASON_OF_CODE[reason],
        attempt=row["attempt"],
        priority=row["priority"],
        labels=read_labels(row["labels"]),
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        wake_at=row["due_at"],
        deadline_at=row["deadline_at"],
        worker_id=row["worker_id"] if status is RunStatus.RUNNING else None,
        last_seq=row["seq"],
        retry=read_policy(row["retry"]),
        cancel_requested=row["cancel_requested_at"] is not None,
        cancel_reason=row["cancel_reason"] or "",
        error=read_error(row["error"]),
        problem=read_error(row["problem"]),
        parent_run_id=row["parent_run_id"],
        parent_step_id=row["parent_step_id"],
        lost_leases=row["lost_leases"],
        status_text=row["status_text"] or "",
        progress=row["progress"],
        forked_from=row["forked_from"],
        continued_as=row["continued_as"],
        pause_requested=row["pause_requested"],
        pause_reason=row["pause_reason"] or "",
        schedule_id=row["schedule_id"],
        concurrency_key=row["concurrency_key"] or "",
        blocked_by=row["blocked_by"],
        waits=waits,
        input=input,
        context=context,
        output=output,
    )


def read_step(row: Row, namespace: str, attempts: tuple[StepAttempt, ...]) -> StepRecord:
    return StepRecord(
        run=RunKey(namespace, row["run_id"]),
        step_id=row["step_id"],
        name=row["name"],
        kind=STEP_KIND_OF_CODE[row["kind"]],
        status=STEP_STATUS_OF_CODE[row["status"]],
        attempt=row["attempt"],
        begun_seq=row["begun_seq"],
        seq=row["seq"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        output=read_payload(row["output"], row["output_meta"]),
        input=read_payload(row["input"], row["input_meta"]),
        error=read_error(row["error"]),
        retry=read_policy(row["retry"]),
        timeout_ms=row["timeout_ms"],
        retry_at=row["retry_at"],
        wake_at=row["wake_at"],
        child_run_id=row["child_run_id"],
        parent_step_id=row["parent_step_id"] or "",
        parallel_group_id=row["parallel_group_id"] or "",
        worker_id=row["worker_id"],
        attempts=attempts,
        details=read_payload(row["details"], row["details_meta"]),
    )


def read_attempt(row: Row) -> StepAttempt:
    return StepAttempt(
        attempt=row["attempt"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        error=decode_detail(row["error"]),
        worker_id=row["worker_id"],
    )


def read_worker(row: Row) -> WorkerRecord:
    return WorkerRecord(
        worker_id=row["worker_id"],
        namespace=row["namespace"],
        served=_served_decoder.decode(row["served"]),
        max_concurrent=row["max_concurrent"],
        hostname=row["hostname"],
        pid=row["pid"],
        sdk_version=row["sdk_version"],
        build_id=row["build_id"],
        labels=read_labels(row["labels"]),
        status=WORKER_STATUS_OF_CODE[row["status"]],
        active_count=row["active_count"],
        total_completed=row["total_completed"],
        total_failed=row["total_failed"],
        registered_at=row["registered_at"],
        last_heartbeat_at=row["last_heartbeat_at"],
    )


def read_namespace(row: Row) -> NamespaceRecord:
    return NamespaceRecord(
        namespace=row["namespace"],
        enabled=row["enabled"],
        created_at=row["created_at"],
        open_runs_limit=row["open_runs_limit"],
        running_runs_limit=row["running_runs_limit"],
        starts_per_second_limit=row["starts_per_second_limit"],
        stored_bytes_limit=row["stored_bytes_limit"],
        sessions_limit=row["sessions_limit"],
        schedules_limit=row["schedules_limit"],
        retention_seconds={} if row["retention"] is None else _seconds_decoder.decode(row["retention"]),
        deleting=row["deleting_at"] is not None,
        next_start_at=row["next_start_at"],
        stored_bytes=row["stored_bytes"],
        stored_bytes_at=row["stored_bytes_at"],
    )
