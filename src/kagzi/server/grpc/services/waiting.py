"""The unary WaitSignal and StartChild: what a session does with an operation and, later, a notice."""

from ....core.records import HistoryStep
from ....core.run.commands import Park, StartChild, WaitSignal
from ....core.run.outcomes import ChildStarted, Known, NotParked, Outcome, Parked, SignalBound, StepFailed, TimerSet
from ....core.run.refusals import lost_race
from ....core.states import StepStatus
from ....core.times import Timestamp
from ....engine import Tasks, error_of
from ....v1 import worker_pb2 as pb
from ....wire.common import NULL, read_duration_us, write_payload
from ....wire.operations import read_on_close
from ....wire.runs import read_child_start
from ....wire.worker_messages import read_lease_of, read_run_key
from ..require import expect


async def wait_signal(tasks: Tasks, request: pb.WaitSignalRequest) -> pb.WaitSignalResponse:
    """The signal if it has come, or that it did not come in time. Neither: the run is parked, its lease is gone, and it is handed
    out again when there is something to go on with.

    Other results that came meanwhile do not keep the run awake: its caller asks for each wait when it reaches it.
    """
    step_id = request.step_id or request.signal_name
    command = WaitSignal(
        run=read_run_key(request),
        lease=read_lease_of(request),
        step_id=step_id,
        signal_name=request.signal_name,
        timeout_us=read_duration_us(request.timeout) if request.HasField("timeout") else None,
    )
    outcome = await tasks.submit(command)
    if not isinstance(outcome, TimerSet):
        return _write_wait(outcome)
    known_seq = outcome.seq
    while True:
        park = Park(run=command.run, lease=command.lease, waits=(step_id,), known_seq=known_seq)
        outcome = await tasks.submit(park)
        if isinstance(outcome, Parked):
            return pb.WaitSignalResponse()
        results = expect(outcome, NotParked).results
        mine = next((step for step in results if step.step_id == step_id), None)
        if mine is not None:
            return _write_result(mine)
        newest_seq = max((step.seq for step in results), default=0)
        if newest_seq <= known_seq:  # a retry is due: the run has something to do before this wait
            return pb.WaitSignalResponse()
        known_seq = newest_seq


def _write_wait(outcome: Outcome) -> pb.WaitSignalResponse:
    if isinstance(outcome, SignalBound):
        return pb.WaitSignalResponse(received=True, payload=write_payload(outcome.payload))
    return _write_result(expect(outcome, Known).step)


def _write_result(step: HistoryStep) -> pb.WaitSignalResponse:
    if step.status is StepStatus.COMPLETED:
        return pb.WaitSignalResponse(received=True, payload=write_payload(step.output or NULL))
    if step.status is StepStatus.FAILED:
        return pb.WaitSignalResponse(timed_out=True)
    raise error_of(lost_race(step.step_id).error)


async def start_child(tasks: Tasks, request: pb.StartChildRequest, now: Timestamp) -> pb.StartChildResponse:
    """Raises AlreadyExists if the child's workflow_id is active and not to be attached to."""
    run = read_run_key(request)
    step_id = request.step_id or request.start.workflow_type
    command = StartChild(
        run=run,
        lease=read_lease_of(request),
        step_id=step_id,
        name=step_id,
        start=read_child_start(request.start, run.namespace, now),
        on_close=read_on_close(request.on_close),
        attach=request.attach,
    )
    outcome = await tasks.submit(command)
    if isinstance(outcome, ChildStarted):
        return pb.StartChildResponse(child_run_id=outcome.child_run_id, already_exists=not outcome.created)
    if isinstance(outcome, StepFailed):
        raise error_of(outcome.error)
    step = expect(outcome, Known).step
    if not step.child_run_id and step.error is not None:
        raise error_of(step.error)
    return pb.StartChildResponse(child_run_id=step.child_run_id or "", already_exists=True)
