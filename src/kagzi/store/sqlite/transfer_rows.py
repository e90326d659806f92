"""Rows of the tables to the lines of an export, and back."""

from typing import Any

import msgspec

from ...core.error_details import decode_detail
from ...core.records import Payload, RunKey
from ...core.states import (
    CODE_OF_STEP_KIND,
    CODE_OF_STEP_STATUS,
    RUN_STATUS_OF_CODE,
    STEP_KIND_OF_CODE,
    STEP_STATUS_OF_CODE,
    WAIT_REASON_OF_CODE,
    KindCode,
    StepCode,
)
from ...core.transfers import (
    AttemptImage,
    Data,
    LinkImage,
    RunImage,
    SignalImage,
    StepImage,
    read_data,
    require_data,
    write_data,
)
from .connection import Row
from .rows import read_error, read_mapping, read_payload, read_retry, write_error, write_mapping, write_retry

CODE_OF_ON_CLOSE = {"cancel": 1, "abandon": 2}
_ON_CLOSE_OF_CODE: dict[int | None, Any] = {None: None, 1: "cancel", 2: "abandon"}
_decode_builds = msgspec.json.Decoder(tuple[str, ...]).decode


def read_run_image(row: Row) -> RunImage:
    """From the columns of `export_run`."""
    return RunImage(
        run_id=row[0],
        workflow_id=row[1],
        workflow_type=row[2],
        version=row[3],
        status=RUN_STATUS_OF_CODE[row[4]],
        wait_reason=None if row[5] is None else WAIT_REASON_OF_CODE[row[5]],
        priority=row[6],
        last_seq=row[7],
        lease=row[8],
        attempt=row[9],
        lost_leases=row[10],
        retry=read_retry(row[11]),
        request_id=row[12],
        labels=read_mapping(row[13]),
        parent_run_id=row[14],
        parent_step_id=row[15],
        on_close=_ON_CLOSE_OF_CODE[row[16]],
        watched=bool(row[17]),
        has_children=bool(row[18]),
        cascade_due=bool(row[19]),
        concurrency_key=row[20] or "",
        schedule_id=row[21],
        blocked_by=row[22],
        created_at=row[23],
        started_at=row[24],
        finished_at=row[25],
        ready_at=row[26],
        wake_at=row[27],
        paused_wake_at=row[28],
        deadline_at=row[29],
        cancel_requested_at=row[30],
        cancel_by=row[31],
        cancel_reason=row[32] or None,
        pause_requested=bool(row[33]),
        pause_reason=row[34] or None,
        status_text=row[35] or None,
        progress=row[36],
        forked_from=row[37],
        continued_as=row[38],
        tried_builds=_decode_builds(row[39]) if row[39] else (),
        retry_request_id=row[40],
        error=read_error(row[41]),
        problem=read_error(row[42]),
        input=_data(row[43], row[44]),
        context=_data(row[45], row[46]),
        output=_data(row[47], row[48]),
    )


def read_step_image(row: Row) -> StepImage:
    """From the columns of `export_steps`."""
    return StepImage(
        step_id=row[0],
        name=row[1],
        kind=STEP_KIND_OF_CODE[row[2]],
        status=STEP_STATUS_OF_CODE[row[3]],
        begun_seq=row[4],
        created_at=row[5],
        attempt=row[6],
        seq=row[7],
        retry=read_retry(row[8]),
        timeout_ms=row[9],
        once=bool(row[10]),
        started_at=row[11],
        finished_at=row[12],
        retry_at=row[13],
        wake_at=row[14],
        child_run_id=row[15],
        parent_step_id=row[16],
        parallel_group_id=row[17],
        worker_id=row[18],
        error=read_error(row[19]),
        input=_data(row[20], row[21]),
        output=_data(row[22], row[23]),
        details=_data(row[24], row[25]),
    )


def read_attempt_image(row: Row) -> AttemptImage:
    return AttemptImage(
        step_id=row[0],
        attempt=row[1],
        begun_seq=row[2],
        seq=row[3],
        finished_at=row[4],
        retry_at=row[5],
        error=decode_detail(row[6]),
        started_at=row[7],
        worker_id=row[8],
        forgotten=row[9],
    )


def read_signal_image(row: Row) -> SignalImage:
    payload = write_data(Payload(row[4], read_mapping(row[5]) or None))
    assert payload is not None  # a signal has one
    return SignalImage(
        number=row[0], name=row[1], request_id=row[2], received_at=row[3], payload=payload, step_id=row[6]
    )


def _data(data: bytes | None, metadata: str | None) -> Data | None:
    return write_data(read_payload(data, metadata))


def _columns(data: Data | None, field: str) -> tuple[bytes | None, str | None]:
    payload = read_data(data, field)
    return (None, None) if payload is None else (payload.data, write_mapping(payload.metadata))


def step_row(run_id: str, step: StepImage) -> tuple[Any, ...]:
    return (
        run_id,
        step.step_id,
        step.name,
        CODE_OF_STEP_KIND[step.kind],
        CODE_OF_STEP_STATUS[step.status],
        step.begun_seq,
        step.created_at,
        step.attempt,
        step.seq,
        write_retry(step.retry),
        step.timeout_ms,
        step.once,
        step.started_at,
        step.finished_at,
        step.retry_at,
        step.wake_at,
        step.child_run_id,
        step.parent_step_id,
        step.parallel_group_id,
        step.worker_id,
        None if step.error is None else write_error(step.error),
        *_columns(step.input, "step.input"),
        *_columns(step.output, "step.output"),
        *_columns(step.details, "step.details"),
    )


def payload_rows(run_id: str, image: RunImage) -> list[tuple[Any, ...]]:
    """A run's input, context and output as rows of its history."""
    rows: list[tuple[Any, ...]] = []
    for name, kind, data, at, seq in (
        ("$input", KindCode.INPUT, image.input, image.created_at, 0),
        ("$context", KindCode.CONTEXT, image.context, image.created_at, 0),
        ("$output", KindCode.OUTPUT, image.output, image.finished_at, image.last_seq),
    ):
        if data is not None:
            begun = (run_id, name, name, int(kind), int(StepCode.COMPLETED), seq, at, 1, seq, None, 0, 0, None, at)
            rows.append((*begun, *[None] * 3, "", "", *[None] * 4, *_columns(data, f"run.{name[1:]}"), None, None))
    return rows


def attempt_row(run_id: str, attempt: AttemptImage) -> tuple[Any, ...]:
    return (
        run_id,
        attempt.step_id,
        attempt.attempt,
        attempt.begun_seq,
        attempt.seq,
        attempt.finished_at,
        attempt.retry_at,
        write_error(attempt.error),
        attempt.started_at,
        attempt.worker_id,
        0,
        0,
    )


def signal_row(run_id: str, signal: SignalImage) -> tuple[Any, ...]:
    payload = require_data(signal.payload, "signal.payload")
    return (
        run_id,
        signal.number,
        signal.name,
        signal.request_id,
        signal.received_at,
        payload.data,
        write_mapping(payload.metadata),
        signal.step_id,
    )


def link_row(run: RunKey, link: LinkImage) -> tuple[Any, ...]:
    return (run.namespace, link.child_run_id, run.run_id, link.step_id)
