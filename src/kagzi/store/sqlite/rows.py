"""Rows of the tables to records, and back."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ...core.error_details import ErrorDetail, decode_detail, encode_detail
from ...core.records import (
    NO_LABELS,
    HistoryStep,
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
from ...core.states import RUN_STATUS_OF_CODE, STEP_KIND_OF_CODE, STEP_STATUS_OF_CODE, WAIT_REASON_OF_CODE, WorkerStatus
from .connection import Row

_encode = msgspec.json.Encoder().encode
_decode_mapping = msgspec.json.Decoder(dict[str, str]).decode
_decode_seconds = msgspec.json.Decoder(dict[str, int]).decode
_decode_retry = msgspec.json.Decoder(RetryPolicy).decode
_decode_served = msgspec.json.Decoder(tuple[tuple[str, str], ...]).decode


def run_fields(run: RunKey) -> dict[str, str]:
    """What a statement about a run and its relatives is given."""
    return {"run_id": run.run_id, "namespace": run.namespace}


def write_json(value: Any) -> str:
    return _encode(value).decode()


def write_mapping(mapping: Mapping[str, str] | None) -> str | None:
    return _encode(dict(mapping)).decode() if mapping else None


def write_retry(policy: RetryPolicy | None) -> str | None:
    return None if policy is None else _encode(policy).decode()


def write_error(error: ErrorDetail) -> str:
    return encode_detail(error).decode()


def read_mapping(text: str | None) -> Mapping[str, str]:
    return _decode_mapping(text) if text else NO_LABELS


def read_retry(text: str | None) -> RetryPolicy | None:
    return None if text is None else _decode_retry(text)


def read_error(text: str | None) -> ErrorDetail | None:
    return None if text is None else decode_detail(text)


def read_payload(data: bytes | None, metadata: str | None) -> Payload | None:
    return None if data is None else Payload(data, _decode_mapping(metadata) if metadata else None)


def read_history_step(row: Row) -> HistoryStep:
    """From the columns of `part_history_columns`."""
    return HistoryStep(
        step_id=row[0],
        kind=STEP_KIND_OF_CODE[row[1]],
        status=STEP_STATUS_OF_CODE[row[2]],
        begun_seq=row[3],
        attempt=row[4],
        seq=row[5],
        at=row[6] or 0,
        output=read_payload(row[7], row[8]),
        error=read_error(row[9]),
        retry_at=row[10],
        wake_at=row[11],
        child_run_id=row[12],
        details=read_payload(row[13], row[14]),
    )


def read_run(row: Row) -> RunRecord:
    """From the columns of `part_run_columns`, and of `part_run_payloads` if they are there."""
    payloads = row[34:] or (None,) * 6
    return RunRecord(
        run=RunKey(row[1], row[0]),
        workflow_id=row[2],
        workflow_type=row[3],
        version=row[4],
        status=RUN_STATUS_OF_CODE[row[5]],
        wait_reason=None if row[6] is None else WAIT_REASON_OF_CODE[row[6]],
        attempt=row[7],
        priority=row[8],
        labels=read_mapping(row[9]),
        created_at=row[10],
        started_at=row[11],
        finished_at=row[12],
        wake_at=row[13],
        deadline_at=row[14],
        worker_id=row[15],
        last_seq=row[16],
        retry=read_retry(row[17]),
        cancel_requested=row[18] is not None,
        cancel_reason=row[19] or "",
        error=read_error(row[20]),
        problem=read_error(row[21]),
        parent_run_id=row[22],
        parent_step_id=row[23],
        lost_leases=row[24],
        status_text=row[25] or "",
        progress=row[26],
        forked_from=row[27],
        continued_as=row[28],
        pause_requested=bool(row[29]),
        pause_reason=row[30] or "",
        schedule_id=row[31],
        concurrency_key=row[32] or "",
        blocked_by=row[33],
        input=read_payload(payloads[0], payloads[1]),
        context=read_payload(payloads[2], payloads[3]),
        output=read_payload(payloads[4], payloads[5]),
    )


def read_step(run: RunKey, row: Row, attempts: tuple[StepAttempt, ...]) -> StepRecord:
    """From the columns of `part_step_columns` and input, output with their metadata."""
    return StepRecord(
        run=run,
        step_id=row[0],
        name=row[1],
        kind=STEP_KIND_OF_CODE[row[2]],
        status=STEP_STATUS_OF_CODE[row[3]],
        attempt=row[4],
        begun_seq=row[5],
        seq=row[6],
        created_at=row[7],
        started_at=row[8],
        finished_at=row[9],
        error=read_error(row[10]),
        retry=read_retry(row[11]),
        timeout_ms=row[12],
        retry_at=row[13],
        wake_at=row[14],
        child_run_id=row[15],
        parent_step_id=row[16],
        parallel_group_id=row[17],
        worker_id=row[18],
        input=read_payload(row[19], row[20]),
        output=read_payload(row[21], row[22]),
        details=read_payload(row[23], row[24]),
        attempts=attempts,
    )


def read_attempt(row: Row) -> StepAttempt:
    """From (attempt, started_at, finished_at, error, worker_id)."""
    return StepAttempt(
        attempt=row[0], started_at=row[1], finished_at=row[2], error=decode_detail(row[3]), worker_id=row[4]
    )


def read_worker(row: Row) -> WorkerRecord:
    return WorkerRecord(
        worker_id=row[0],
        namespace=row[1],
        served=tuple(Served(*pair) for pair in _decode_served(row[2])),
        max_concurrent=row[3],
        hostname=row[4],
        pid=row[5],
        sdk_version=row[6],
        build_id=row[7],
        labels=read_mapping(row[8]),
        status=WorkerStatus(row[9]),
        active_count=row[10],
        total_completed=row[11],
        total_failed=row[12],
        registered_at=row[13],
        last_heartbeat_at=row[14],
    )


def read_namespace(row: Row) -> NamespaceRecord:
    """From the columns of `part_namespace_columns`."""
    return NamespaceRecord(
        namespace=row[0],
        enabled=bool(row[1]),
        created_at=row[2],
        open_runs_limit=row[3],
        running_runs_limit=row[4],
        starts_per_second_limit=row[5],
        stored_bytes_limit=row[6],
        sessions_limit=row[7],
        schedules_limit=row[8],
        retention_seconds=_decode_seconds(row[9]) if row[9] else {},
        deleting=row[10] is not None,
        next_start_at=row[11],
        stored_bytes=row[12],
        stored_bytes_at=row[13],
    )
