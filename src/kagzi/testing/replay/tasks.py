"""Converts a history to the task that a worker would claim."""

from ...core.error_details import ErrorKind
from ...core.records import ClaimedRun, HistoryPage, HistoryStep, Lease, Payload, RunKey
from ...core.run.state import RunState, SignalState, StepState
from ...core.states import CODE_OF_STEP_KIND, CODE_OF_STEP_STATUS, RunCode, RunStatus
from ...core.transfers.images import SignalImage, StepImage, require_data
from ...sdk.transport.payload_codec import MessageCodec
from ...v1 import worker_pb2 as pb
from ...wire.common import read_lease
from ...wire.tasks import write_task
from .decoding import decoded_payload
from .history import History


def task_of(history: History, codec: MessageCodec | None, *, cancelled: bool, before: StepImage | None) -> pb.Task:
    """`cancelled`: the code sees that it is cancelled; `before`: include only what was recorded before this step.
    Raises InvalidArgument."""
    run = history.image
    steps = _steps_before(history, before)
    task = write_task(
        ClaimedRun(
            run=RunKey(history.namespace, run.run_id),
            lease=Lease(1, 1),
            worker_id="replay",
            workflow_id=run.workflow_id,
            workflow_type=run.workflow_type,
            version=history.version,
            attempt=run.attempt,
            input=history.payload(run.input, "input"),
            context=history.payload(run.context, "context"),
            labels=run.labels,
            created_at=run.created_at,
            claimed_at=history.last_at,
            deadline_at=run.deadline_at,
            last_seq=run.last_seq,
            history=HistoryPage(tuple(_step(history, step) for step in steps)),
            cancel_requested=cancelled,
            cancel_reason=run.cancel_reason,
            parent_run_id=run.parent_run_id,
        )
    )
    if codec is not None:
        codec.decode(task)
    return task


def _step(history: History, step: StepImage) -> HistoryStep:
    where = f"step {step.step_id!r}: "
    return HistoryStep(
        step_id=step.step_id,
        kind=step.kind,
        status=step.status,
        begun_seq=step.begun_seq,
        attempt=step.attempt,
        seq=step.seq,
        at=step.finished_at or step.started_at or 0,
        output=history.payload(step.output, f"{where}output"),
        error=step.error,
        retry_at=step.retry_at,
        wake_at=step.wake_at,
        child_run_id=step.child_run_id,
        details=history.payload(step.details, f"{where}details"),
    )


def _steps_before(history: History, before: StepImage | None) -> tuple[StepImage, ...]:
    """The steps whose results existed when this step began."""
    if before is None:
        return history.step_images
    return tuple(step for step in history.step_images if 0 < step.seq < before.begun_seq)


def state_of(history: History, task: pb.Task, codec: MessageCodec | None, *, before: StepImage | None) -> RunState:
    """The run as a store has it while a worker holds it, with the steps of the task. Raises InvalidArgument."""
    run = history.image
    lease = read_lease(task.lease)
    steps = {step.step_id: _state(step, lease) for step in _steps_before(history, before)}
    return RunState(
        run=RunKey(history.namespace, run.run_id),
        status=RunCode.RUNNING,
        lease=lease,
        read_seq=run.last_seq,
        seq=run.last_seq,
        deadline_at=None,
        worker_id="replay",
        step_count=len(steps),
        cancel_requested_at=task.claimed_at_us if task.cancel_requested else None,
        cancel_reason=task.cancel_reason,
        steps=steps,
        signals=[
            SignalState(number=signal.number, name=signal.name, payload=_signal(signal, codec))
            for signal in history.signal_images
            if signal.step_id is None or (signal.step_id not in steps and before is not None)
        ],
    )


def _signal(signal: SignalImage, codec: MessageCodec | None) -> Payload:
    return decoded_payload(codec, require_data(signal.payload, f"signal {signal.name!r}"))


def _state(step: StepImage, lease: Lease) -> StepState:
    """Without values: the code has them or waits for them."""
    return StepState(
        step_id=step.step_id,
        name=step.name,
        kind=CODE_OF_STEP_KIND[step.kind],
        status=CODE_OF_STEP_STATUS[step.status],
        begun_seq=step.begun_seq,
        lease=lease,
        created_at=step.created_at,
        attempt=step.attempt,
        seq=step.seq,
        started_at=step.started_at,
        finished_at=step.finished_at,
        retry_at=step.retry_at,
        wake_at=step.wake_at,
        retry=step.retry,
        timeout_ms=step.timeout_ms,
        once=step.once,
        error=step.error,
        child_run_id=step.child_run_id,
    )


def was_cancelled(history: History) -> bool:
    """Whether its code saw, or will see, that it is cancelled."""
    run = history.image
    if run.status is RunStatus.CANCELLED:
        return run.error is None or run.error.kind is not ErrorKind.TERMINATED
    return not run.status.ended and run.cancel_requested_at is not None


def may_have_been_cancelled(history: History) -> bool:
    """Whether a cancellation was requested and the run ended otherwise: its code may have seen it or not."""
    run = history.image
    return run.status.ended and run.status is not RunStatus.CANCELLED and run.cancel_requested_at is not None
