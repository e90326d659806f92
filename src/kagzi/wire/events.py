"""Events of runs, for clients that watch them."""

from collections.abc import Iterator, Sequence

from ..core.events import RunEvent, RunMark
from ..core.limits import MESSAGE_SOFT_BYTES
from ..v1 import workflow_pb2 as pb
from .fields import reader, writer

write_event = writer(pb.RunEvent, RunEvent, names={"output": "data"})
read_event = reader(pb.RunEvent, RunEvent, names={"output": "data"})
_write_mark = writer(pb.WatchResponse, RunMark, unsent=("run", "seq", "created_at", "finished_at"), unset=("events",))


def write_watch(mark: RunMark, events: Sequence[RunEvent]) -> Iterator[pb.WatchResponse]:
    """One message, or several if one would be too large."""
    response = _write_mark(mark)
    size = response.ByteSize()
    for event in events:
        message = write_event(event)
        size += message.ByteSize()
        if size > MESSAGE_SOFT_BYTES and response.events:
            yield response
            response = _write_mark(mark)
            size = response.ByteSize() + message.ByteSize()
        response.events.append(message)
    yield response
