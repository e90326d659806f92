"""The messages of a schema check: short, however large the value is."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, TypeGuard, cast

import msgspec

SHOWN = 60
_WORD_OF = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array"}


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def word_of(value: Any) -> str:
    return _WORD_OF.get(cast("type[Any]", value.__class__), "object")


def shown(value: Any) -> str:
    text = msgspec.json.encode(_beginning(value, [SHOWN])).decode()
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def _beginning(value: Any, left: list[int]) -> Any:
    """Only as much of the value as is shown. `left`: how many more values may be shown."""
    if isinstance(value, str):
        return value[:SHOWN]
    if is_list(value):
        return [_beginning(each, left) for each in value[:SHOWN] if _is_left(left)]
    if isinstance(value, dict):
        fields = islice(cast("dict[str, Any]", value).items(), SHOWN)
        return {name[:SHOWN]: _beginning(each, left) for name, each in fields if _is_left(left)}
    return value


def _is_left(left: list[int]) -> bool:
    left[0] -= 1
    return left[0] >= 0


def listed(words: Sequence[str]) -> str:
    unique = list(dict.fromkeys(words))
    return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} or {unique[-1]}"
