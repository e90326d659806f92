"""Workflow types and their queues."""

from ..core.errors import InvalidArgument
from ..core.workflow_types.queues import QueueDepth, QueueStanding, TypeLimits, WhenFull, WorkflowTypeRecord
from ..v1 import admin_pb2 as pb
from .common import read_time_if, write_time_if

_WHEN_FULL: dict[str, WhenFull] = {"": "queue", "queue": "queue", "reject": "reject", "cancel-oldest": "cancel-oldest"}


def write_type(record: WorkflowTypeRecord) -> pb.WorkflowType:
    message = write_limits(record.workflow_type, record.limits)
    message.default_version = record.default_version
    message.versions.extend(record.versions)
    message.open_runs = record.open_runs
    return message


def write_limits(workflow_type: str, limits: TypeLimits) -> pb.WorkflowType:
    return pb.WorkflowType(
        workflow_type=workflow_type,
        paused=limits.paused,
        max_running=limits.max_running,
        max_running_per_key=limits.max_running_per_key,
        starts_per_second=limits.starts_per_second,
        starts_per_second_per_key=limits.starts_per_second_per_key,
        when_full=limits.when_full,
    )


def read_limits(message: pb.WorkflowType) -> TypeLimits:
    """Raises InvalidArgument for an unknown when_full."""
    when_full = _WHEN_FULL.get(message.when_full)
    if when_full is None:
        raise InvalidArgument(
            f"when_full={message.when_full!r} is none of queue, reject and cancel-oldest.", field="when_full"
        )
    return TypeLimits(
        paused=message.paused,
        max_running=message.max_running if message.HasField("max_running") else None,
        max_running_per_key=message.max_running_per_key if message.HasField("max_running_per_key") else None,
        starts_per_second=message.starts_per_second if message.HasField("starts_per_second") else None,
        starts_per_second_per_key=(
            message.starts_per_second_per_key if message.HasField("starts_per_second_per_key") else None
        ),
        when_full=when_full,
    )


def read_type(message: pb.WorkflowType, namespace: str) -> WorkflowTypeRecord:
    return WorkflowTypeRecord(
        namespace=namespace,
        workflow_type=message.workflow_type,
        limits=read_limits(message),
        versions=tuple(message.versions),
        default_version=message.default_version,
        open_runs=message.open_runs,
    )


def write_standing(standing: QueueStanding) -> pb.QueueDepth:
    return pb.QueueDepth(
        workflow_type=standing.depth.workflow_type,
        version=standing.depth.version,
        waiting=standing.depth.waiting,
        oldest_waiting_since=write_time_if(standing.depth.oldest_since),
        workers=standing.workers,
        free_slots=standing.free_slots,
        held_back=standing.held_back,
    )


def read_standing(message: pb.QueueDepth) -> QueueStanding:
    depth = QueueDepth(
        workflow_type=message.workflow_type,
        version=message.version,
        waiting=message.waiting,
        oldest_since=read_time_if(message, "oldest_waiting_since"),
    )
    return QueueStanding(
        depth=depth, workers=message.workers, free_slots=message.free_slots, held_back=message.held_back
    )
