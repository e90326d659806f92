"""Values as Python source: literals, and the constructors of models whose classes can be imported.

Other values are written in their JSON form: a recorded value given as JSON is the same.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

import msgspec

from ...sdk.workflow.codec import codec_for, to_plain
from ...sdk.workflow.models import is_pydantic
from .names import Names
from .source import Node, call, data, mapping, number, sequence, text


def literal(value: Any, names: Names) -> Node:
    """Source of an equal value, or of its JSON."""
    if not is_exact(value, names):
        return plain_literal(to_plain(value))
    return _written(value, names) or "None"


def is_exact(value: Any, names: Names) -> bool:
    """Whether `literal` gives an equal value rather than its JSON."""
    return _written(value, names.copy()) is not None  # a copy: it must not add imports


def plain_literal(value: Any) -> Node:
    """Source of a JSON value."""
    match value:
        case str():
            return text(value)
        case float():
            return number(value)
        case list():
            return sequence("[", map(plain_literal, cast("Sequence[Any]", value)), "]")
        case dict():
            return mapping(
                (text(str(key)), plain_literal(each)) for key, each in cast("Mapping[Any, Any]", value).items()
            )
        case _:
            return repr(value)


def _written(value: Any, names: Names) -> Node | None:
    cls = cast("Any", type(value))
    write = _WRITERS.get(cls)
    if write is not None:
        return write(value, names)
    if isinstance(value, Enum):
        return _enum(value, names)
    fields = _fields(value)
    if fields is None:
        return None
    name = names.of(cls)
    nodes = {field: _written(each, names) for field, each in fields.items()}
    if name is None or not _makes(cls, fields, value):
        return None
    pairs = [(field, node) for field, node in nodes.items() if node is not None]
    return call(name, (), pairs) if len(pairs) == len(nodes) else None


# --- models -----------------------------------------------------------------------------------------------------------


def _fields(value: Any) -> dict[str, Any] | None:
    """The arguments of its constructor, by name; None if it is not a model."""
    cls = cast("Any", type(value))
    if is_pydantic(cls) and not dataclasses.is_dataclass(cls):
        fields: Iterable[str] = cls.model_fields
        return {name: getattr(value, name) for name in fields if name in value.model_fields_set}
    if dataclasses.is_dataclass(cls):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(cls) if field.init}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    attributes = getattr(cls, "__attrs_attrs__", None)
    if attributes is not None:
        return {each.alias: getattr(value, each.name) for each in attributes if each.init}
    if isinstance(value, tuple) and hasattr(cls, "_fields"):
        return dict(zip(cls._fields, cast("Sequence[Any]", value), strict=True))
    return None


def _makes(cls: Any, fields: Mapping[str, Any], value: Any) -> bool:
    """Whether the constructor gives an equal value. It may be user code and do anything."""
    if not all(name.isidentifier() for name in fields):
        return False
    try:
        made = cls(**fields)
        if made == value:  # a copy of a set may have another order and so other JSON
            return True
        codec = codec_for(cls)
        return codec.encode(made, what="value") == codec.encode(value, what="value")
    except Exception:  # noqa: BLE001  user code
        return False


# --- values -----------------------------------------------------------------------------------------------------------

_Writer = Callable[[Any, Names], Node | None]


def _all(values: Iterable[Any], names: Names) -> list[Node] | None:
    nodes = [_written(each, names) for each in values]
    return None if any(node is None for node in nodes) else cast("list[Node]", nodes)


def _bracketed(opening: str, closing: str) -> _Writer:
    def write(values: Any, names: Names) -> Node | None:
        nodes = _all(values, names)
        return None if nodes is None else sequence(opening, nodes, closing)

    return write


def _dict(value: dict[Any, Any], names: Names) -> Node | None:
    keys, values = _all(value.keys(), names), _all(value.values(), names)
    return None if keys is None or values is None else mapping(zip(keys, values, strict=True))


def _set(value: set[Any], names: Names) -> Node | None:
    nodes = _all(_sorted(value), names)
    if nodes is None:
        return None
    return sequence("{", nodes, "}") if nodes else "set()"


def _frozenset(value: frozenset[Any], names: Names) -> Node | None:
    inner = _set(set(value), names)
    return None if inner is None else call("frozenset", () if not value else (inner,))


def _sorted(values: Iterable[Any]) -> list[Any]:
    """In an order that does not depend on hashes."""
    return sorted(values, key=lambda each: (type(each).__name__, repr(each)))


def _iso(cls: type[Any]) -> _Writer:
    return lambda value, names: call(f"{names.name('datetime', cls.__name__)}.fromisoformat", [text(value.isoformat())])


def _timedelta(value: timedelta, names: Names) -> Node:
    parts = {"days": value.days, "seconds": value.seconds, "microseconds": value.microseconds}
    keywords = [(name, repr(number)) for name, number in parts.items() if number]
    return call(names.name("datetime", "timedelta"), (), keywords)


def _enum(value: Enum, names: Names) -> Node | None:
    name = names.of(type(value))
    member = getattr(value, "_name_", None)
    if name is None:
        return None
    if member is not None and getattr(type(value), str(member), None) is value:
        return f"{name}.{member}"
    inner = _written(value.value, names)
    return None if inner is None else call(name, [inner])


_WRITERS: dict[type, _Writer] = {
    type(None): lambda _value, _names: "None",
    bool: lambda value, _names: repr(value),
    int: lambda value, _names: repr(value),
    float: lambda value, _names: number(value),
    str: lambda value, _names: text(value),
    bytes: lambda value, _names: data(value),
    list: _bracketed("[", "]"),
    tuple: _bracketed("(", ")"),
    dict: _dict,
    set: _set,
    frozenset: _frozenset,
    datetime: _iso(datetime),
    date: _iso(date),
    time: _iso(time),
    timedelta: _timedelta,
    UUID: lambda value, names: call(names.name("uuid", "UUID"), [text(str(value))]),
    Decimal: lambda value, names: call(names.name("decimal", "Decimal"), [text(str(value))]),
}
