"""Text that no store can keep: PostgreSQL has no NUL in text, and lone surrogates cannot be encoded."""

from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from ..error_details import ErrorDetail
from ..records import Payload, RunKey
from ..retry.policy import RetryPolicy
from ..run.commands import Assignment, Command, SendSignal, StartRun

_encode = msgspec.json.Encoder().encode


def is_storable(text: str) -> bool:
    if text.isascii():
        return "\0" not in text
    return "\0" not in text and _is_encodable(text)


def unstorable_field(command: Command) -> str | None:
    """The name of the first field that cannot be stored; None if all can."""
    return next(_unstorable_fields(command), None)


def _unstorable_fields(value: msgspec.Struct, within: str = "") -> Iterator[str]:
    for name in value.__struct_fields__:
        field: object = getattr(value, name)
        if isinstance(field, (RunKey, Assignment, StartRun)):
            yield from _unstorable_fields(field)
        elif isinstance(field, SendSignal):
            yield from _unstorable_fields(field, f"{name}.")
        elif not _fits(field):
            yield f"{within}{name}.metadata" if isinstance(field, Payload) else within + name


def _fits(field: object) -> bool:
    if isinstance(field, str):
        return is_storable(field)
    if isinstance(field, Payload):
        return _is_encodable(field.metadata)
    if isinstance(field, (ErrorDetail, RetryPolicy)):  # stored as JSON, which escapes a NUL
        return _is_encodable(field)
    if isinstance(field, Mapping):
        labels = cast("Mapping[str, str]", field)
        return all(map(is_storable, labels)) and all(map(is_storable, labels.values()))
    return not isinstance(field, tuple) or all(map(is_storable, cast("tuple[str, ...]", field)))


def _is_encodable(value: object) -> bool:
    try:
        _encode(value)
    except UnicodeEncodeError:
        return False
    return True
