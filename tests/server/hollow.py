"""Messages with many elements that say nothing, for each list and map of each request: as few bytes as possible."""

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

from kagzi.sdk.worker.outbox import field as length_delimited
from kagzi.server.grpc.registration import SERVICES

METHODS: list[MethodDescriptor] = [method for service in SERVICES for method in service.methods]

Path = tuple[FieldDescriptor, ...]
_LENGTH_DELIMITED = 2


def paths(descriptor: Descriptor, before: Path = (), around: tuple[str, ...] = ()) -> Iterator[Path]:
    """To each list and map of a message, however deep it is. The last field is the list."""
    for field in descriptor.fields:
        if field.is_repeated:
            yield (*before, field)
        inner = field.message_type
        if inner is not None and inner.full_name not in around:
            yield from paths(inner, (*before, field), (*around, inner.full_name))


def all_paths() -> list[tuple[MethodDescriptor, Path]]:
    return [(method, path) for method in METHODS for path in paths(method.input_type)]


def named(path: Path) -> str:
    return ".".join(field.name for field in path)


def hollow(path: Path, elements: int) -> bytes:
    """A message with so many elements in one place, of two bytes each."""
    *outer, last = path
    body = _element(last) * elements
    for field in reversed(outer):
        body = enclosed(field, body)
    return body


def enclosed(field: FieldDescriptor, body: bytes) -> bytes:
    return length_delimited(_tag(field, _LENGTH_DELIMITED), body)


def _element(field: FieldDescriptor) -> bytes:
    by_length = field.message_type is not None or field.cpp_type == FieldDescriptor.CPPTYPE_STRING
    return _tag(field, _LENGTH_DELIMITED if by_length else 0) + b"\0"


def _tag(field: FieldDescriptor, wire_type: int) -> bytes:
    key = field.number << 3 | wire_type
    return bytes((key,)) if key < 0x80 else bytes((key & 0x7F | 0x80, key >> 7))
