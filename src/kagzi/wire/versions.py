"""Versions of workflow types."""

from ..core.workflow_types.versions import VersionRecord
from ..v1 import admin_pb2 as pb
from .fields import writer

write_version = writer(pb.WorkflowVersion, VersionRecord)
