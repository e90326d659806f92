"""Maps rows to lines of an export, and lines of an import to rows, by column name."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeVar, get_origin

import msgspec

from ..core.conversion import Field, converter, fields_of
from ..core.error_details import ErrorCode
from ..core.records import RunKey
from ..core.run.outcomes import Refused
from ..core.run.refusals import refused
from ..core.run.state import STATE_STEP
from ..core.states import (
    CODE_OF_ON_CLOSE,
    CODE_OF_RUN_STATUS,
    CODE_OF_WAIT_REASON,
    ON_CLOSE_OF_CODE,
    RUN_STATUS_OF_CODE,
    KindCode,
    RunStatus,
    StepCode,
    StepKind,
    StepStatus,
)
from ..core.times import Timestamp
from ..core.transfers.images import (
    AttemptImage,
    Data,
    ForgottenImage,
    LinkImage,
    RunImage,
    SignalImage,
    StepImage,
    read_data,
    write_data,
)
from .rows import Row, by_column, read_error, read_payload, type_of, value_writer, write_strings

Image = TypeVar("Image", bound=msgspec.Struct)

_decode_strings = msgspec.json.Decoder(tuple[str, ...]).decode


# --- export ----------------------------------------------------------------------------------------------------------


def _by_column(field: Field) -> Callable[[Row], Any]:
    column, kind = itemgetter(field.name), type_of(field)
    if kind is Data:
        metadata = itemgetter(f"{field.name}_meta")
        return lambda row: write_data(read_payload(column(row), metadata(row)))
    if get_origin(kind) is tuple:
        return lambda row: _strings(column(row))
    return by_column(field)


def _strings(value: str | list[str] | None) -> tuple[str, ...]:
    """Reads an array, or JSON in a store without arrays."""
    return _decode_strings(value) if isinstance(value, str) else tuple(value or ())


read_run_image = converter(
    RunImage,
    _by_column,
    last_seq=itemgetter("seq"),
    request_id=lambda row: row["request_id"] or row["run_id"],
    on_close=lambda row: None if row["on_close"] is None else ON_CLOSE_OF_CODE[row["on_close"]],
    wake_at=itemgetter("due_at"),
    paused_wake_at=itemgetter("paused_due_at"),
    error=lambda row: read_error(row["error"]) if RUN_STATUS_OF_CODE[row["status"]].ended else None,
)
"""Reads a row of `export_run`."""

read_step_image = converter(
    StepImage,
    _by_column,
    child_run_id=itemgetter("child"),
    error=lambda row: read_error(row["error"]) if row["status"] == StepCode.FAILED else None,
)
read_attempt_image = converter(
    AttemptImage,
    _by_column,
    retry_at=lambda row: row["finished_at"] if row["retry_at"] is None else row["retry_at"],
)
read_signal_image = converter(
    SignalImage,
    _by_column,
    start_request=lambda row: write_data(read_payload((row["start_request"] or "").encode() or None, None)),
)
read_link_image = converter(LinkImage, _by_column)
read_forgotten_image = converter(ForgottenImage, _by_column)


# --- import ----------------------------------------------------------------------------------------------------------


def _row_writer(kind: type[Image], **columns: str) -> Callable[[Image], dict[str, Any]]:
    """Writes the fields of an image, except its data, to the columns of the same names or of those given here."""
    parts = [
        (field.name, columns.get(field.name, field.name), value_writer(field))
        for field in fields_of(kind)
        if type_of(field) is not Data
    ]

    def write(image: Image) -> dict[str, Any]:
        values = ((column, write_value, getattr(image, name)) for name, column, write_value in parts)
        return {column: value if write_value is None else write_value(value) for column, write_value, value in values}

    return write


_write_run = _row_writer(RunImage, last_seq="seq", wake_at="due_at", paused_wake_at="paused_due_at")
_write_step = _row_writer(StepImage)
_write_forgotten = _row_writer(ForgottenImage)
_write_signal = _row_writer(SignalImage)
_write_attempt = _row_writer(AttemptImage)


def _data_columns(name: str, data: Data | None) -> dict[str, Any]:
    payload = read_data(data, name)
    if payload is None:
        return {name: None, f"{name}_meta": None}
    return {name: payload.data, f"{name}_meta": write_strings(payload.metadata)}


def run_row(run: RunKey, image: RunImage, now: Timestamp, *, blocked: bool) -> dict[str, Any]:
    """The row of a run that no worker holds. `blocked`: the run that it must wait for is still open."""
    status = image.status
    if image.blocked_by and not blocked and status is RunStatus.SLEEPING:
        status = RunStatus.PENDING
    sleeping = status is RunStatus.SLEEPING
    return _write_run(image) | {
        "run_id": run.run_id,
        "namespace": run.namespace,
        "status": CODE_OF_RUN_STATUS[status],
        "wait_reason": CODE_OF_WAIT_REASON[image.wait_reason] if sleeping and image.wait_reason else None,
        "on_close": None if image.on_close is None else CODE_OF_ON_CLOSE[image.on_close],
        "blocked_by": image.blocked_by if blocked else None,
        "ready_at": (image.ready_at or now) if status is RunStatus.PENDING else None,
        "due_at": image.wake_at if sleeping else None,
    }


def step_row(step: StepImage) -> dict[str, Any]:
    return (
        _write_step(step)
        | {"parent_step_id": step.parent_step_id, "parallel_group_id": step.parallel_group_id}
        | _data_columns("input", step.input)
        | _data_columns("output", step.output)
        | _data_columns("details", step.details)
    )


def forgotten_row(step: ForgottenImage) -> dict[str, Any]:
    row = (
        _write_forgotten(step)
        | _data_columns("input", step.input)
        | _data_columns("output", step.output)
        | _data_columns("details", step.details)
    )
    del row["retry_at"]  # it has ended
    texts = (row["error"] or "").encode()
    row["bytes"] = sum(len(each or b"") for each in (row["input"], row["output"], row["details"], texts))
    return row


def attempt_row(attempt: AttemptImage) -> dict[str, Any]:
    return _write_attempt(attempt) | _data_columns("input", attempt.input)


def signal_row(signal: SignalImage) -> dict[str, Any]:
    start = read_data(signal.start_request, "start_request")
    row = _write_signal(signal) | _data_columns("payload", signal.payload)
    return row | {"start_request": None if start is None else start.data.decode()}


def payload_rows(image: RunImage) -> list[dict[str, Any]]:
    """A run's input, context, output and state as rows of the steps table."""
    ended_at = image.finished_at or 0
    payloads = (
        ("$input", KindCode.INPUT, image.input, image.created_at, 0),
        ("$context", KindCode.CONTEXT, image.context, image.created_at, 0),
        ("$output", KindCode.OUTPUT, image.output, ended_at, image.last_seq),
        (STATE_STEP, KindCode.STATE, image.state, image.state_at or image.created_at, 0),
    )
    return [
        step_row(_completed(name, data, at, seq)) | {"kind": int(kind)}
        for name, kind, data, at, seq in payloads
        if data is not None
    ]


def _completed(name: str, output: Data, at: Timestamp, seq: int) -> StepImage:
    return StepImage(
        step_id=name,
        name=name,
        kind=StepKind.FUNCTION,
        status=StepStatus.COMPLETED,
        begun_seq=seq,
        seq=seq,
        created_at=at,
        finished_at=at,
        output=output,
    )


def refuse_import(image: RunImage, active: str | None, requested: str | None) -> Refused | None:
    """Why a run cannot be imported: another run has its workflow id and is `active`, or was `requested` by the same
    start."""
    if active is not None and not image.status.ended:
        return refused(
            ErrorCode.CONFLICT,
            f"workflow_id {image.workflow_id!r} belongs to an open run here, {active}. "
            "Wait for its end, or terminate it.",
            subject="workflow_id",
            subject_id=image.workflow_id,
        )
    if requested is not None:
        return refused(
            ErrorCode.CONFLICT,
            f"request_id {image.request_id!r} belongs to another run here, {requested}: "
            "the same start was made here, too.",
            subject="request_id",
            subject_id=image.request_id,
        )
    return None
