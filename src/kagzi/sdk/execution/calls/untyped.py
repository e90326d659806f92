"""Results of functions of which nobody said what they return: they must be values that JSON does not change."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from ....core.errors import InvalidArgument
from ...workflow.codec import type_name

_DEEPEST = 100
_PLAIN = (str, int, float, type(None), msgspec.Raw)


def refuse_changed(value: Any, decoded: Any, *, step: str, step_id: str) -> None:
    """`decoded`: the value as a workflow gets it. Raises InvalidArgument if it has another type, so that code which
    works with the value itself does not fail later, or only on replay. Tuples may become lists."""
    try:
        if decoded == value:
            return
    except Exception:  # noqa: BLE001  of a user's class
        pass
    changed = next(_changed(value, "$", _DEEPEST), None)
    if changed is None:
        return
    path, part = changed
    name = type_name(type(part))
    is_whole = path == "$"
    holds = f"is a {name}" if is_whole else f"contains a {name} (at {path})"
    raise InvalidArgument(
        f"output of step {step_id!r} {holds}, and its function does not say what it returns: the workflow would get "
        f"plain JSON. Annotate the function{f' (-> {name})' if is_whole else ''}, or name the type: "
        f"ctx.step({step!r}, returns={name if is_whole else '...'}).",
        field=path,
    )


def _changed(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """The parts that are neither plain nor containers of JSON."""
    if isinstance(value, _PLAIN) or depth == 0:
        return
    if isinstance(value, dict):
        for key, part in cast("Any", value).items():
            yield from _changed(part, f"{path}.{key}", depth - 1)
    elif isinstance(value, list) or type(value) is tuple:
        for index, part in enumerate(cast("list[Any]", value)):
            yield from _changed(part, f"{path}[{index}]", depth - 1)
    else:
        yield path, value
