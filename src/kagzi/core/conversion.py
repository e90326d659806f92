"""Builds a record from a row, a message or another record, field by field.

The fields of the record define what is converted. Each layer defines once how to read a value of a type from a source;
only fields with another name or form are written out. A new field of a record needs no change where it is copied.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec

Source = TypeVar("Source")
Record = TypeVar("Record")
Read = Callable[[Source], Any]


class Field(NamedTuple):
    """A field of a record: a msgspec.Struct or a dataclass. `default` is NODEFAULT if there is none, or if it has a
    factory."""

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
    """Returns a function that builds a `record` from a source. A field is read by the function of its name in
    `written_out`, or else by the function that `reader` returns for it. `reader` is called now, so that an unreadable
    field is found when the module is imported."""
    known = {field.name: field for field in fields_of(record)}
    if unknown := written_out.keys() - known:
        raise TypeError(f"{record.__name__} has no field {', '.join(sorted(unknown))}")
    reads = {f"read_{name}": written_out.get(name) or reader(field) for name, field in known.items()}
    arguments = {name: f"read_{name}(source)" for name in known}
    return compiled("source", f"record({keywords(arguments)})", record=record, **reads)


def copier(record: type[Record], copied: Collection[str], /) -> Callable[..., Record]:
    """Returns a function that builds a `record` from a source, which has the fields `copied`, and from keyword
    arguments for the other fields. Fields with defaults may be left out."""
    others = {field.name: field.default for field in fields_of(record) if field.name not in copied}
    defaults = {f"default_{name}": default for name, default in others.items() if default is not msgspec.NODEFAULT}
    parameters = [f"{name}=default_{name}" if f"default_{name}" in defaults else name for name in others]
    arguments = {name: f"source.{name}" for name in copied} | {name: name for name in others}
    return compiled(
        f"source, /, *, {', '.join(parameters)}", f"new_record({keywords(arguments)})", new_record=record, **defaults
    )


def keywords(arguments: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={expression}" for name, expression in arguments.items())


def compiled(parameters: str, expression: str, /, **names: Any) -> Callable[..., Any]:
    """Returns `lambda parameters: expression` with `names` as its only globals.

    Records are created for every start and every row. A call with explicit keyword arguments takes half the time of a
    call with a dictionary that a loop fills, and only needs the names of the fields. So the call is generated when the
    module is imported, as dataclasses generate their `__init__`. The text consists of names in our own source, never of
    data.
    """
    code = compile(f"lambda {parameters}: {expression}", "<conversion>", "eval")
    function: Callable[..., Any] = eval(code, {"__builtins__": {}, **names})  # noqa: S307  see above
    return function
