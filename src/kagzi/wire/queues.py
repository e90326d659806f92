"""Workflow types and their queues."""

from ..core.errors import InvalidArgument
from ..core.workflow_types.queues import QueueStanding, TypeLimits, WhenFull, WorkflowTypeRecord
from ..v1 import admin_pb2 as pb
from .fields import reader, writer

_WHEN_FULL: dict[str, WhenFull] = {"": "queue", "queue": "queue", "reject": "reject", "cancel-oldest": "cancel-oldest"}
_OF_THE_TYPE = ("workflow_type", "default_version", "versions", "open_runs")


def _read_when_full(message: pb.WorkflowType) -> WhenFull:
    when_full = _WHEN_FULL.get(message.when_full)
    if when_full is None:
        raise InvalidArgument(
            f"when_full={message.when_full!r} must be one of queue, reject, cancel-oldest.", field="when_full"
        )
    return when_full


read_limits = reader(pb.WorkflowType, TypeLimits, unread=_OF_THE_TYPE, when_full=_read_when_full)
"""Raises InvalidArgument for an unknown when_full."""
write_limits = writer(pb.WorkflowType, TypeLimits, unset=_OF_THE_TYPE)
write_type = writer(pb.WorkflowType, WorkflowTypeRecord, unsent=("namespace",))
write_standing = writer(pb.QueueDepth, QueueStanding, names={"oldest_since": "oldest_waiting_since"})
