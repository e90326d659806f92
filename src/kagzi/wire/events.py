"""What happened to runs, for those who watch."""

from collections.abc import Iterator, Sequence

from ..core.events import EventKind, RunEvent, RunMark
from ..core.limits import MESSAGE_SOFT_BYTES
from ..v1 import workflow_pb2 as pb
from .common import (
    read_error,
    read_payload,
    read_time,
    read_time_if,
    write_error_if,
    write_payload_if,
    write_time,
    write_time_if,
)
from .enums import RUN_STATUS_TO_WIRE


def write_event(event: RunEvent) -> pb.RunEvent:
    return pb.RunEvent(
        seq=event.seq,
        at=write_time(event.at),
        kind=event.kind,
        step_id=event.step_id,
        data=write_payload_if(event.output),
        error=write_error_if(event.error),
        name=event.name,
        attempt=event.attempt,
        until=write_time_if(event.until),
        child_run_id=event.child_run_id or "",
        continued_as=event.continued_as or "",
    )


def read_event(message: pb.RunEvent) -> RunEvent:
    return RunEvent(
        seq=message.seq,
        at=read_time(message.at),
        kind=EventKind(message.kind),
        step_id=message.step_id,
        name=message.name,
        attempt=message.attempt,
        output=read_payload(message.data) if message.HasField("data") else None,
        error=read_error(message.error) if message.HasField("error") else None,
        until=read_time_if(message, "until"),
        child_run_id=message.child_run_id or None,
        continued_as=message.continued_as or None,
    )


def write_watch(mark: RunMark, events: Sequence[RunEvent]) -> Iterator[pb.WatchResponse]:
    """One message, or several if they would be too large for one."""
    response = _standing(mark)
    size = response.ByteSize()
    for event in events:
        message = write_event(event)
        size += message.ByteSize()
        if size > MESSAGE_SOFT_BYTES and response.events:
            yield response
            response = _standing(mark)
            size = response.ByteSize() + message.ByteSize()
        response.events.append(message)
    yield response


def _standing(mark: RunMark) -> pb.WatchResponse:
    return pb.WatchResponse(
        status=RUN_STATUS_TO_WIRE[mark.status],
        status_text=mark.status_text,
        progress=mark.progress,
        pause_reason=mark.pause_reason,
        pause_requested=mark.pause_requested,
        cancel_requested=mark.cancel_requested,
    )
