"""The unary WaitSignal and StartChild, for which a session uses an operation and, later, a notice."""

from collections.abc import Awaitable, Callable

from ....core.duration import check_duration
from ....core.records import HistoryStep
from ....core.run.outcomes import ChildStarted, Known, NotParked, Outcome, Parked, SignalBound, StepFailed, TimerSet
from ....core.run.refusals import lost_race
from ....core.states import StepStatus
from ....engine import error_of
from ....v1 import worker_pb2 as pb
from ....wire.common import NULL, read_duration_us, write_payload
from ....wire.worker_messages import RunRequest, operation_of
from ..require import require

Submit = Callable[[RunRequest, pb.Operation], Awaitable[Outcome]]
"""Performs an operation on the run of a request."""


async def wait_signal(submit: Submit, request: pb.WaitSignalRequest) -> pb.WaitSignalResponse:
    """Returns the signal if it has arrived, or that the wait timed out. Otherwise the run is parked, its lease ends,
    and it is handed out again when it can continue.

    Other results that have arrived do not keep the run awake: its caller requests each wait when it reaches it.
    """
    step_id = request.step_id or request.signal_name
    timeout_us = read_duration_us(request.timeout) if request.HasField("timeout") else None
    check_duration(timeout_us, "timeout")  # the range of an operation
    wait = pb.WaitSignalOperation(step_id=step_id, signal_name=request.signal_name, timeout_us=timeout_us)
    if request.HasField("input"):
        wait.input.CopyFrom(request.input)
    outcome = await submit(request, pb.Operation(wait_signal=wait))
    if not isinstance(outcome, TimerSet):
        return _write_wait(outcome)
    _, result = await park_for(submit, request, step_id, outcome.seq)
    return pb.WaitSignalResponse() if result is None else _write_result(result)


async def park_for(
    submit: Submit, request: RunRequest, step_id: str, known_seq: int
) -> tuple[Parked | NotParked, HistoryStep | None]:
    """Parks the run until the step has a result, unless it has one. Neither parked nor a result: a retry is due, so the
    run has work to do before this wait."""
    while True:
        park = pb.Operation(park=pb.ParkOperation(waits=(step_id,), known_seq=known_seq))
        outcome = await submit(request, park)
        if isinstance(outcome, Parked):
            return outcome, None
        not_parked = require(outcome, NotParked)
        result = next((step for step in not_parked.results if step.step_id == step_id), None)
        newest_seq = max((step.seq for step in not_parked.results), default=0)
        if result is not None or newest_seq <= known_seq:
            return not_parked, result
        known_seq = newest_seq


def _write_wait(outcome: Outcome) -> pb.WaitSignalResponse:
    if isinstance(outcome, SignalBound):
        return pb.WaitSignalResponse(received=True, payload=write_payload(outcome.payload))
    return _write_result(require(outcome, Known).step)


def _write_result(step: HistoryStep) -> pb.WaitSignalResponse:
    if step.status is StepStatus.COMPLETED:
        return pb.WaitSignalResponse(received=True, payload=write_payload(step.output or NULL))
    if step.status is StepStatus.FAILED:
        return pb.WaitSignalResponse(timed_out=True)
    raise error_of(lost_race(step.step_id).error)


async def start_child(submit: Submit, request: pb.StartChildRequest) -> pb.StartChildResponse:
    """Raises AlreadyExists if the child's workflow_id is in use and the request does not attach to it."""
    start = operation_of(request, pb.StartChildOperation, step_id=request.step_id or request.start.workflow_type)
    outcome = await submit(request, pb.Operation(start_child=start))
    if isinstance(outcome, ChildStarted):
        return pb.StartChildResponse(child_run_id=outcome.child_run_id, already_exists=not outcome.created)
    if isinstance(outcome, StepFailed):
        raise error_of(outcome.error)
    step = require(outcome, Known).step
    if not step.child_run_id and step.error is not None:
        raise error_of(step.error)
    return pb.StartChildResponse(child_run_id=step.child_run_id or "", already_exists=True)
