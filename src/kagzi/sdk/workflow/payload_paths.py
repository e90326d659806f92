"""Paths into values, for error messages: `$.items[3].price`. Only searched for once it is known that a value is
wrong."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

_DEEPEST = 100


def non_finite_path(plain: Any) -> str | None:
    """Where a plain value (dicts, lists, strings, numbers) holds NaN or infinity; None if it holds neither."""
    try:
        json.dumps(plain, allow_nan=False)  # implemented in C: much faster than checking each number here
    except ValueError:
        return _first_path(plain, _is_non_finite, "$", _DEEPEST) or "$"
    return None


def unencodable_path(value: Any, encode: Callable[[Any], bytes]) -> str:
    """The innermost part of a value that cannot be encoded."""

    def fails(part: Any) -> bool:
        try:
            encode(part)
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
            return True
        return False

    path = "$"
    for _ in range(_DEEPEST):
        broken = next(((name, part) for name, part in _parts(value) if fails(part)), None)
        if broken is None:
            return path
        path += broken[0]
        value = broken[1]
    return path


def _is_non_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _first_path(value: Any, wanted: Callable[[Any], bool], path: str, depth: int) -> str | None:
    if wanted(value):
        return path
    if depth == 0:
        return None
    for name, part in _parts(value):
        inner = _first_path(part, wanted, path + name, depth - 1)
        if inner is not None:
            return inner
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        mapping: dict[Any, Any] = cast("Any", value)
        for key, part in mapping.items():
            yield f".{key}", part
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, part in enumerate(cast("list[Any]", value)):
            yield f"[{index}]", part
    else:
        yield from _fields(value)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass, Struct, attrs class or pydantic model."""
    names: Any = getattr(value, "__struct_fields__", None) or getattr(value, "__dataclass_fields__", None)
    if names is None:
        attributes: Any = getattr(value, "__attrs_attrs__", None)
        names = [attribute.name for attribute in attributes] if attributes else getattr(value, "model_fields_set", ())
    for name in names:
        yield f".{name}", getattr(value, name, None)
