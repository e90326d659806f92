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


def read_version(letter: pb.WorkflowVersion) -> VersionRecord:
    return VersionRecord(
        workflow_type=letter.workflow_type,
        version=letter.version,
        first_seen_at=read_time(letter.first_seen_at),
        deprecated=letter.deprecated,
        is_set=letter.is_set,
        is_default=letter.is_default,
        open_runs=letter.open_runs,
        open_is_capped=letter.open_is_capped,
        workers=letter.workers,
    )
