"""Requests as clients and workers write them, and the few responses that they read as records of core.

Servers read and write with the modules of the nouns, which programs need not load.
"""

from collections.abc import Iterable

import msgspec

from ..core.records import RunEnd, RunFilter, RunKey, WorkerRecord
from ..core.run.commands import StartRequest
from ..core.schedules.schedule import Overlap, ScheduleSpec
from ..core.states import RunStatus
from ..core.workers import Diagnostic
from ..v1 import worker_pb2, workflow_pb2, workflow_schedule_pb2
from .common import read_error, read_payload
from .enums import RUN_STATUS_FROM_WIRE, numbers_of, word_of, words_of
from .fields import writer

OVERLAP_FROM_WIRE: dict[int, Overlap] = words_of(workflow_schedule_pb2.OverlapPolicy.DESCRIPTOR, Overlap)
OVERLAP_TO_WIRE = numbers_of(OVERLAP_FROM_WIRE)

WORKER_NAMES = {"sdk_version": "version"}
OF_THE_SERVER = ("status", "active_count", "total_completed", "total_failed", "registered_at", "last_heartbeat_at")
OF_THE_FIRST_CONTRACT = ("task_queue", "queue_concurrency_limit", "workflow_type_concurrency")


class ScheduleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule to create or to change. `enabled` None: as it is, and a new one is enabled."""

    namespace: str
    schedule_id: str
    spec: ScheduleSpec
    enabled: bool | None
    request_id: str


write_start = writer(workflow_pb2.StartWorkflowRequest, StartRequest)
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
)
_write_trouble = writer(worker_pb2.WorkerDiagnostic, Diagnostic)


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
