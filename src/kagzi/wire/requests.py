"""Requests as clients and workers write them, and the few responses that they read as records of core.

Servers use the modules of the individual records, which programs need not load.
"""

from collections.abc import Iterable
from operator import attrgetter

import msgspec

from ..core.records import Payload, RunEnd, RunFilter, RunKey, RunOrder, WorkerRecord
from ..core.run.commands import OnConflict, StartRequest
from ..core.schedules.schedule import Overlap, ScheduleSpec
from ..core.states import RunStatus
from ..core.workers import Diagnostic
from ..v1 import common_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2
from .common import read_error, read_payload
from .enums import RUN_STATUS_FROM_WIRE, numbers_of, word_of, words_of
from .fields import writer
from .schemas import write_served

OVERLAP_FROM_WIRE: dict[int, Overlap] = words_of(workflow_schedule_pb2.OverlapPolicy.DESCRIPTOR, Overlap)
OVERLAP_TO_WIRE = numbers_of(OVERLAP_FROM_WIRE)
RUN_ORDER_TO_WIRE = numbers_of(words_of(workflow_pb2.RunOrder.DESCRIPTOR, RunOrder))

WORKER_NAMES = {"sdk_version": "version"}
OF_THE_SERVER = ("status", "active_count", "total_completed", "total_failed", "registered_at", "last_heartbeat_at")
OF_THE_FIRST_CONTRACT = ("task_queue", "queue_concurrency_limit", "workflow_type_concurrency")


class ScheduleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule to create or change. `enabled` None: unchanged; a new schedule is enabled."""

    namespace: str
    schedule_id: str
    spec: ScheduleSpec
    enabled: bool | None
    request_id: str


_write_start = writer(workflow_pb2.StartWorkflowRequest, StartRequest)
write_filter = writer(workflow_pb2.WorkflowFilter, RunFilter)
write_schedule_request = writer(
    workflow_schedule_pb2.CreateWorkflowScheduleRequest, ScheduleRequest, unset=("task_queue",)
)
write_register = writer(
    worker_pb2.RegisterRequest,
    WorkerRecord,
    names=WORKER_NAMES,
    unsent=OF_THE_SERVER,
    unset=(*OF_THE_FIRST_CONTRACT, "workflow_types"),
    served=lambda worker: map(write_served, worker.served),
)
_write_trouble = writer(worker_pb2.WorkerDiagnostic, Diagnostic)


_USUAL = ("namespace", "workflow_type", "workflow_id", "request_id", "input", "context", "on_conflict")
_unusual = attrgetter(*(name for name in StartRequest.__struct_fields__ if name not in _USUAL))
_UNUSUAL = _unusual(StartRequest(namespace="", workflow_type=""))
_ON_CONFLICT = numbers_of(words_of(workflow_pb2.OnConflict.DESCRIPTOR, OnConflict))


def write_start(start: StartRequest) -> workflow_pb2.StartWorkflowRequest:
    """Most starts have an input, a context if they are traced, and no options. Setting these few fields one by one
    takes a quarter of the time."""
    if _unusual(start) != _UNUSUAL:
        return _write_start(start)
    message = workflow_pb2.StartWorkflowRequest()
    message.namespace_id = start.namespace
    message.workflow_type = start.workflow_type
    message.request_id = start.request_id
    message.on_conflict = _ON_CONFLICT[start.on_conflict]
    if start.workflow_id:
        message.workflow_id = start.workflow_id
    if start.input is not None:
        _set_payload(message.input, start.input)
    if start.context is not None:
        _set_payload(message.context, start.context)
    return message


def _set_payload(message: common_pb2.Payload, payload: Payload) -> None:
    message.data = payload.data  # setting it makes the payload present, even if empty
    if payload.metadata:
        message.metadata.update(payload.metadata)


def write_diagnostics(diagnostics: Iterable[Diagnostic]) -> list[worker_pb2.WorkerDiagnostic]:
    return [_write_trouble(trouble) for trouble in diagnostics]


def read_run_status(number: int, *, field: str = "status") -> RunStatus:
    """Raises InvalidArgument for a number that is not a status."""
    return word_of(RUN_STATUS_FROM_WIRE, number, workflow_pb2.WorkflowStatus.DESCRIPTOR, field)


def read_outcome(message: workflow_pb2.RunOutcome, *, namespace: str) -> RunEnd:
    return RunEnd(
        run=RunKey(namespace, message.run_id),
        status=read_run_status(message.status),
        output=read_payload(message.output) if message.HasField("output") else None,
        error=read_error(message.error) if message.HasField("error") else None,
        continued_as=message.continued_as or None,
    )
