"""Rows of the tables to the lines of an export, and back."""

from typing import Any

from ...core.error_details import decode_detail
from ...core.records import Payload
from ...core.run.state import NEVER
from ...core.states import (
    CODE_OF_STEP_KIND,
    CODE_OF_STEP_STATUS,
    RUN_STATUS_OF_CODE,
    STEP_KIND_OF_CODE,
    STEP_STATUS_OF_CODE,
    WAIT_REASON_OF_CODE,
    KindCode,
    StepCode,
    StepKind,
    StepStatus,
)
from ...core.times import Timestamp
from ...core.transfers import (
    AttemptImage,
    Data,
    RunImage,
    SignalImage,
    StepImage,
    read_data,
    require_data,
    write_data,
)
from .connections import Row
from .rows import read_error, read_labels, read_payload, read_policy, write_error, write_policy, write_strings

CODE_OF_ON_CLOSE = {"cancel": 1, "abandon": 2}
_ON_CLOSE_OF_CODE: dict[int | None, Any] = {None: None, 1: "cancel", 2: "abandon"}
_EVENT_KINDS = (StepKind.SLEEP, StepKind.SIGNAL, StepKind.CHILD)


def read_run_image(row: Row) -> RunImage:
    """From a row of `export_run`."""
    status = RUN_STATUS_OF_CODE[row["status"]]
    return RunImage(
        run_id=row["id"],
        workflow_id=row["workflow_id"],
        workflow_type=row["workflow_type"],
        version=row["version"],
        status=status,
        wait_reason=None if row["wait_reason"] is None else WAIT_REASON_OF_CODE[row["wait_reason"]],
        priority=row["priority"],
        last_seq=row["seq"],
        lease=row["lease"],
        attempt=row["attempt"],
        lost_leases=row["lost_leases"],
        retry=read_policy(row["retry"]),
        request_id=row["request_id"],
        labels=read_labels(row["labels"]),
        parent_run_id=row["parent"],
        parent_step_id=row["parent_step_id"],
        on_close=_ON_CLOSE_OF_CODE[row["on_close"]],
        watched=row["watched"],
        has_children=row["has_children"],
        cascade_due=row["cascade_due"],
        concurrency_key=row["concurrency_key"] or "",
        schedule_id=row["schedule_id"],
        blocked_by=row["blocker"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        ready_at=row["ready_at"],
        wake_at=row["due_at"],
        paused_wake_at=row["paused_due_at"],
        deadline_at=row["deadline_at"],
        cancel_requested_at=row["cancel_requested_at"],
        cancel_by=row["cancel_by"],
        cancel_reason=row["cancel_reason"] or None,
        pause_requested=row["pause_requested"],
        pause_reason=row["pause_reason"] or None,
        status_text=row["status_text"] or None,
        progress=row["progress"],
        forked_from=row["forked"],
        continued_as=row["successor"],
        tried_builds=tuple(row["tried_builds"] or ()),
        retry_request_id=row["retry_request_id"],
        error=read_error(row["error"]) if status.ended else None,
        problem=read_error(row["problem"]),
        input=_data(row["input"], row["input_meta"]),
        context=_data(row["context"], row["context_meta"]),
        output=_data(row["result"], row["result_meta"]),
    )


def read_step_image(row: Row) -> StepImage:
    status = STEP_STATUS_OF_CODE[row["status"]]
    return StepImage(
        step_id=row["step_id"],
        name=row["name"],
        kind=STEP_KIND_OF_CODE[row["kind"]],
        status=status,
        begun_seq=row["begun_seq"],
        created_at=row["created_at"],
        attempt=row["attempt"],
        seq=row["seq"],
        retry=read_policy(row["retry"]),
        timeout_ms=row["timeout_ms"],
        once=row["once"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        retry_at=row["retry_at"],
        wake_at=row["wake_at"],
        child_run_id=row["child"],
        parent_step_id=row["parent_step_id"] or "",
        parallel_group_id=row["parallel_group_id"] or "",
        worker_id=row["worker_id"],
        error=read_error(row["error"]) if status is StepStatus.FAILED else None,
        input=_data(row["input"], row["input_meta"]),
        output=_data(row["output"], row["output_meta"]),
        details=_data(row["details"], row["details_meta"]),
    )


def read_attempt_image(row: Row) -> AttemptImage:
    return AttemptImage(
        step_id=row["step_id"],
        attempt=row["attempt"],
        begun_seq=row["begun_seq"],
        seq=row["seq"],
        finished_at=row["finished_at"],
        retry_at=row["finished_at"] if row["retry_at"] is None else row["retry_at"],
        error=decode_detail(row["error"]),
        started_at=row["started_at"],
        worker_id=row["worker_id"],
        forgotten=row["forgotten"],
    )


def read_signal_image(row: Row) -> SignalImage:
    payload = write_data(Payload(row["payload"], read_labels(row["payload_meta"]) or None))
    assert payload is not None  # a signal has one
    return SignalImage(
        number=row["number"],
        name=row["name"],
        request_id=row["request_id"],
        received_at=row["received_at"],
        payload=payload,
        step_id=row["step_id"],
    )


def _data(data: bytes | None, metadata: str | None) -> Data | None:
    return write_data(read_payload(data, metadata))


def _columns(data: Data | None, field: str) -> tuple[bytes | None, str | None]:
    payload = read_data(data, field)
    return (None, None) if payload is None else (payload.data, write_strings(payload.metadata or None))


def _due_at(step: StepImage) -> Timestamp | None:
    """When the clock does something about it; open waits are found by having such a time."""
    if step.status is StepStatus.PENDING:
        return step.retry_at
    if step.status is not StepStatus.RUNNING or step.kind not in _EVENT_KINDS:
        return None
    return NEVER if step.wake_at is None else step.wake_at


def step_row(step: StepImage) -> tuple[object, ...]:
    return (
        step.step_id,
        step.name,
        CODE_OF_STEP_KIND[step.kind],
        CODE_OF_STEP_STATUS[step.status],
        step.begun_seq,
        step.created_at,
        step.attempt,
        step.seq,
        write_policy(step.retry),
        step.timeout_ms,
        step.once,
        step.started_at,
        step.finished_at,
        step.retry_at,
        step.wake_at,
        _due_at(step),
        step.child_run_id,
        step.parent_step_id or None,
        step.parallel_group_id or None,
        step.worker_id,
        write_error(step.error),
        *_columns(step.input, "step.input"),
        *_columns(step.output, "step.output"),
        *_columns(step.details, "step.details"),
    )


def payload_rows(image: RunImage) -> list[tuple[object, ...]]:
    """A run's input, context and output as rows of its history."""
    rows: list[tuple[object, ...]] = []
    for name, kind, data, at, seq in (
        ("$input", KindCode.INPUT, image.input, image.created_at, 0),
        ("$context", KindCode.CONTEXT, image.context, image.created_at, 0),
        ("$output", KindCode.OUTPUT, image.output, image.finished_at, image.last_seq),
    ):
        if data is not None:
            begun = (name, name, int(kind), int(StepCode.COMPLETED), seq, at, 1, seq, None, 0, False, None, at)
            rows.append((*begun, *[None] * 10, *_columns(data, f"run.{name[1:]}"), None, None))
    return rows


def attempt_row(attempt: AttemptImage) -> tuple[object, ...]:
    return (
        attempt.step_id,
        attempt.attempt,
        attempt.begun_seq,
        attempt.seq,
        attempt.finished_at,
        attempt.retry_at,
        write_error(attempt.error),
        attempt.started_at,
        attempt.worker_id,
        attempt.forgotten,
    )


def signal_row(signal: SignalImage) -> tuple[object, ...]:
    payload = require_data(signal.payload, "signal.payload")
    return (
        signal.number,
        signal.name,
        signal.request_id,
        signal.received_at,
        payload.data,
        write_strings(payload.metadata or None),
        signal.step_id,
    )
