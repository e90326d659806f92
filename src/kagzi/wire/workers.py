"""Workers: registration, and the records about them."""

from ..core.errors import InvalidArgument
from ..core.records import Served, WorkerRecord
from ..core.states import WorkerStatus
from ..core.workers import Diagnostic, WorkerEvent
from ..v1 import admin_pb2 as pb_admin
from ..v1 import worker_pb2 as pb
from .common import read_type
from .enums import WORKER_STATUS_FROM_WIRE, word_of
from .fields import reader, writer
from .requests import OF_THE_FIRST_CONTRACT, OF_THE_SERVER, WORKER_NAMES
from .schemas import DEFAULT_VERSION, read_served

DEFAULT_MAX_CONCURRENT = 100


def read_register(message: pb.RegisterRequest) -> WorkerRecord:
    """Raises InvalidArgument for the limits of the first contract: limits belong to the server, not to a worker."""
    for field, is_set in (
        ("queue_concurrency_limit", message.HasField("queue_concurrency_limit")),
        ("workflow_type_concurrency", bool(message.workflow_type_concurrency)),
    ):
        if is_set:
            raise InvalidArgument(
                f"{field} cannot be set by workers. Leave it out; max_concurrent limits this worker.", field=field
            )
    return _read_register(message)


def _read_served(message: pb.RegisterRequest) -> tuple[Served, ...]:
    pairs = tuple(map(read_served, message.served))
    if not pairs:
        return tuple(Served(read_type(workflow_type), DEFAULT_VERSION) for workflow_type in message.workflow_types)
    if message.workflow_types and set(map(read_type, message.workflow_types)) != {pair.workflow_type for pair in pairs}:
        raise InvalidArgument(
            "workflow_types and served name different types. Set one of them.", field="workflow_types"
        )
    return pairs


_read_register = reader(
    pb.RegisterRequest,
    WorkerRecord,
    names=WORKER_NAMES,
    unsent=OF_THE_SERVER,
    unread=(*OF_THE_FIRST_CONTRACT, "workflow_types"),
    served=_read_served,
    max_concurrent=lambda message: message.max_concurrent or DEFAULT_MAX_CONCURRENT,
)
write_worker = writer(
    pb.Worker,
    WorkerRecord,
    names=WORKER_NAMES,
    unset=OF_THE_FIRST_CONTRACT,
    workflow_types=lambda worker: dict.fromkeys(pair.workflow_type for pair in worker.served),
)
write_worker_event = writer(pb_admin.WorkerEvent, WorkerEvent, unsent=("number",))


def read_worker_status(number: int) -> WorkerStatus:
    """Raises InvalidArgument for a number that is not a status."""
    return word_of(WORKER_STATUS_FROM_WIRE, number, pb.WorkerStatus.DESCRIPTOR, "status_filter")


_read_diagnostic = reader(pb.WorkerDiagnostic, Diagnostic)


def read_diagnostics(message: pb.SessionUpdate | pb.HeartbeatRequest) -> list[Diagnostic]:
    return [_read_diagnostic(diagnostic) for diagnostic in message.diagnostics]
