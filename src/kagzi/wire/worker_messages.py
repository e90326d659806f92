"""What the unary messages of workers have in common: the run they are about, the lease that proves it is held, the result."""

from typing import Protocol

from ..core.error_details import ErrorDetail
from ..core.errors import InvalidArgument
from ..core.records import Lease, Payload, RunKey
from ..v1 import common_pb2
from .common import NULL, read_error, read_lease, read_namespace, read_payload


class RunMessage(Protocol):
    @property
    def run_id(self) -> str: ...
    @property
    def namespace_id(self) -> str: ...


class LeaseMessage(Protocol):
    @property
    def lease(self) -> common_pb2.Lease: ...
    def HasField(self, _: str, /) -> bool: ...  # noqa: N802  protobuf's name


class OutputMessage(Protocol):
    @property
    def output(self) -> common_pb2.Payload: ...
    def HasField(self, _: str, /) -> bool: ...  # noqa: N802  protobuf's name


class ErrorMessage(Protocol):
    @property
    def error(self) -> common_pb2.ErrorDetail: ...


def read_run_key(message: RunMessage) -> RunKey:
    return RunKey(read_namespace(message.namespace_id), message.run_id)


def read_lease_of(message: LeaseMessage) -> Lease:
    if not message.HasField("lease"):
        raise InvalidArgument("lease is missing. Send the one that came with the task.", field="lease")
    return read_lease(message.lease)


def read_output(message: OutputMessage) -> Payload:
    """No output is null."""
    return read_payload(message.output) if message.HasField("output") else NULL


def read_error_of(message: ErrorMessage) -> ErrorDetail:
    return read_error(message.error)
