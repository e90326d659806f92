"""Counts the elements of all lists and maps of an encoded message, before it is decoded.

Decoding makes an object of each element, and whatever reads the message looks at each: two bytes of a message can cost
a server thousands of times as long as they took to send. So the elements are counted first, without making any objects.

protobuf itself counts them, by outlines: message types with the same fields, but without values, in which a list is a
list of undecoded bytes. What is inside of a list is counted by a second outline, in which the list is declared to be a
single message. protobuf merges what comes several times for a single message, so its lists get the elements of all. A
third outline goes two lists deep, and so on, until there is nothing left to count.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from ...core import limits
from ...core.errors import InvalidArgument, limit_reached

OWN_LIMITS: Mapping[str, int] = {
    "kagzi.v1.SessionRequest.runs": limits.MESSAGE_OPERATIONS,
    "kagzi.v1.RunOperations.operations": limits.MESSAGE_OPERATIONS,
    # A worker sends these beside each other and beside operations.
    "kagzi.v1.SessionRequest.heartbeat": limits.MESSAGE_ELEMENTS,
    "kagzi.v1.SessionRequest.received": limits.MESSAGE_ELEMENTS,
    "kagzi.v1.SessionHello.leased": limits.MESSAGE_ELEMENTS,
    "kagzi.v1.HeartbeatRequest.leased": limits.MESSAGE_ELEMENTS,
    "kagzi.v1.ParkRequest.waits": limits.STEPS_PER_RUN,
    "kagzi.v1.ParkOperation.waits": limits.STEPS_PER_RUN,
    "kagzi.v1.FetchResultsOperation.waits": limits.STEPS_PER_RUN,
    "kagzi.v1.RaceOperation.losers": limits.STEPS_PER_RUN,
    "kagzi.v1.CompleteRunOperation.open_waits": limits.STEPS_PER_RUN,
    "kagzi.v1.FailRunOperation.open_waits": limits.STEPS_PER_RUN,
    "kagzi.v1.CancelRunOperation.open_waits": limits.STEPS_PER_RUN,
    "kagzi.v1.ContinueAsNewOperation.open_waits": limits.STEPS_PER_RUN,
}
"""Fields whose elements have a limit of their own. All others of a message share MESSAGE_ELEMENTS."""

_PACKAGE = "outlines"


def check_elements(data: bytes, request_type: type[Message]) -> None:
    """Raises InvalidArgument for a message with too many elements, and DecodeError."""
    descriptor = request_type.DESCRIPTOR
    shared: dict[str, int] = {}
    for depth in count():
        outline = _outline(descriptor, depth)
        is_anything = False
        for field, elements in outline.counted(data):
            is_anything = True
            name = field.full_name
            if name not in OWN_LIMITS:
                shared[name] = shared.get(name, 0) + elements
            elif elements > OWN_LIMITS[name]:
                raise _too_many(field.name, field.name, elements, OWN_LIMITS[name])
        total = sum(shared.values())
        if total > limits.MESSAGE_ELEMENTS:
            most = max(shared, key=lambda name: shared[name]).rpartition(".")[2]
            what = most if len(shared) == 1 else f"the lists and maps of the message, {most} and others,"
            raise _too_many(most, what, total, limits.MESSAGE_ELEMENTS)
        if not is_anything:
            return


def _too_many(field: str, what: str, elements: int, limit: int) -> InvalidArgument:
    return InvalidArgument(
        f"{what} have {elements} elements; the limit of one message is {limit}. Send fewer at once.",
        field=field,
        metadata=limit_reached("message_elements", limit),
    )


class _Outline(NamedTuple):
    message_type: type[Message]
    described: Mapping[str, Descriptor]
    """What the types of the outline stand for, by name."""

    def counted(self, data: bytes) -> Iterator[tuple[FieldDescriptor, int]]:
        """The lists and maps that are exactly so many lists deep, with the number of their elements."""
        yield from self._counted_in(self.message_type.FromString(data))

    def _counted_in(self, message: Message) -> Iterator[tuple[FieldDescriptor, int]]:
        fields = self.described[message.DESCRIPTOR.name].fields_by_name
        for field, value in message.ListFields():
            if field.is_repeated:
                yield fields[field.name], len(value)
            else:
                yield from self._counted_in(value)


@cache
def _outline(descriptor: Descriptor, depth: int) -> _Outline:
    file = FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto3")
    described: dict[str, Descriptor] = {}
    name = _describe(file, described, descriptor, depth)
    pool = DescriptorPool()
    pool.Add(file)
    return _Outline(GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")), described)


def _describe(file: FileDescriptorProto, described: dict[str, Descriptor], descriptor: Descriptor, depth: int) -> str:
    """Adds the outline of a message type, and those of the types in it. Returns its name."""
    name = f"{descriptor.full_name.replace('.', '_')}_{depth}"
    if name in described:  # a message may contain messages of its own type
        return name
    described[name] = descriptor
    message = DescriptorProto(name=name)
    for field in descriptor.fields:
        outlined = FieldDescriptorProto(name=field.name, number=field.number)
        if field.is_repeated and depth == 0:
            outlined.label = FieldDescriptorProto.LABEL_REPEATED
            outlined.type = _undecoded(field)
        elif field.message_type is not None:
            outlined.label = FieldDescriptorProto.LABEL_OPTIONAL
            outlined.type = FieldDescriptorProto.TYPE_MESSAGE
            inside = _describe(file, described, field.message_type, depth - field.is_repeated)
            outlined.type_name = f".{_PACKAGE}.{inside}"
        else:
            continue
        message.field.append(outlined)
    file.message_type.append(message)
    return name


def _undecoded(field: FieldDescriptor) -> Any:
    if field.message_type is not None or field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return FieldDescriptorProto.TYPE_BYTES
    return FieldDescriptorProto.TYPE_INT32 if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM else field.type
