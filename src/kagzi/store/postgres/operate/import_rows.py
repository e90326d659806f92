"""The lines of an import as rows of the tables."""

from ....core.run.state import NEVER
from ....core.states import (
    CODE_OF_STEP_KIND,
    CODE_OF_STEP_STATUS,
    KindCode,
    StepCode,
    StepKind,
    StepStatus,
)
from ....core.times import Timestamp
from ....core.transfers.images import (
    AttemptImage,
    Data,
    RunImage,
    SignalImage,
    StepImage,
    read_data,
    require_data,
)
from ...rows import write_error, write_policy, write_strings
from ..statements import PARAMETERS

_STEP_COLUMNS = PARAMETERS["stage_steps"].columns["steps"]
_EVENT_KINDS = (StepKind.SLEEP, StepKind.SIGNAL, StepKind.CHILD)


def _columns(name: str, data: Data | None, field: str) -> dict[str, object]:
    payload = read_data(data, field)
    metadata = None if payload is None else write_strings(payload.metadata or None)
    return {name: None if payload is None else payload.data, f"{name}_meta": metadata}


def _due_at(step: StepImage) -> Timestamp | None:
    """When the clock does something about it; open waits are found by having such a time."""
    if step.status is StepStatus.PENDING:
        return step.retry_at
    if step.status is not StepStatus.RUNNING or step.kind not in _EVENT_KINDS:
        return None
    return NEVER if step.wake_at is None else step.wake_at


def step_row(step: StepImage) -> dict[str, object]:
    return {
        "step_id": step.step_id,
        "name": step.name,
        "kind": CODE_OF_STEP_KIND[step.kind],
        "status": CODE_OF_STEP_STATUS[step.status],
        "begun_seq": step.begun_seq,
        "created_at": step.created_at,
        "attempt": step.attempt,
        "seq": step.seq,
        "retry": write_policy(step.retry),
        "timeout_ms": step.timeout_ms,
        "once": step.once,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "retry_at": step.retry_at,
        "wake_at": step.wake_at,
        "due_at": _due_at(step),
        "child_run_id": step.child_run_id,
        "parent_step_id": step.parent_step_id or None,
        "parallel_group_id": step.parallel_group_id or None,
        "worker_id": step.worker_id,
        "error": write_error(step.error),
        **_columns("input", step.input, "step.input"),
        **_columns("output", step.output, "step.output"),
        **_columns("details", step.details, "step.details"),
    }


def payload_rows(image: RunImage) -> list[dict[str, object]]:
    """A run's input, context and output as rows of its history."""
    rows: list[dict[str, object]] = []
    for name, kind, data, at, seq in (
        ("$input", KindCode.INPUT, image.input, image.created_at, 0),
        ("$context", KindCode.CONTEXT, image.context, image.created_at, 0),
        ("$output", KindCode.OUTPUT, image.output, image.finished_at, image.last_seq),
    ):
        if data is not None:
            rows.append(
                {
                    **dict.fromkeys(_STEP_COLUMNS),
                    "step_id": name,
                    "name": name,
                    "kind": int(kind),
                    "status": int(StepCode.COMPLETED),
                    "begun_seq": seq,
                    "created_at": at,
                    "attempt": 1,
                    "seq": seq,
                    "timeout_ms": 0,
                    "once": False,
                    "finished_at": at,
                    **_columns("output", data, f"run.{name[1:]}"),
                }
            )
    return rows


def attempt_row(attempt: AttemptImage) -> dict[str, object]:
    return {
        "step_id": attempt.step_id,
        "attempt": attempt.attempt,
        "begun_seq": attempt.begun_seq,
        "seq": attempt.seq,
        "finished_at": attempt.finished_at,
        "retry_at": attempt.retry_at,
        "error": write_error(attempt.error),
        "started_at": attempt.started_at,
        "worker_id": attempt.worker_id,
        "forgotten": attempt.forgotten,
    }


def signal_row(signal: SignalImage) -> dict[str, object]:
    payload = require_data(signal.payload, "signal.payload")
    return {
        "number": signal.number,
        "name": signal.name,
        "request_id": signal.request_id,
        "received_at": signal.received_at,
        "payload": payload.data,
        "payload_meta": write_strings(payload.metadata or None),
        "step_id": signal.step_id,
    }
