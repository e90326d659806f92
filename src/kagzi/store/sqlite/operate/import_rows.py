"""The lines of an import as rows of the tables."""

from typing import Any

from ....core.records import RunKey
from ....core.states import (
    CODE_OF_STEP_KIND,
    CODE_OF_STEP_STATUS,
    KindCode,
    StepCode,
)
from ....core.transfers.images import (
    AttemptImage,
    Data,
    LinkImage,
    RunImage,
    SignalImage,
    StepImage,
    read_data,
    require_data,
)
from ...rows import write_error, write_policy, write_strings


def _columns(data: Data | None, field: str) -> tuple[bytes | None, str | None]:
    payload = read_data(data, field)
    return (None, None) if payload is None else (payload.data, write_strings(payload.metadata))


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
        write_policy(step.retry),
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
        write_strings(payload.metadata),
        signal.step_id,
    )


def link_row(run: RunKey, link: LinkImage) -> tuple[Any, ...]:
    return (run.namespace, link.child_run_id, run.run_id, link.step_id)
