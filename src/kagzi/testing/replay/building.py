"""Histories that tests write: fills in omitted values."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ...core.error_details import ErrorDetail
from ...core.errors import InvalidArgument
from ...core.records import Payload
from ...core.states import RunStatus, StepKind, StepStatus
from ...core.times import US_PER_S, Timestamp, from_datetime
from ...core.transfers.images import Part, RunImage, SignalImage, StepImage, write_data
from ...sdk.workflow.codec import ANY, write_context, write_payload
from ...sdk.workflow.workflow import Workflow
from .records import RecordedSignal, RecordedStep

BUILT_AT = datetime(2026, 1, 1, tzinfo=UTC)
_OPEN = (StepStatus.PENDING, StepStatus.RUNNING)


def build_images(
    *,
    workflow: Workflow[Any, Any] | str,
    input: Any,
    steps: Sequence[RecordedStep],
    signals: Sequence[RecordedSignal],
    status: RunStatus,
    output: Any,
    error: ErrorDetail | None,
    run_id: str,
    workflow_id: str,
    version: str,
    labels: Mapping[str, str] | None,
    context: Mapping[str, Any] | None,
    attempt: int,
    parent_run_id: str | None,
    cancel_reason: str,
    cancel_requested: bool,
    created_at: datetime,
    finished_at: datetime | None,
) -> tuple[RunImage, list[Part]]:
    """Raises InvalidArgument."""
    begun = from_datetime(created_at, what="created_at")
    images, last_seq, last_at = _steps(steps, begun)
    ended_at = _time(finished_at, "finished_at")
    if ended_at is None and status.ended:
        ended_at = last_at
    parts: list[Part] = [*images, *_signals(signals, last_seq)]
    name = workflow if isinstance(workflow, str) else workflow.name
    image = RunImage(
        run_id=run_id,
        request_id=run_id,
        workflow_id=workflow_id or run_id,
        workflow_type=name,
        version=version or ("1" if isinstance(workflow, str) else workflow.version),
        status=status,
        created_at=begun,
        started_at=begun,
        finished_at=ended_at,
        last_seq=last_seq + len(signals),
        labels=dict(labels or {}),
        attempt=attempt,
        parent_run_id=parent_run_id,
        cancel_reason=cancel_reason,
        cancel_requested_at=last_at if cancel_requested or status is RunStatus.CANCELLED else None,
        error=error,
        input=None if input is ... else write_data(_input(workflow, input)),
        context=write_data(write_context(context)),
        output=write_data(_payload(output, "output")) if status is RunStatus.COMPLETED else None,
    )
    return image, parts


def _input(workflow: Workflow[Any, Any] | str, input: Any) -> Payload:
    return _payload(input, "input") if isinstance(workflow, str) else workflow.write_input(input)


def _payload(value: Any, what: str) -> Payload:
    return write_payload(ANY, value, what=what)


def _time(moment: datetime | None, what: str) -> Timestamp | None:
    return None if moment is None else from_datetime(moment, what=what)


def _steps(steps: Sequence[RecordedStep], begun: Timestamp) -> tuple[list[StepImage], int, Timestamp]:
    """The steps, the last number and the last time. Either all steps have numbers or none has."""
    numbered = [step for step in steps if step.begun_seq]
    if numbered and len(numbered) < len(steps):
        unnumbered = next(step for step in steps if not step.begun_seq)
        raise InvalidArgument(
            f"step {unnumbered.id!r} has no begun_seq, but others have. Number all steps, or none.", field="steps"
        )
    ids = [step.id for step in steps]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise InvalidArgument(f"step {twice!r} is there twice. The second one is {twice + '#2'!r}.", field="steps")
    images: list[StepImage] = []
    number, at = 1, begun
    for step in steps:
        image = _step(step, number, at)
        number, at = max(number, image.seq, image.begun_seq) + 1, max(at, image.finished_at or 0, image.created_at)
        images.append(image)
    return images, number - 1, at


def _step(step: RecordedStep, number: int, at: Timestamp) -> StepImage:
    status = StepStatus.FAILED if step.error is not None and step.status is StepStatus.COMPLETED else step.status
    is_open = status in _OPEN
    started_at = _time(step.started_at, f"started_at of {step.id!r}")
    finished_at = _time(step.finished_at, f"finished_at of {step.id!r}")
    if finished_at is None and not is_open:
        finished_at = max(started_at or 0, at) + US_PER_S
    begun_seq = step.begun_seq or number
    return StepImage(
        step_id=step.id,
        name=step.name or step.id.rpartition("/")[2].partition("#")[0],
        kind=step.kind,
        status=status,
        begun_seq=begun_seq,
        created_at=started_at if started_at is not None else at,
        attempt=step.attempt,
        seq=0 if is_open else step.seq or begun_seq + 1,
        started_at=started_at,
        finished_at=finished_at,
        wake_at=_time(step.wake_at, f"wake_at of {step.id!r}"),
        retry_at=_time(step.retry_at, f"retry_at of {step.id!r}"),
        child_run_id=step.child_run_id or (step.id if step.kind is StepKind.CHILD else None),
        error=step.error,
        output=write_data(_payload(step.value, f"value of {step.id!r}")) if status is StepStatus.COMPLETED else None,
        input=None if step.input is None else write_data(_payload(step.input, f"input of {step.id!r}")),
    )


def _signals(signals: Sequence[RecordedSignal], last_seq: int) -> list[SignalImage]:
    images: list[SignalImage] = []
    for number, signal in enumerate(signals, last_seq + 1):
        data = write_data(_payload(signal.value, f"value of signal {signal.name!r}"))
        assert data is not None
        images.append(
            SignalImage(
                number=number,
                name=signal.name,
                request_id=f"signal-{number}",
                received_at=from_datetime(signal.received_at, what="received_at"),
                payload=data,
                step_id=signal.step_id or None,
            )
        )
    return images
