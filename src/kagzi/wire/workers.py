"""Workers: registration and what is known of them."""

from collections.abc import Iterable

from ..core.errors import InvalidArgument
from ..core.records import NO_LABELS, Served, WorkerRecord
from ..core.states import WorkerStatus
from ..core.workers import Trouble, WorkerEvent, WorkerEventKind
from ..v1 import admin_pb2 as pb_admin
from ..v1 import worker_pb2 as pb
from .common import read_namespace, read_time, read_type, write_time
from .enums import WORKER_STATUS_FROM_WIRE, WORKER_STATUS_TO_WIRE

DEFAULT_VERSION = "1"
DEFAULT_MAX_CONCURRENT = 100


def read_register(message: pb.RegisterRequest) -> WorkerRecord:
    """Raises InvalidArgument for the limits of the first contract: they are a resource of the server, not of a worker."""
    for field, given in (
        ("queue_concurrency_limit", message.HasField("queue_concurrency_limit")),
        ("workflow_type_concurrency", bool(message.workflow_type_concurrency)),
    ):
        if given:
            raise InvalidArgument(
                f"{field} is not taken from workers. Leave it out; max_concurrent limits this worker.", field=field
            )
    served = _read_served(message)
    types = {pair.workflow_type for pair in served}
    queue = read_type(message.task_queue)
    refuse_foreign_queue(queue, types)
    if queue and len(types) > 1:
        raise InvalidArgument(
            f"task_queue={message.task_queue!r} is one of {len(types)} workflow types. Leave it empty: a worker serves all its types.",
            field="task_queue",
        )
    return WorkerRecord(
        worker_id=message.worker_id,
        namespace=read_namespace(message.namespace_id),
        served=served,
        max_concurrent=message.max_concurrent or DEFAULT_MAX_CONCURRENT,
        hostname=message.hostname,
        pid=message.pid,
        sdk_version=message.version,
        build_id=message.build_id,
        labels=dict(message.labels) if message.labels else NO_LABELS,
    )


def _read_served(message: pb.RegisterRequest) -> tuple[Served, ...]:
    pairs = tuple(Served(read_type(pair.workflow_type), pair.version or DEFAULT_VERSION) for pair in message.served)
    if not pairs:
        return tuple(Served(read_type(workflow_type), DEFAULT_VERSION) for workflow_type in message.workflow_types)
    if message.workflow_types and set(map(read_type, message.workflow_types)) != {pair.workflow_type for pair in pairs}:
        raise InvalidArgument(
            "workflow_types and served name different types. Set one of them.", field="workflow_types"
        )
    return pairs


def refuse_foreign_queue(task_queue: str, workflow_types: Iterable[str]) -> None:
    """A task queue is a workflow type by another name. Raises InvalidArgument for anything else."""
    if task_queue and task_queue not in workflow_types:
        raise InvalidArgument(
            f"task_queue={task_queue!r} is none of the workflow types. Leave it empty: a worker serves types.",
            field="task_queue",
        )


def write_register(worker: WorkerRecord) -> pb.RegisterRequest:
    return pb.RegisterRequest(
        namespace_id=worker.namespace,
        hostname=worker.hostname,
        pid=worker.pid,
        version=worker.sdk_version,
        max_concurrent=worker.max_concurrent,
        labels=worker.labels,
        served=_write_served(worker),
        build_id=worker.build_id,
        worker_id=worker.worker_id,
    )


def _write_served(worker: WorkerRecord) -> list[pb.WorkflowTypeVersion]:
    return [pb.WorkflowTypeVersion(workflow_type=pair.workflow_type, version=pair.version) for pair in worker.served]


def write_worker(worker: WorkerRecord) -> pb.Worker:
    return pb.Worker(
        worker_id=worker.worker_id,
        namespace_id=worker.namespace,
        status=WORKER_STATUS_TO_WIRE[worker.status],
        hostname=worker.hostname,
        pid=worker.pid,
        version=worker.sdk_version,
        workflow_types=dict.fromkeys(pair.workflow_type for pair in worker.served),
        max_concurrent=worker.max_concurrent,
        active_count=worker.active_count,
        total_completed=worker.total_completed,
        total_failed=worker.total_failed,
        registered_at=write_time(worker.registered_at),
        last_heartbeat_at=write_time(worker.last_heartbeat_at),
        labels=worker.labels,
        served=_write_served(worker),
        build_id=worker.build_id,
    )


def read_worker(message: pb.Worker) -> WorkerRecord:
    return WorkerRecord(
        worker_id=message.worker_id,
        namespace=read_namespace(message.namespace_id),
        served=tuple(Served(pair.workflow_type, pair.version) for pair in message.served),
        max_concurrent=message.max_concurrent,
        hostname=message.hostname,
        pid=message.pid,
        sdk_version=message.version,
        build_id=message.build_id,
        labels=dict(message.labels) if message.labels else NO_LABELS,
        status=WORKER_STATUS_FROM_WIRE.get(message.status, WorkerStatus.OFFLINE),
        active_count=message.active_count,
        total_completed=message.total_completed,
        total_failed=message.total_failed,
        registered_at=read_time(message.registered_at),
        last_heartbeat_at=read_time(message.last_heartbeat_at),
    )


def read_worker_status(number: int) -> WorkerStatus:
    """Raises InvalidArgument for a number that is no status."""
    status = WORKER_STATUS_FROM_WIRE.get(number)
    if status is None:
        raise InvalidArgument(f"status_filter={number} is no WorkerStatus.", field="status_filter")
    return status


def write_worker_event(event: WorkerEvent) -> pb_admin.WorkerEvent:
    return pb_admin.WorkerEvent(
        worker_id=event.worker_id, kind=event.kind.value, at=write_time(event.at), detail=event.detail
    )


def read_worker_event(message: pb_admin.WorkerEvent) -> WorkerEvent:
    return WorkerEvent(
        worker_id=message.worker_id, kind=WorkerEventKind(message.kind), at=read_time(message.at), detail=message.detail
    )


def read_troubles(message: pb.SessionUpdate | pb.HeartbeatRequest) -> list[Trouble]:
    return [Trouble(trouble.kind, trouble.detail) for trouble in message.troubles]


def write_troubles(troubles: Iterable[Trouble]) -> list[pb.WorkerTrouble]:
    return [pb.WorkerTrouble(kind=trouble.kind, detail=trouble.detail) for trouble in troubles]
