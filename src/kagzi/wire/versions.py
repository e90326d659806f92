"""Versions of workflow types."""

from ..core.workflow_types.versions import VersionRecord
from ..v1 import admin_pb2 as pb
from .common import read_time, write_time


def write_version(record: VersionRecord) -> pb.WorkflowVersion:
    return pb.WorkflowVersion(
        workflow_type=record.workflow_type,
        version=record.version,
        is_default=record.is_default,
        deprecated=record.deprecated,
        open_runs=record.open_runs,
        workers=record.workers,
        first_seen_at=write_time(record.first_seen_at),
        open_is_capped=record.open_is_capped,
        is_set=record.is_set,
    )


def read_version(message: pb.WorkflowVersion) -> VersionRecord:
    return VersionRecord(
        workflow_type=message.workflow_type,
        version=message.version,
        first_seen_at=read_time(message.first_seen_at),
        deprecated=message.deprecated,
        is_set=message.is_set,
        is_default=message.is_default,
        open_runs=message.open_runs,
        open_is_capped=message.open_is_capped,
        workers=message.workers,
    )
