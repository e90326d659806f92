"""Log lines of steps: the last lines of each, for people. They are not part of the history and may be lost."""

from collections.abc import Sequence

import msgspec

from ..limits import STEP_LOG_BYTES, STEP_LOG_LINES
from ..records import Payload, RunKey
from ..times import Timestamp


class LogLine(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One record of a step's log: `text` in the clear, or `sealed` by a codec, with the metadata to decode it."""

    at: Timestamp
    attempt: int
    level: str
    text: str = ""
    sealed: bytes = b""
    metadata: dict[str, str] | None = None

    @property
    def size(self) -> int:
        return len(self.text) + len(self.sealed)

    @property
    def payload(self) -> Payload:
        """The line as a JSON string."""
        if self.metadata:
            return Payload(self.sealed, self.metadata)
        return Payload(msgspec.json.encode(self.text))


class StepLog(msgspec.Struct, frozen=True):
    """The stored lines of a step, oldest first. `dropped`: how many other lines it had."""

    step_id: str
    lines: tuple[LogLine, ...] = ()
    dropped: int = 0


class StepLogLines(msgspec.Struct, frozen=True):
    """New lines of a step, and how many its worker had to drop."""

    run: RunKey
    step_id: str
    lines: tuple[LogLine, ...]
    dropped: int = 0

    @property
    def size(self) -> int:
        return sum(line.size for line in self.lines)


def appended(before: StepLog | None, more: StepLogLines) -> StepLog:
    """The last lines of both, within the limits."""
    lines = (*before.lines, *more.lines) if before is not None else more.lines
    kept = _last(lines)
    dropped = more.dropped + (before.dropped if before is not None else 0)
    return StepLog(more.step_id, kept, dropped + len(lines) - len(kept))


def _last(lines: Sequence[LogLine]) -> tuple[LogLine, ...]:
    size, first = 0, len(lines)
    while first > max(0, len(lines) - STEP_LOG_LINES) and size + lines[first - 1].size <= STEP_LOG_BYTES:
        first -= 1
        size += lines[first].size
    return tuple(lines[first:])


_decode = msgspec.json.Decoder(tuple[LogLine, ...]).decode


def write_lines(lines: Sequence[LogLine]) -> str:
    return msgspec.json.encode(lines).decode()


def read_lines(text: str) -> tuple[LogLine, ...]:
    return _decode(text)
