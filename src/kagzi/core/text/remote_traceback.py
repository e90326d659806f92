"""The traceback of an error that happened in another process, as a note of the local exception. See docs/adr/0025."""

from collections.abc import Iterator
from typing import Protocol, Self

from .printable import MARGIN, with_margin

NOTE_CHARS = 16_384
"""A longer note keeps its beginning and its end."""


class RecordedError(Protocol):
    """The fields of an ErrorDetail that are shown here."""

    @property
    def text(self) -> str: ...
    @property
    def traceback(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def subject_id(self) -> str: ...
    @property
    def cause(self) -> Self | None: ...


def remote_traceback(error: RecordedError, where: str = "") -> str:
    """The recorded tracebacks of an error and its causes, the first cause first, as Python prints them. Empty if there
    are none. `where`: the step it happened in, if the error itself does not say."""
    chain = list(_chain(error))
    if not any(each.traceback for each in chain):
        return ""
    parts = [_part(each, where if each is error else "") for each in reversed(chain)]
    return _shortened("Recorded by the worker" + "\nwhich led to".join(parts))


def _chain(error: RecordedError) -> Iterator[RecordedError]:
    each: RecordedError | None = error
    while each is not None:
        yield each
        each = each.cause


def _part(error: RecordedError, where: str) -> str:
    step = error.subject_id if error.subject == "step" and error.subject_id else where
    lines = [error.traceback.rstrip("\n"), error.text]
    return (f" in step {step!r}:\n" if step else ":\n") + with_margin("\n".join(filter(None, lines)))


def _shortened(text: str) -> str:
    if len(text) <= NOTE_CHARS:
        return text
    half = NOTE_CHARS // 2
    beginning, end = text[:half].rpartition("\n")[0], text[-half:].partition("\n")[2]
    return f"{beginning}\n{MARGIN}... cut\n{end}"
