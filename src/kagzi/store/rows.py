"""Maps rows to the records of core, by the names of the columns; and values to columns and back.

Both stores name their columns alike, so a row is anything that is asked by name: a record of asyncpg, or a dictionary that
SQLite's rows are made into. JSON is text in both.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from operator import itemgetter
from typing import Any, Protocol

import msgspec

from ..core.bulk import Batch, BulkOperation
from ..core.error_details import ErrorDetail, decode_detail, encode_detail
from ..core.pages.cursor import Cursor
from ..core.records import (
    NO_LABELS,
    HistoryStep,
    NamespaceRecord,
    Payload,
    RunFilter,
    RunKey,
    RunRecord,
    Served,
    StepAttempt,
    StepRecord,
    WorkerRecord,
)
from ..core.retry.policy import RetryPolicy
from ..core.schedules.schedule import Fire, ScheduleRecord, read_spec
from ..core.states import (
    RUN_STATUS_OF_CODE,
    STEP_KIND_OF_CODE,
    STEP_STATUS_OF_CODE,
    WAIT_REASON_OF_CODE,
    RunStatus,
    WorkerStatus,
)
from ..core.times import Timestamp
from ..core.workers import WorkerEvent, WorkerEventKind
from ..core.workflow_types.queues import TypeLimits


class Row(Protocol):
    def __getitem__(self, column: str, /) -> Any: ...


_encode = msgspec.json.Encoder().encode
_decode_policy = msgspec.json.Decoder(RetryPolicy).decode
_decode_strings = msgspec.json.Decoder(dict[str, str]).decode
_decode_seconds = msgspec.json.Decoder(dict[str, int]).decode
_decode_filter = msgspec.json.Decoder(RunFilter).decode
_decode_batch = msgspec.json.Decoder(Batch).decode

_policies: dict[RetryPolicy, str] = {}
_POLICIES_KEPT = 1_000


def write_json(value: object) -> str:
    return _encode(value).decode()


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
    return None if text is None else _decode_policy(text)


def write_error(error: ErrorDetail | None) -> str | None:
    return None if error is None else encode_detail(error).decode()


def read_error(text: str | None) -> ErrorDetail | None:
    return None if text is None else decode_detail(text)


def write_strings(strings: Mapping[str, str] | None) -> str | None:
    """Labels and payload metadata; none are NULL."""
    return _encode(strings).decode() if strings else None


def read_labels(text: str | None) -> Mapping[str, str]:
    return _decode_strings(text) if text else NO_LABELS


def read_payload(data: bytes | None, metadata: str | None) -> Payload | None:
    return None if data is None else require_payload(data, metadata)


def require_payload(data: bytes, metadata: str | None) -> Payload:
    """Of a column that is never NULL."""
    return Payload(data, _decode_strings(metadata) if metadata else None)


def _history_step(  # noqa: PLR0917  the names of its columns
    step_id: str,
    kind: int,
    status: int,
    begun_seq: int,
    attempt: int,
    seq: int,
    finished_at: Timestamp | None,
    output: bytes | None,
    output_meta: str | None,
    error: str | None,
    retry_at: Timestamp | None,
    wake_at: Timestamp | None,
    child_run_id: str | None,
    details: bytes | None,
    details_meta: str | None,
) -> HistoryStep:
    return HistoryStep(
        step_id=step_id,
        kind=STEP_KIND_OF_CODE[kind],
        status=STEP_STATUS_OF_CODE[status],
        begun_seq=begun_seq,
        attempt=attempt,
        seq=seq,
        at=finished_at or 0,
        output=None if output is None else require_payload(output, output_meta),
        error=None if error is None else decode_detail(error),
        retry_at=retry_at,
        wake_at=wake_at,
        child_run_id=child_run_id,
        details=None if details is None else require_payload(details, details_meta),
    )


_HISTORY = tuple(signature(_history_step).parameters)


def history_reader(place: Callable[[str], Any] = str) -> Callable[[Any], HistoryStep]:
    """Reads steps as replay sees them. Every claim does, so the places of the columns are looked up once and not in each row."""
    values = itemgetter(*map(place, _HISTORY))
    return lambda row: _history_step(*values(row))


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
        pause_requested=bool(row["pause_requested"]),
        pause_reason=row["pause_reason"] or "",
        schedule_id=row["schedule_id"],
        concurrency_key=row["concurrency_key"] or "",
        blocked_by=row["blocked_by"],
        waits=waits,
        input=input,
        context=context,
        output=output,
    )


def read_step(row: Row, run: RunKey, attempts: tuple[StepAttempt, ...]) -> StepRecord:
    return StepRecord(
        run=run,
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


def read_worker(row: Row, served: tuple[Served, ...], status: WorkerStatus) -> WorkerRecord:
    return WorkerRecord(
        worker_id=row["worker_id"],
        namespace=row["namespace"],
        served=served,
        max_concurrent=row["max_concurrent"],
        hostname=row["hostname"],
        pid=row["pid"],
        sdk_version=row["sdk_version"],
        build_id=row["build_id"],
        labels=read_labels(row["labels"]),
        status=status,
        active_count=row["active_count"],
        total_completed=row["total_completed"],
        total_failed=row["total_failed"],
        registered_at=row["registered_at"],
        last_heartbeat_at=row["last_heartbeat_at"],
    )


def read_namespace(row: Row) -> NamespaceRecord:
    return NamespaceRecord(
        namespace=row["namespace"],
        enabled=bool(row["enabled"]),
        created_at=row["created_at"],
        open_runs_limit=row["open_runs_limit"],
        running_runs_limit=row["running_runs_limit"],
        starts_per_second_limit=row["starts_per_second_limit"],
        stored_bytes_limit=row["stored_bytes_limit"],
        sessions_limit=row["sessions_limit"],
        schedules_limit=row["schedules_limit"],
        retention_seconds=_decode_seconds(row["retention"]) if row["retention"] else {},
        deleting=row["deleting_at"] is not None,
        next_start_at=row["next_start_at"],
        stored_bytes=row["stored_bytes"],
        stored_bytes_at=row["stored_bytes_at"],
    )


def read_worker_event(row: Row) -> WorkerEvent:
    return WorkerEvent(
        worker_id=row["worker_id"],
        kind=WorkerEventKind(row["kind"]),
        at=row["at"],
        detail=row["detail"],
        number=row["number"],
    )


def read_bulk(row: Row) -> BulkOperation:
    return BulkOperation(
        operation_id=row["id"],
        namespace=row["namespace"],
        action=row["action"],
        where=_decode_filter(row["filter"]),
        reason=row["reason"],
        request_id=row["request_id"],
        created_at=row["created_at"],
        matched=row["matched"],
        done=row["done"],
        failed=row["failed"],
        last_error=row["last_error"],
        finished_at=row["finished_at"],
        stopped=bool(row["stopped"]),
        cursor=None if row["cursor_at"] is None else Cursor(row["cursor_at"], row["cursor_run"]),
        batch=None if row["batch"] is None else _decode_batch(row["batch"]),
    )


def read_schedule(row: Row) -> ScheduleRecord:
    return ScheduleRecord(
        namespace=row["namespace"],
        schedule_id=row["schedule_id"],
        spec=read_spec(row["spec"]),
        enabled=bool(row["enabled"]),
        paused_reason=row["paused_reason"] or "",
        next_at=row["next_at"],
        due_at=row["due_at"],
        last_fired_at=row["last_fired_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        revision=row["revision"],
        request_id=row["request_id"] or "",
    )


def read_fire(row: Row) -> Fire:
    return Fire(
        nominal_at=row["nominal_at"],
        at=row["at"],
        cause=row["cause"],
        run_id=row["run_id"],
        reason=row["reason"] or "",
        skipped_until=row["skipped_until"],
        count=row["count"],
    )


def read_limits(row: Row) -> TypeLimits:
    return TypeLimits(
        paused=bool(row["paused"]),
        max_running=row["max_running"],
        max_running_per_key=row["max_running_per_key"],
        starts_per_second=row["starts_per_second"],
        starts_per_second_per_key=row["starts_per_second_per_key"],
        when_full=row["when_full"],
    )
