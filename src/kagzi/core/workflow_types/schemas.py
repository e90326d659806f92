"""Schemas of a version of a workflow: its input, output and signals, as registered by its workers."""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from ..limits import SCHEMA_EARLIER_US
from ..records import Served
from ..times import Timestamp


class TypeSchemas(msgspec.Struct, frozen=True, kw_only=True):
    """JSON Schema as text; empty if there is none."""

    description: str = ""
    input_schema: str = ""
    output_schema: str = ""
    signal_schemas: Mapping[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.description or self.input_schema or self.output_schema or self.signal_schemas)


NO_TYPE_SCHEMAS: Mapping[Served, TypeSchemas] = MappingProxyType({})


class SchemaRecord(TypeSchemas, frozen=True, kw_only=True):
    """The schemas of a version, and since when its workers have registered them."""

    workflow_type: str
    version: str
    registered_at: Timestamp = 0


class RegisteredSchemas(msgspec.Struct, frozen=True):
    """Digests of the schemas that workers registered for a version: the latest and the previous one."""

    latest: str = ""
    earlier: str = ""
    registered_at: Timestamp = 0

    def in_force(self, now: Timestamp) -> tuple[str, ...]:
        """The schemas that some worker may still use. During a deployment both are in use."""
        replaced = self.registered_at + SCHEMA_EARLIER_US < now
        return tuple(digest for digest in (self.latest, "" if replaced else self.earlier) if digest)


NOTHING_REGISTERED = RegisteredSchemas()

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(TypeSchemas).decode


def write_document(schemas: TypeSchemas) -> str:
    """The stored form: equal schemas give equal texts."""
    return _encode(schemas).decode()


def read_document(document: str) -> TypeSchemas:
    return _decode(document)


def digest_of(document: str) -> str:
    return hashlib.sha256(document.encode()).hexdigest()
