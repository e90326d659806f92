"""Converts records to messages and back by the names of their fields.

A record's field and the message's field of the same name are converted by their types; only fields with another name or
form are given explicitly. Both sides are compared when a module is imported: a field that would silently be lost raises
TypeError there. Messages that are sent with every step are converted by hand, for speed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Any, NamedTuple, NoReturn, TypeVar, cast, get_args

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp as TimestampMessage

from ..core.conversion import Field, compiled, fields_of, keywords
from ..core.error_details import ErrorDetail
from ..core.records import DEFAULT_NAMESPACE, Payload
from ..core.retry.policy import RetryPolicy
from ..core.times import to_datetime
from ..v1 import common_pb2
from .common import (
    read_duration_us,
    read_error,
    read_payload,
    read_retry,
    read_time,
    write_duration,
    write_error,
    write_payload,
    write_retry,
    write_time,
)
from .enums import numbers_of, word_of, words_of

Sent = TypeVar("Sent", bound=Message)
Record = TypeVar("Record")
Get = Callable[[Any], Any]

_ALIASES = {"namespace": "namespace_id", "retry": "retry_policy"}
_DURATION_SUFFIX = "_us"
_SCALARS = {
    FieldDescriptor.CPPTYPE_STRING: (str, bytes),
    FieldDescriptor.CPPTYPE_BOOL: (bool,),
    FieldDescriptor.CPPTYPE_DOUBLE: (float,),
    FieldDescriptor.CPPTYPE_INT32: (int,),
    FieldDescriptor.CPPTYPE_INT64: (int,),
}


class _Form(NamedTuple):
    read: Get
    write: Get


_FORMS: dict[tuple[str, type[Any]], _Form] = {}


def _not_written(value: object) -> NoReturn:
    """For types that only users read."""
    raise TypeError(f"{value!r} is not written")


def form(message: type[Message], kind: type[Any], read: Get, write: Get = _not_written) -> None:
    """Define how a value of `kind` is read from and written to a `message` that is a field of another one. A record
    with the same fields as the message needs no definition."""
    _FORMS[message.DESCRIPTOR.full_name, kind] = _Form(read, write)


form(TimestampMessage, int, read_time, write_time)
form(TimestampMessage, datetime, lambda message: to_datetime(read_time(message)))
form(Duration, int, read_duration_us, write_duration)
form(Duration, timedelta, lambda message: timedelta(microseconds=read_duration_us(message)))
form(common_pb2.Payload, Payload, read_payload, write_payload)
form(common_pb2.ErrorDetail, ErrorDetail, read_error, write_error)
form(common_pb2.RetryPolicy, RetryPolicy, read_retry, write_retry)


# --- reading ----------------------------------------------------------------------------------------------------------


def reader(
    message: type[Sent],
    record: type[Record],
    /,
    *,
    names: Mapping[str, str] | None = None,
    unsent: Collection[str] = (),
    unread: Collection[str] = (),
    **written_out: Callable[[Sent], Any],
) -> Callable[[Sent], Record]:
    """Returns a function that reads a `record` from a `message`. Omitted fields get the record's defaults.

    `names`: fields of the message by those of the record, where they differ. `unsent`: fields of the record that keep
    their defaults. `unread`: fields of the message that are not read here. `written_out`: functions that read a field
    of the record.
    """
    pairs = _Pairs(message, names or {})
    read = _reader(record, pairs, unsent, written_out)
    pairs.check(record, unread)
    return read


def _reader(
    record: type[Record], pairs: "_Pairs", unsent: Collection[str], written_out: Mapping[str, Get]
) -> Callable[[Message], Record]:
    parts = _Arguments("message")
    for field in pairs.fields_of(record, (*unsent, *written_out)):
        sent = pairs.take(field.name)
        if field.name in written_out:
            parts.make(field.name, written_out[field.name])
        elif field.name in unsent:
            if field.default is msgspec.NODEFAULT:
                raise TypeError(f"{record.__name__}.{field.name} has no default")
        elif sent is None:
            parts.make(field.name, _reader(pairs.struct(record, field), pairs, (), {}))
        elif (whole := _whole_reader(sent, field, pairs.names)) is not None:
            parts.make(field.name, whole)
        else:
            read = _value_reader(sent, field, pairs.names)
            if sent.has_presence and (_is_optional(field) or field.default is not msgspec.NODEFAULT):
                default = None if field.default is msgspec.NODEFAULT else field.default
                parts.copy_present(field.name, sent.name, read, default)
            else:
                parts.copy(field.name, sent.name, read)
    return parts.call(record)


class _Arguments:
    """The keyword arguments of a record or a message, as source of a call: it is executed often (see `compiled`)."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._values: dict[str, str] = {}
        self._names: dict[str, Any] = {}

    def make(self, name: str, convert: Get) -> None:
        """Convert the source as a whole."""
        self._values[name] = f"{self._name('make', name, convert)}({self._source})"

    def copy(self, name: str, path: str, convert: Get | None) -> None:
        value = f"{self._source}.{path}"
        self._values[name] = value if convert is None else f"{self._name('convert', name, convert)}({value})"

    def copy_present(self, name: str, path: str, convert: Get | None, default: Any) -> None:
        """Copy a field of a message that may be absent."""
        self.copy(name, path, convert)
        default_name = "None" if default is None else self._name("default", name, default)
        self._values[name] += f" if {self._source}.HasField('{path}') else {default_name}"

    def copy_set(self, name: str, path: str, convert: Get) -> None:
        """Copy a field of a record that may be None: protobuf omits None."""
        convert_name = self._name("convert", name, convert)
        self._values[name] = f"None if (value := {self._source}.{path}) is None else {convert_name}(value)"

    def call(self, target: Callable[..., Record]) -> Callable[[Any], Record]:
        return compiled(self._source, f"target({keywords(self._values)})", target=target, **self._names)

    def _name(self, verb: str, name: str, value: Any) -> str:
        self._names[f"{verb}_{name}"] = value
        return f"{verb}_{name}"


def _whole_reader(sent: FieldDescriptor, field: Field, names: Mapping[str, str]) -> Get | None:
    """The reader of a field that is always present and whose value is not converted one to one."""
    get, kind = attrgetter(sent.name), _without_none(field.type)
    if sent.name == "namespace_id":
        return lambda message: get(message) or DEFAULT_NAMESPACE
    if _is_map(sent):
        return lambda message: dict(values) if (values := get(message)) else {}  # most are empty
    if sent.is_repeated:
        read = _value_reader(sent, field, names)
        return _after(get, tuple) if read is None else lambda message: tuple(map(read, get(message)))
    if sent.enum_type is not None:
        words, enum, name = words_of(sent.enum_type, kind), sent.enum_type, sent.name
        if _is_optional(field):
            return lambda message: words.get(get(message))
        if field.default is not msgspec.NODEFAULT:
            words[0] = field.default
        return lambda message: words.get(number := get(message)) or word_of(words, number, enum, name)
    if _is_optional(field) and kind is str:
        return lambda message: get(message) or None
    if _is_optional(field) and not sent.has_presence:
        raise TypeError(f"{sent.full_name} is always there, so {field.name} is never None")
    return None


def _value_reader(sent: FieldDescriptor, field: Field, names: Mapping[str, str]) -> Get | None:
    """The reader of a value; None if it is not converted. Raises TypeError if the types do not match."""
    kind = _element(sent, field)
    if sent.message_type is not None:
        known = _form_of(sent.message_type, kind, field.name)
        return known.read if known else reader(GetMessageClass(sent.message_type), kind, names=names)
    if sent.enum_type is not None:
        enum, words, name = sent.enum_type, words_of(sent.enum_type, kind), sent.name
        return lambda number: word_of(words, number, enum, name)
    _check_scalar(sent, kind)
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else None


# --- writing ----------------------------------------------------------------------------------------------------------


def writer(
    message: type[Sent],
    record: type[Record],
    /,
    *,
    names: Mapping[str, str] | None = None,
    unsent: Collection[str] = (),
    unset: Collection[str] = (),
    **written_out: Callable[[Record], Any],
) -> Callable[[Record], Sent]:
    """Returns a function that writes a `record` as a `message`.

    `names`: as in `reader`. `unsent`: fields of the record that are not sent, or that a function of `written_out`
    reads. `unset`: fields of the message that are not set here. `written_out`: how a field of the message is set.
    """
    pairs = _Pairs(message, names or {})
    parts = _Arguments("record")

    def add(part: type[Any], path: str) -> None:
        for field in pairs.fields_of(part, () if path else unsent):
            sent = pairs.take(field.name)
            if field.name in unsent or (sent is not None and sent.name in written_out):
                continue
            if sent is None:
                add(pairs.struct(record, field), f"{path}{field.name}.")
            elif _is_map(sent) or (write := _value_writer(sent, field, pairs.names)) is None:
                parts.copy(sent.name, path + field.name, None)
            else:
                parts.copy_set(sent.name, path + field.name, write)

    add(record, "")
    pairs.check(record, (*unset, *written_out))
    for name, make in written_out.items():
        parts.make(name, make)
    return parts.call(message)


def _value_writer(sent: FieldDescriptor, field: Field, names: Mapping[str, str]) -> Get | None:
    kind = _element(sent, field)
    if sent.message_type is not None:
        known = _form_of(sent.message_type, kind, field.name)
        write = known.write if known else writer(GetMessageClass(sent.message_type), kind, names=names)
    elif sent.enum_type is not None:
        write = numbers_of(words_of(sent.enum_type, kind)).__getitem__
    else:
        _check_scalar(sent, kind)
        return None
    return (lambda values: list(map(write, values))) if sent.is_repeated else write


# --- both -------------------------------------------------------------------------------------------------------------


class _Pairs:
    """Which field of a message matches a field of a record, and which fields have been matched."""

    def __init__(self, message: type[Message], names: Mapping[str, str]) -> None:
        self._message = message.DESCRIPTOR
        self._fields = dict(self._message.fields_by_name)  # protobuf creates an object for each look-up
        self._left = set(self._fields)
        self.names = names

    def fields_of(self, record: type[Any], named: Collection[str]) -> tuple[Field, ...]:
        """Raises TypeError if a named field does not exist."""
        fields = _fields_of(cast("Any", record))  # for mypy a class is not hashable
        if unknown := set(named) - {field.name for field in fields}:
            raise TypeError(f"{record.__name__} has no field {', '.join(sorted(unknown))}")
        return fields

    def take(self, name: str) -> FieldDescriptor | None:
        for known in (self.names.get(name, name), _ALIASES.get(name, name), name.removesuffix(_DURATION_SUFFIX)):
            if known in self._fields:
                self._left.discard(known)
                return cast("FieldDescriptor", self._fields[known])  # the stubs have two classes for it
        return None

    def struct(self, record: type[Any], field: Field) -> type[msgspec.Struct]:
        """A part of a record whose fields are fields of the message itself. Raises TypeError for anything else."""
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            return field.type
        raise TypeError(f"{self._message.full_name} has no field for {record.__name__}.{field.name}")

    def check(self, record: type[Any], others: Iterable[str]) -> None:
        """Raises TypeError for a field of the message that is not mentioned."""
        if left := self._left - set(others):
            raise TypeError(
                f"{record.__name__} has no field for {', '.join(sorted(left))} of {self._message.full_name}"
            )


@cache  # a record is read, written, and used in other records
def _fields_of(record: type[Any]) -> tuple[Field, ...]:
    return tuple(fields_of(record))


def _form_of(message: Descriptor, kind: Any, name: str) -> _Form | None:
    """None for a record, which is converted by its fields."""
    known = _FORMS.get((message.full_name, kind))
    is_record = is_dataclass(kind) or hasattr(kind, "__struct_fields__")
    is_wrong_unit = kind is int and (message.name == "Duration") != name.endswith(_DURATION_SUFFIX)
    if is_wrong_unit or (known is None and not is_record):
        raise TypeError(f"{message.full_name} cannot be {name}, a {kind}")
    return known


def _check_scalar(sent: FieldDescriptor, kind: Any) -> None:
    kinds: set[Any] = {type(word) for word in get_args(kind)} or {kind}
    if not all(issubclass(each, _SCALARS[sent.cpp_type]) for each in kinds):
        raise TypeError(f"{sent.full_name} cannot be a {kind}")


def _is_map(sent: FieldDescriptor) -> bool:
    return sent.message_type is not None and sent.message_type.GetOptions().map_entry


def _is_optional(field: Field) -> bool:
    return NoneType in get_args(field.type)


def _without_none(kind: Any) -> Any:
    """`X` for `X | None`; anything else unchanged."""
    choices = get_args(kind)
    return next(each for each in choices if each is not NoneType) if NoneType in choices else kind


def _element(sent: FieldDescriptor, field: Field) -> Any:
    kind = _without_none(field.type)
    return get_args(kind)[0] if sent.is_repeated else kind


def _after(get: Get, convert: Get) -> Get:
    return lambda source: convert(get(source))
