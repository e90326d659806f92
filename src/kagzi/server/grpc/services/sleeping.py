"""The unary Sleep: a timer and a park in one call."""

from ....core.duration import check_duration, check_time
from ....core.errors import InternalError, InvalidArgument
from ....core.run.outcomes import Known, Parked, Recorded, TimerSet
from ....core.run.refusals import lost_race
from ....core.times import US_PER_MS, US_PER_S, Timestamp
from ....engine import error_of
from ....v1 import worker_pb2 as pb
from ....wire.common import read_duration_us, read_time, write_time
from ..require import require
from .waiting import Submit, park_for


async def sleep(submit: Submit, request: pb.SleepRequest) -> pb.SleepResponse:
    """Sets the timer on the first call, and parks the run unless the timer is due.

    Other results that have arrived do not keep the run awake: its caller requests each wait when it reaches it.
    """
    operation = _read_sleep(request)
    step_id = operation.step_id
    outcome = await submit(request, pb.Operation(sleep=operation))
    if isinstance(outcome, Recorded):
        return pb.SleepResponse(remaining_ms=0, wake_at=write_time(outcome.at))
    if isinstance(outcome, Known):  # a sleep that has begun can only be known as the loser of a race
        raise error_of(lost_race(step_id).error)
    timer = require(outcome, TimerSet)
    wake_at = timer.wake_at
    if wake_at is None:
        raise InternalError("a sleep has no end")
    outcome, result = await park_for(submit, request, step_id, timer.seq)
    if isinstance(outcome, Parked):
        return _response(wake_at, outcome.at, parked=True)
    if result is not None:
        return pb.SleepResponse(remaining_ms=0, wake_at=write_time(wake_at))
    return _response(wake_at, outcome.at, parked=False)


def _response(wake_at: Timestamp, now: Timestamp, *, parked: bool) -> pb.SleepResponse:
    remaining_ms = -(-max(wake_at - now, 1) // US_PER_MS)
    return pb.SleepResponse(remaining_ms=remaining_ms, wake_at=write_time(wake_at), parked=parked)


def _read_sleep(request: pb.SleepRequest) -> pb.SleepOperation:
    fields = [field for field in ("duration", "until") if request.HasField(field)]
    if request.duration_seconds:
        fields.insert(0, "duration_seconds")
    if len(fields) > 1:
        raise InvalidArgument(f"{' and '.join(fields)} are both set. Set one of them.", field=fields[1])
    duration_us = request.duration_seconds * US_PER_S + read_duration_us(request.duration)
    until_us = read_time(request.until)
    check_duration(duration_us, fields[0] if fields else "duration")  # the range of an operation
    check_time(until_us, "until")
    return pb.SleepOperation(
        step_id=request.step_id or request.step_name,
        name=request.step_name or request.step_id,
        duration_us=duration_us,
        until_us=until_us,
    )
