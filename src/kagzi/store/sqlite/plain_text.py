"""Text that both stores can keep. PostgreSQL cannot store NUL, neither can store lone surrogates: refused alike."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from ...core.commands import Assignment, Command, SignalGiven, StartRun
from ...core.errors import InvalidArgument
from ...core.records import Payload, RunKey
from ...core.refusals import unstorable


def is_plain(text: str) -> bool:
    """Whether `text` can be stored."""
    if text.isascii():
        return "\0" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def require_plain(**texts: str) -> None:
    """Raises InvalidArgument for the first of these that cannot be stored."""
    for field, text in texts.items():
        if not is_plain(text):
            raise InvalidArgument(unstorable(field).error.message, field=field)


def unfit_field(command: Command) -> str | None:
    """The name of the first field whose text cannot be stored; None if all can. Errors are JSON, where anything fits."""
    return next((field for field, text in _texts(command) if not is_plain(text)), None)


def _texts(value: msgspec.Struct, within: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a command with the name of its field; what it is made of is looked into."""
    for name in value.__struct_fields__:
        field: Any = getattr(value, name)
        if isinstance(field, str):
            yield within + name, field
        elif isinstance(field, (RunKey, Assignment, StartRun)):
            yield from _texts(field)
        elif isinstance(field, (SignalGiven, Payload)):
            yield from _texts(field, f"{within}{name}.")
        elif isinstance(field, Mapping):
            for pair in cast("Mapping[str, str]", field).items():
                yield from ((within + name, text) for text in pair)
        elif isinstance(field, tuple):
            yield from ((within + name, text) for text in cast("tuple[str, ...]", field))
