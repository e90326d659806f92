"""Maps rows to the lines of an export, by the names of the columns."""

from ..core.error_details import decode_detail
from ..core.records import Payload
from ..core.states import (
    ON_CLOSE_OF_CODE,
    RUN_STATUS_OF_CODE,
    STEP_KIND_OF_CODE,
    STEP_STATUS_OF_CODE,
    WAIT_REASON_OF_CODE,
    StepStatus,
)
from ..core.transfers.images import AttemptImage, Data, RunImage, SignalImage, StepImage, write_data
from .rows import Row, read_error, read_labels, read_payload, read_policy


def read_run_image(row: Row, tried_builds: tuple[str, ...]) -> RunImage:
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
        on_close=None if row["on_close"] is None else ON_CLOSE_OF_CODE[row["on_close"]],
        watched=bool(row["watched"]),
        has_children=bool(row["has_children"]),
        cascade_due=bool(row["cascade_due"]),
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
        pause_requested=bool(row["pause_requested"]),
        pause_reason=row["pause_reason"] or None,
        status_text=row["status_text"] or None,
        progress=row["progress"],
        forked_from=row["forked"],
        continued_as=row["successor"],
        tried_builds=tried_builds,
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
        once=bool(row["once"]),
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
