"""Generates an example input for a workflow from its annotation, as an argument of `kagzi start`."""

import shlex
import typing
from datetime import timedelta
from types import UnionType
from typing import Any

import msgspec

_SAMPLES: dict[object, object] = {
    str: "world",
    int: 1,
    float: 1.0,
    bool: True,
    bytes: "",
    type(None): None,
    timedelta: "PT1S",
}
_MAX_DEPTH = 3


def sample_argument(input_type: object) -> str:
    """Quoted for a shell: `world`, `'{"user_id": 1}'`. Empty if there is no example."""
    value = _sample(input_type, _MAX_DEPTH)
    if value is None:
        return ""
    if isinstance(value, str):
        return shlex.quote(value)
    return shlex.quote(msgspec.json.encode(value).decode())


def _sample(annotation: object, depth: int) -> Any:
    if annotation in _SAMPLES:
        return _SAMPLES[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, UnionType) or origin is typing.Annotated:
        return _sample(arguments[0], depth)
    if origin is typing.Literal:
        return arguments[0]
    if (origin or annotation) in (list, tuple, set, frozenset):
        inner = _sample(arguments[0], depth - 1) if arguments and depth else None
        return [] if inner is None else [inner]
    if (origin or annotation) is dict or depth == 0 or not isinstance(annotation, type):
        return {}
    return _fields(annotation, depth)


def _fields(model: type, depth: int) -> dict[str, Any]:
    """Every annotated public field of a dataclass, TypedDict, pydantic, attrs or msgspec model."""
    try:
        hints = typing.get_type_hints(model)
    except (NameError, TypeError):
        return {}
    return {
        name: _sample(hint, depth - 1)
        for name, hint in hints.items()
        if not name.startswith(("_", "model_")) and typing.get_origin(hint) is not typing.ClassVar
    }
