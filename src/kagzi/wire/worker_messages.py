"""Converts the unary requests of workers to operations of a session, so that both are read in `operations`."""

from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message

from ..core.records import Lease, RunKey
from ..v1 import common_pb2
from ..v1 import worker_pb2 as pb
from .common import read_lease, read_namespace

Operation = TypeVar("Operation", bound=Message)


class RunRequest(Protocol):
    """A request about a run that its worker has leased."""

    @property
    def run_id(self) -> str: ...
    @property
    def namespace_id(self) -> str: ...
    @property
    def lease(self) -> common_pb2.Lease: ...
    def HasField(self, _: str, /) -> bool: ...  # noqa: N802  protobuf's name


def read_run_key(request: RunRequest) -> RunKey:
    return RunKey(read_namespace(request.namespace_id), request.run_id)


def read_lease_of(request: RunRequest) -> Lease | None:
    """None: the request leaves it out."""
    return read_lease(request.lease) if request.HasField("lease") else None


def operation_of(request: Message, kind: type[Operation], **others: Any) -> Operation:
    """An operation with the fields that the request has under the same names, and `others`."""
    known = kind.DESCRIPTOR.fields_by_name
    return kind(**{field.name: value for field, value in request.ListFields() if field.name in known} | others)


def begin_and_completion(operation: pb.Operation) -> tuple[pb.Operation, pb.Operation]:
    """Split an operation that records a whole step into the two that it stands for. Both have its id."""
    record, begin = operation.record_step, pb.Operation(id=operation.id)
    begin.begin_step.MergeFromString(record.SerializeToString())  # the same fields; the output is ignored
    begin.begin_step.DiscardUnknownFields()
    completion = pb.CompleteStepOperation(step_id=record.step_id, attempt=record.attempt, output=record.output)
    return begin, pb.Operation(id=operation.id, complete_step=completion)
