"""The arguments of a step, recorded for display with failed attempts, or always. They are never decoded again."""

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from ....core.errors import InvalidArgument
from ....core.limits import STEP_INPUT_BYTES
from ....core.records import Payload
from ...workflow.codec import ANY

RecordInputs: TypeAlias = Literal["failed", "always", "never"]
_RECORD_INPUTS: tuple[RecordInputs, ...] = ("failed", "always", "never")

_SHOWN = 512  # characters of a value that has no JSON form or is too large


def checked_record_inputs(value: object) -> RecordInputs:
    """Raises InvalidArgument."""
    for known in _RECORD_INPUTS:
        if value == known:
            return known
    raise InvalidArgument(f'record_inputs={value!r} must be "failed", "always" or "never".', field="record_inputs")


def write_arguments(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Payload | None:
    """The arguments by parameter name. A value without a JSON form, or a value that is too large, is truncated to text.
    None: there are none, or they cannot be encoded. Never raises: the failure of the step matters more."""
    try:
        arguments = _by_name(fn, args, kwargs)
        if not arguments:
            return None
        share = STEP_INPUT_BYTES // len(arguments)
        encoded = {str(name): _encoded(value, share) for name, value in arguments.items()}
        data = msgspec.json.encode(encoded)
        return None if len(data) > STEP_INPUT_BYTES else Payload(data)  # too many arguments, or very long names
    except Exception:  # noqa: BLE001  code of user types may raise anything
        return None


def _by_name(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        bound = inspect.signature(fn).bind_partial(*args, **kwargs)
    except (TypeError, ValueError):  # a builtin, or wrong arguments, which may be why the step failed
        return {**{str(place): value for place, value in enumerate(args)}, **kwargs}
    return dict(bound.arguments)


def _encoded(value: Any, most_bytes: int) -> msgspec.Raw:
    try:
        data = ANY.encode(value, what="argument")
    except Exception:  # noqa: BLE001  as above
        return msgspec.Raw(msgspec.json.encode({"$repr": repr(value)[:_SHOWN]}))
    if len(data) <= most_bytes:
        return msgspec.Raw(data)
    start = data[: min(_SHOWN, most_bytes // 4)].decode(errors="ignore")
    return msgspec.Raw(msgspec.json.encode({"$bytes": len(data), "$start": start}))
