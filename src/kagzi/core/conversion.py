"""Builds a record from a row, a message or another record, field by field.

The fields of the record say what there is to convert. Each layer says once how a value of a type is read from a source;
only what has another name or another form is written out. So a new field of a record needs no line where it is copied.
"""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec

Source = TypeVar("Source")
Record = TypeVar("Record")
Read = Callable[[Source], Any]


class Field(NamedTuple):
    """A field of a record: a msgspec.Struct or a dataclass. `default` is NODEFAULT if there is none, or if it is
    made."""

    name: str
    type: Any
    default: Any


def fields_of(record: type[Any]) -> Iterator[Field]:
    if is_dataclass(record):
        known = fields(record)
        hints = get_type_hints(record) if any(isinstance(field.type, str) for field in known) else {}
        for field in known:
            default = msgspec.NODEFAULT if field.default is MISSING else field.default
            yield Field(field.name, hints.get(field.name, field.type), default)
    else:
        for struct_field in msgspec.structs.fields(record):
            yield Field(struct_field.name, struct_field.type, struct_field.default)


def converter(
    record: type[Record], reader: Callable[[Field], Read[Source]], /, **written_out: Read[Source]
) -> Callable[[Source], Record]:
    """Returns a function that makes a `record` of a source. A field is read by the function of its name in
    `written_out`, else by what `reader` returns for it: now, so that a field that cannot be read is found when the
    module is imported."""
    known = {field.name: field for field in fields_of(record)}
    if unknown := written_out.keys() - known:
        raise TypeError(f"{record.__name__} has no field {', '.join(sorted(unknown))}")
    parts = [(name, written_out[name] if name in written_out else reader(field)) for name, field in known.items()]

    def convert(source: Source) -> Record:
        return record(**{name: read(source) for name, read in parts})

    return convert
