"""Schemas of workflow types: as workers register them, and as clients get them."""

from collections.abc import Mapping

from ..core.records import Served
from ..core.workflow_types.schemas import SchemaRecord, TypeSchemas
from ..v1 import admin_pb2 as pb_admin
from ..v1 import worker_pb2 as pb
from .common import read_type, write_time_if
from .fields import form, reader, writer

DEFAULT_VERSION = "1"

_IDENTITY = ("workflow_type", "version")
_read_schemas = reader(pb.WorkflowTypeVersion, TypeSchemas, unread=_IDENTITY)
write_schema = writer(
    pb_admin.WorkflowSchema,
    SchemaRecord,
    registered_at=lambda record: write_time_if(record.registered_at or None),  # absent if none were ever registered
)


def read_served(pair: pb.WorkflowTypeVersion) -> Served:
    return Served(read_type(pair.workflow_type), pair.version or DEFAULT_VERSION)


def write_served(served: Served) -> pb.WorkflowTypeVersion:
    """Without schemas: a worker's record does not contain them."""
    return pb.WorkflowTypeVersion(workflow_type=served.workflow_type, version=served.version)


form(pb.WorkflowTypeVersion, Served, read_served, write_served)


def read_schemas(message: pb.RegisterRequest) -> Mapping[Served, TypeSchemas]:
    """The schemas of the types that have any."""
    read = ((read_served(pair), _read_schemas(pair)) for pair in message.served)
    return {served: schemas for served, schemas in read if schemas}


def add_schemas(message: pb.RegisterRequest, schemas: Mapping[Served, TypeSchemas]) -> pb.RegisterRequest:
    """Add the schemas of the types that the message names."""
    for pair in message.served:
        known = schemas.get(read_served(pair))
        if known is not None:
            pair.description = known.description
            pair.input_schema = known.input_schema
            pair.output_schema = known.output_schema
            pair.signal_schemas.update(known.signal_schemas)
    return message
