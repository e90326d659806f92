"""The session's hot path: operations become commands. No reflection, one look-up each. For outcomes see `answers`."""

from collections.abc import Callable
from typing import Literal

from ..core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ..core.errors import InvalidArgument
from ..core.records import Lease, RunKey
from ..core.run.commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    CancelRun,
    ClosingCommand,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    FailRun,
    FailStep,
    FetchResults,
    FinishSleep,
    Park,
    PauseDiverged,
    RecordPatch,
    RecordStep,
    ReleaseRun,
    SetState,
    SetStatus,
    StartChild,
    StepCommand,
    WaitSignal,
    refused_child_start,
)
from ..core.run.outcomes import Refused
from ..core.times import Timestamp
from ..v1 import worker_pb2 as pb
from .answers import refusal, write_answer, write_answers
from .common import NULL, read_error, read_payload, read_retry
from .runs import read_child_start
from .status import detail_of

__all__ = ["read_operation", "refusal", "write_answer", "write_answers"]

_End = pb.CompleteRunOperation | pb.FailRunOperation | pb.CancelRunOperation | pb.ContinueAsNewOperation
_Reader = Callable[[pb.Operation, RunKey, Lease], StepCommand | ClosingCommand]


def read_operation(
    operation: pb.Operation, run: RunKey, lease: Lease, now: Timestamp = 0
) -> StepCommand | ClosingCommand | Refused:
    """The command for an operation; Refused if it is invalid. Never raises for anything a worker can send.

    `now`: the time to which the times of a child's start are relative. Its ids stay empty: the engine draws them.
    """
    kind = operation.WhichOneof("kind")
    reader = _READERS.get(kind or "")
    if reader is not None:
        return reader(operation, run, lease)
    if kind == "start_child":
        return _start_child(operation, run, lease, now)
    return _not_understood(kind)


def _begin_step(operation: pb.Operation, run: RunKey, lease: Lease) -> BeginStep:
    body = operation.begin_step
    step_id = body.step_id
    return BeginStep(
        run=run,
        lease=lease,
        step_id=step_id,
        name=body.name or step_id,
        attempt=body.attempt,
        retry=read_retry(body.retry_policy) if body.HasField("retry_policy") else None,
        timeout_ms=body.timeout_ms,
        input=read_payload(body.input) if body.HasField("input") else None,
        parent_step_id=body.parent_step_id,
        parallel_group_id=body.parallel_group_id,
        once=body.once,
        cleanup=body.cleanup,
    )


def _record_step(operation: pb.Operation, run: RunKey, lease: Lease) -> RecordStep:
    body = operation.record_step
    step_id = body.step_id
    return RecordStep(
        run=run,
        lease=lease,
        step_id=step_id,
        name=body.name or step_id,  # the same object, so it is checked once
        attempt=body.attempt,
        retry=read_retry(body.retry_policy) if body.HasField("retry_policy") else None,
        timeout_ms=body.timeout_ms,
        input=read_payload(body.input) if body.HasField("input") else None,
        parent_step_id=body.parent_step_id,
        parallel_group_id=body.parallel_group_id,
        cleanup=body.cleanup,
        output=read_payload(body.output) if body.HasField("output") else NULL,
    )


def _complete_step(operation: pb.Operation, run: RunKey, lease: Lease) -> CompleteStep:
    body = operation.complete_step
    output = read_payload(body.output) if body.HasField("output") else NULL
    return CompleteStep(run=run, lease=lease, step_id=body.step_id, attempt=body.attempt, output=output)


def _fail_step(operation: pb.Operation, run: RunKey, lease: Lease) -> FailStep:
    body = operation.fail_step
    return FailStep(
        run=run,
        lease=lease,
        step_id=body.step_id,
        attempt=body.attempt,
        error=read_error(body.error),
        input=read_payload(body.input) if body.HasField("input") else None,
    )


def _sleep(operation: pb.Operation, run: RunKey, lease: Lease) -> BeginSleep:
    body = operation.sleep
    return BeginSleep(
        run=run,
        lease=lease,
        step_id=body.step_id,
        name=body.name or body.step_id,
        duration_us=None if body.until_us and not body.duration_us else body.duration_us,
        until=body.until_us or None,
        parent_step_id=body.parent_step_id,
        parallel_group_id=body.parallel_group_id,
        cleanup=body.cleanup,
    )


def _finish_sleep(operation: pb.Operation, run: RunKey, lease: Lease) -> FinishSleep:
    return FinishSleep(run=run, lease=lease, step_id=operation.finish_sleep.step_id)


def _fetch_results(operation: pb.Operation, run: RunKey, lease: Lease) -> FetchResults:
    body = operation.fetch_results
    return FetchResults(run=run, lease=lease, waits=tuple(body.waits), known_seq=body.known_seq)


def _park(operation: pb.Operation, run: RunKey, lease: Lease) -> Park:
    body = operation.park
    return Park(run=run, lease=lease, waits=tuple(body.waits), known_seq=body.known_seq)


def _open_waits(body: _End) -> tuple[str, ...]:
    waits = body.open_waits
    return tuple(waits) if waits else ()


def _complete_run(operation: pb.Operation, run: RunKey, lease: Lease) -> CompleteRun:
    body = operation.complete_run
    output = read_payload(body.output) if body.HasField("output") else NULL
    open_waits = tuple(body.open_waits) if body.open_waits else ()
    return CompleteRun(run=run, lease=lease, output=output, after_step=body.after_step_id, open_waits=open_waits)


def _fail_run(operation: pb.Operation, run: RunKey, lease: Lease) -> FailRun:
    body = operation.fail_run
    return FailRun(
        run=run,
        lease=lease,
        error=read_error(body.error),
        after_step=body.after_step_id,
        open_waits=_open_waits(body),
    )


def _cancel_run(operation: pb.Operation, run: RunKey, lease: Lease) -> CancelRun:
    body = operation.cancel_run
    return CancelRun(run=run, lease=lease, error=read_error(body.error), open_waits=_open_waits(body))


def _release(operation: pb.Operation, run: RunKey, lease: Lease) -> ReleaseRun:
    return ReleaseRun(run=run, lease=lease, reason=operation.release.reason)


def _wait_signal(operation: pb.Operation, run: RunKey, lease: Lease) -> WaitSignal:
    body = operation.wait_signal
    return WaitSignal(
        run=run,
        lease=lease,
        step_id=body.step_id,
        signal_name=body.signal_name,
        timeout_us=body.timeout_us if body.HasField("timeout_us") else None,
        parent_step_id=body.parent_step_id,
        parallel_group_id=body.parallel_group_id,
        cleanup=body.cleanup,
        input=read_payload(body.input) if body.HasField("input") else None,
    )


def read_on_close(number: int) -> Literal["cancel", "abandon"]:
    """Raises InvalidArgument for a number that is not a policy."""
    if number not in (
        pb.PARENT_CLOSE_POLICY_UNSPECIFIED,
        pb.PARENT_CLOSE_POLICY_CANCEL,
        pb.PARENT_CLOSE_POLICY_ABANDON,
    ):
        raise InvalidArgument(f"on_close={number} is not a ParentClosePolicy.", field="on_close")
    return "abandon" if number == pb.PARENT_CLOSE_POLICY_ABANDON else "cancel"


def _start_child(operation: pb.Operation, run: RunKey, lease: Lease, now: Timestamp) -> StartChild:
    """A start that cannot be read is recorded as refused."""
    body, refusal = operation.start_child, None
    try:
        start, on_close = read_child_start(body.start, run.namespace, now), read_on_close(body.on_close)
    except InvalidArgument as error:
        start, on_close, refusal = refused_child_start(run, body.step_id), "cancel", detail_of(error)
    return StartChild(
        run=run,
        lease=lease,
        step_id=body.step_id,
        name=body.name or body.step_id,
        start=start,
        refusal=refusal,
        on_close=on_close,
        attach=body.attach,
        parent_step_id=body.parent_step_id,
        parallel_group_id=body.parallel_group_id,
        cleanup=body.cleanup,
    )


def _race(operation: pb.Operation, run: RunKey, lease: Lease) -> DecideRace:
    body = operation.race
    return DecideRace(
        run=run,
        lease=lease,
        step_id=body.step_id,
        name=body.name or body.step_id,
        winner=body.winner,
        losers=tuple(body.losers),
        parent_step_id=body.parent_step_id,
    )


def _patch(operation: pb.Operation, run: RunKey, lease: Lease) -> RecordPatch:
    body = operation.patch
    return RecordPatch(run=run, lease=lease, step_id=body.step_id, name=body.name or body.step_id)


def _set_status(operation: pb.Operation, run: RunKey, lease: Lease) -> SetStatus:
    body = operation.set_status
    progress = body.progress if body.HasField("progress") else None
    return SetStatus(run=run, lease=lease, text=body.text, progress=progress)


def _set_state(operation: pb.Operation, run: RunKey, lease: Lease) -> SetState:
    body = operation.set_state
    return SetState(run=run, lease=lease, state=read_payload(body.state) if body.HasField("state") else NULL)


def _step_heartbeat(operation: pb.Operation, run: RunKey, lease: Lease) -> BeatStep:
    body = operation.step_heartbeat
    details = read_payload(body.details) if body.HasField("details") else NULL
    return BeatStep(run=run, lease=lease, step_id=body.step_id, attempt=body.attempt, details=details)


def _continue_as_new(operation: pb.Operation, run: RunKey, lease: Lease) -> ContinueAsNew:
    body = operation.continue_as_new
    return ContinueAsNew(
        run=run,
        lease=lease,
        new_run_id="",
        input=read_payload(body.input) if body.HasField("input") else NULL,
        version=body.version or None,
        context=read_payload(body.context) if body.HasField("context") else None,
        open_waits=_open_waits(body),
    )


def _diverged(operation: pb.Operation, run: RunKey, lease: Lease) -> PauseDiverged:
    body = operation.diverged
    return PauseDiverged(run=run, lease=lease, problem=read_error(body.problem), build_id=body.build_id)


_READERS: dict[str, _Reader] = {
    "begin_step": _begin_step,
    "record_step": _record_step,
    "complete_step": _complete_step,
    "fail_step": _fail_step,
    "sleep": _sleep,
    "finish_sleep": _finish_sleep,
    "fetch_results": _fetch_results,
    "park": _park,
    "complete_run": _complete_run,
    "fail_run": _fail_run,
    "cancel_run": _cancel_run,
    "release": _release,
    "wait_signal": _wait_signal,
    "race": _race,
    "patch": _patch,
    "set_status": _set_status,
    "set_state": _set_state,
    "step_heartbeat": _step_heartbeat,
    "continue_as_new": _continue_as_new,
    "diverged": _diverged,
}


def _not_understood(kind: str | None) -> Refused:
    if kind is None:
        message = "the operation has no kind that this server knows. Use a server of the worker's version or newer."
    else:
        message = f"operation {kind} is not implemented by this server yet."
    detail = ErrorDetail(
        code=ErrorCode.UNIMPLEMENTED,
        kind=ErrorKind.PERMANENT,
        message=message,
        subject="operation",
        subject_id=kind or "",
    )
    return Refused(detail)
