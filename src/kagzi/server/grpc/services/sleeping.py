"""The unary Sleep: a timer and a park in one call."""

from ....core.errors import InternalError, InvalidArgument
from ....core.run.commands import BeginSleep, Park
from ....core.run.outcomes import Known, NotParked, Parked, Recorded, TimerSet
from ....core.run.refusals import lost_race
from ....core.times import US_PER_MS, US_PER_S, Timestamp
from ....engine import Tasks, error_of
from ....v1 import worker_pb2 as pb
from ....wire.common import read_duration_us, read_time, write_time
from ....wire.worker_messages import read_lease_of, read_run_key
from ..require import expect


async def sleep(tasks: Tasks, request: pb.SleepRequest) -> pb.SleepResponse:
    """Sets the timer when first called, and parks the run unless the time has come.

    Results that came meanwhile do not keep the run awake: its caller asks for each wait when it reaches it.
    """
    command = _read_sleep(request)
    outcome = await tasks.submit(command)
    if isinstance(outcome, Recorded):
        return pb.SleepResponse(remaining_ms=0, wake_at=write_time(outcome.at))
    if isinstance(outcome, Known):  # nothing else is known of a sleep that was begun
        raise error_of(lost_race(command.step_id).error)
    timer = expect(outcome, TimerSet)
    known_seq, wake_at = timer.seq, timer.wake_at
    if wake_at is None:
        raise InternalError("a sleep has no end")
    while True:
        park = Park(run=command.run, lease=command.lease, waits=(command.step_id,), known_seq=known_seq)
        outcome = await tasks.submit(park)
        if isinstance(outcome, Parked):
            return _response(wake_at, outcome.at, parked=True)
        not_parked = expect(outcome, NotParked)
        if any(step.step_id == command.step_id for step in not_parked.results):
            return pb.SleepResponse(remaining_ms=0, wake_at=write_time(wake_at))
        newest_seq = max((step.seq for step in not_parked.results), default=0)
        if newest_seq <= known_seq:  # a retry is due: the run has something to do before this wait
            return _response(wake_at, not_parked.at, parked=False)
        known_seq = newest_seq


def _response(wake_at: Timestamp, now: Timestamp, *, parked: bool) -> pb.SleepResponse:
    remaining_ms = -(-max(wake_at - now, 1) // US_PER_MS)
    return pb.SleepResponse(remaining_ms=remaining_ms, wake_at=write_time(wake_at), parked=parked)


def _read_sleep(request: pb.SleepRequest) -> BeginSleep:
    given = [field for field in ("duration", "until") if request.HasField(field)]
    if request.duration_seconds:
        given.insert(0, "duration_seconds")
    if len(given) > 1:
        raise InvalidArgument(f"{' and '.join(given)} are both set. Set one of them.", field=given[1])
    return BeginSleep(
        run=read_run_key(request),
        lease=read_lease_of(request),
        step_id=request.step_id or request.step_name,
        name=request.step_name or request.step_id,
        duration_us=None if request.HasField("until") else _read_duration_us(request),
        until=read_time(request.until) if request.HasField("until") else None,
    )


def _read_duration_us(request: pb.SleepRequest) -> int:
    if request.HasField("duration"):
        return read_duration_us(request.duration)
    return request.duration_seconds * US_PER_S
