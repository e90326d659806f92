"""Decodes requests into structs. Refuses invalid fields by name before anything is executed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect

from ...core.records import DEFAULT_NAMESPACE
from .problems import Unreadable

NAMESPACE = "namespace"
_BODY = "body"
_MOST_PARAMETERS = 1_000
_MANY = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType, inspect.TupleType)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<place>[^`]*)`)?$", re.DOTALL)
_ANYTHING = inspect.AnyType()
_NAMED = re.compile(r"(?:unknown|required) field `([^`]*)`")


class Parameter(NamedTuple):
    """A field of a query as a parameter. `scalar`: the type its texts are parsed to before conversion."""

    name: str
    kind: Any
    many: bool
    scalar: type
    required: bool
    plain: inspect.Type


@cache
def parameters(kind: type[msgspec.Struct]) -> Mapping[str, Parameter]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.encode_name: Parameter(
            name=field.name,
            kind=hints[field.name],
            many=isinstance(_plain(field.type), _MANY),
            scalar=_scalar(_plain(field.type)),
            required=field.required,
            plain=_item(_plain(field.type)),
        )
        for field in info.fields
    }


def _plain(kind: inspect.Type) -> inspect.Type:
    """Strips descriptions and the option to be missing from a type."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        rest = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        return _plain(rest[0]) if len(rest) == 1 else kind
    return kind


def _item(kind: inspect.Type) -> inspect.Type:
    """The item type of a list; any other type unchanged."""
    if isinstance(kind, (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)):
        return _plain(kind.item_type)
    return kind


def _scalar(kind: inspect.Type) -> type:
    kind = _item(kind)
    scalars = ((inspect.BoolType, bool), (inspect.IntType, int), (inspect.FloatType, float))
    return next((scalar for known, scalar in scalars if isinstance(kind, known)), str)


def read_query(raw: bytes, kind: type[msgspec.Struct], *, namespaced: bool = True) -> tuple[str, Any]:
    """The namespace, and the rest of the query as a `kind`. Raises Unreadable."""
    texts_of = _pairs(raw)
    namespaces = texts_of.pop(NAMESPACE, []) if namespaced else []
    known = parameters(kind)
    for name, texts in texts_of.items():
        if name not in known:
            names = ", ".join([*([NAMESPACE] if namespaced else []), *known]) or "none"
            raise Unreadable(f"there is no parameter {name[:64]!r}. Known here: {names}.", field=name[:64])
        if len(texts) > 1 and not known[name].many:
            raise _repeated(name)
    if len(namespaces) > 1:
        raise _repeated(NAMESPACE)
    for name, parameter in known.items():
        if parameter.required and name not in texts_of:
            raise Unreadable(f"the parameter {name!r} is missing. Give it.", field=name)
    values = {known[name].name: _value(name, known[name], texts) for name, texts in texts_of.items()}
    return (namespaces[0] if namespaces else "") or DEFAULT_NAMESPACE, kind(**values)


def namespace_in(raw: bytes) -> str:
    """The namespace of a query before it is decoded: a caller without permission learns nothing about its errors."""
    try:
        names = _pairs(raw).get(NAMESPACE, [])
    except Unreadable:
        names = []
    return (names[0] if names else "") or DEFAULT_NAMESPACE


def _repeated(name: str) -> Unreadable:
    return Unreadable(f"the parameter {name!r} is given more than once. Give it once.", field=name)


def _pairs(raw: bytes) -> dict[str, list[str]]:
    try:
        parsed = parse_qsl(
            raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS, separator="&"
        )
    except ValueError as error:
        raise Unreadable(
            f"the query cannot be read: {error}. Encode it as UTF-8, percent-encoded.", field="query"
        ) from None
    texts: dict[str, list[str]] = {}
    for name, text in parsed:
        texts.setdefault(name, []).append(text)
    return texts


def _value(name: str, parameter: Parameter, texts: Sequence[str]) -> Any:
    plain = [_read_scalar(text, parameter.scalar) for text in texts]
    try:
        return msgspec.convert(plain if parameter.many else plain[0], parameter.kind)
    except msgspec.ValidationError as error:
        reason = str(error).partition(" - at ")[0]
        known = _known_here(reason, parameter.plain)
        raise Unreadable(f"{name}={texts[0][:256]!r} cannot be read: {reason}.{known}", field=name) from None


def _read_scalar(text: str, scalar: type) -> Any:
    """Leaves a text that is not a scalar unchanged: the conversion refuses it."""
    if scalar is bool:
        return _BOOLEANS.get(text, text)
    if scalar is int and _INTEGER.fullmatch(text):
        return int(text)
    if scalar is float and _NUMBER.fullmatch(text):
        return float(text)
    return text


# --- bodies -----------------------------------------------------------------------------------------------------------


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def read_body(data: bytes, kind: Any) -> Any:
    """A missing body is an empty object. Raises Unreadable."""
    try:
        data.decode()  # the decoder does not check raw values
        return _decoder(kind).decode(data or b"{}")
    except msgspec.ValidationError as error:
        raise _unfit(str(error), kind) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"the body is not JSON that can be read: {error}. Send UTF-8 JSON.", field=_BODY) from None


def _unfit(message: str, kind: Any) -> Unreadable:
    match = _PLACE.match(message)
    assert match is not None
    place, named = match["place"] or "", _NAMED.search(message)
    field = ".".join(part for part in (place, named[1] if named else "") if part)
    known = _known_here(message, _at(inspect.type_info(kind), place))
    return Unreadable(f"the body cannot be read: {message}.{known}", field=field or _BODY)


def _at(kind: inspect.Type, place: str) -> inspect.Type:
    """The type at a path of a body: `starts[0].retry`."""
    for part in place.split(".") if place else ():
        name, bracket, _ = part.partition("[")
        kind = _plain(kind)
        fields = kind.fields if isinstance(kind, inspect.StructType) else ()
        kind = next((field.type for field in fields if field.encode_name == name), _ANYTHING)
        if bracket:
            kind = getattr(_plain(kind), "item_type", _ANYTHING)
    return _plain(kind)


def _known_here(message: str, kind: inspect.Type) -> str:
    """The fields or values that are allowed there, for the refusal of one that is not."""
    choices: Iterable[object] = ()
    if isinstance(kind, inspect.StructType) and "unknown field" in message:
        choices = [field.encode_name for field in kind.fields] or ["none"]
    elif isinstance(kind, inspect.EnumType):
        choices = [member.value for member in kind.cls]
    elif isinstance(kind, inspect.LiteralType):
        choices = kind.values
    return f" Known here: {', '.join(map(str, choices))}." if choices else ""
