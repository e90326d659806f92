"""Workflow types and their queues."""

from ..core.errors import InvalidArgument
from ..core.workflow_types.queues import QueueDepth, QueueStanding, TypeLimits, WhenFull, WorkflowTypeRecord
from ..v1 import admin_pb2 as pb
from .common import read_time_if, write_time_if

_WHEN_FULL: dict[str, WhenFull] = {"": "queue", "queue": "queue", "reject": "reject", "cancel-oldest": "cancel-oldest"}


def write_type(record: WorkflowTypeRecord) -> pb.WorkflowType:
    letter = write_limits(record.workflow_type, record.limits)
    letter.default_version = record.default_version
    letter.versions.extend(record.versions)
    letter.open_runs = record.open_runs
    return letter


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


def read_limits(letter: pb.WorkflowType) -> TypeLimits:
    """Raises InvalidArgument for an unknown when_full."""
    when_full = _WHEN_FULL.get(letter.when_full)
    if when_full is None:
        raise InvalidArgument(
            f"when_full={letter.when_full!r} is none of queue, reject and cancel-oldest.", field="when_full"
        )
    return TypeLimits(
        paused=letter.paused,
        max_running=letter.max_running if letter.HasField("max_running") else None,
        max_running_per_key=letter.max_running_per_key if letter.HasField("max_running_per_key") else None,
        starts_per_second=letter.starts_per_second if letter.HasField("starts_per_second") else None,
        starts_per_second_per_key=(
            letter.starts_per_second_per_key if letter.HasField("starts_per_second_per_key") else None
        ),
        when_full=when_full,
    )


def read_type(letter: pb.WorkflowType, namespace: str) -> WorkflowTypeRecord:
    return WorkflowTypeRecord(
        namespace=namespace,
        workflow_type=letter.workflow_type,
        limits=read_limits(letter),
        versions=tuple(letter.versions),
        default_version=letter.default_version,
        open_runs=letter.open_runs,
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


def read_standing(letter: pb.QueueDepth) -> QueueStanding:
    depth = QueueDepth(
        workflow_type=letter.workflow_type,
        version=letter.version,
        waiting=letter.waiting,
        oldest_since=read_time_if(letter, "oldest_waiting_since"),
    )
    return QueueStanding(depth=depth, workers=letter.workers, free_slots=letter.free_slots, held_back=letter.held_back)
