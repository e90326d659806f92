"""Gathers what the bodies of steps log, for the server to keep. Best effort: no step waits for it, and nothing is kept
beyond a bound."""

import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ...core.limits import (
    STEP_LOG_BYTES,
    STEP_LOG_LINE_BYTES,
    STEP_LOG_LINES,
    STEP_LOGS_MESSAGE_BYTES,
    STEP_LOGS_WAITING_BYTES,
)
from ...core.times import US_PER_S
from ...v1 import worker_pb2 as pb
from ..transport.payload_codec import MessageCodec
from ..workflow.current import StepInfo

SENT_EVERY_S = 1.0

_formatter = logging.Formatter()


class _Line(NamedTuple):
    at_us: int
    attempt: int
    level: str
    text: str


class _Waiting:
    """Lines of one step that were not sent yet."""

    __slots__ = ("dropped", "lines", "size")

    def __init__(self) -> None:
        self.lines: list[_Line] = []
        self.size = 0
        self.dropped = 0


class StepLogCollector:
    """What the steps of one worker logged and was not sent yet. `on_lines` is called, in the thread that logs, when
    there is something to send after there was nothing. `codec`: lines leave the process encoded."""

    def __init__(self) -> None:
        self.on_lines: Callable[[], None] = _nobody
        self.codec: MessageCodec | None = None
        self._guard = threading.Lock()
        self._waiting: dict[tuple[str, str], _Waiting] = {}
        self._bytes = 0

    def collect(self, where: StepInfo, record: logging.LogRecord) -> None:
        """In whichever thread. Raises nothing."""
        try:
            text = _text(record)
        except Exception:  # noqa: BLE001  cannot be formatted: the handlers report it
            return
        line = _Line(int(record.created * US_PER_S), where.attempt, record.levelname, text)
        if self._add((where.run_id, where.step_id), line):
            self.on_lines()

    def _add(self, key: tuple[str, str], line: _Line) -> bool:
        """Whether it is the first that waits."""
        size = len(line.text)
        with self._guard:
            first = not self._waiting
            waiting = self._waiting.get(key)
            if waiting is None:
                waiting = self._waiting[key] = _Waiting()
            if self._bytes + size > STEP_LOGS_WAITING_BYTES:
                waiting.dropped += 1
                return first
            waiting.lines.append(line)
            waiting.size += size
            self._bytes += size
            while len(waiting.lines) > STEP_LOG_LINES or waiting.size > STEP_LOG_BYTES:  # nobody would see them
                gone = len(waiting.lines.pop(0).text)
                waiting.size -= gone
                self._bytes -= gone
                waiting.dropped += 1
            return first

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def take(self) -> list[pb.StepLog]:
        """What is to be sent now: about as much as a message may have. The rest waits."""
        taken: list[tuple[tuple[str, str], _Waiting]] = []
        size = 0
        with self._guard:
            while self._waiting and size < STEP_LOGS_MESSAGE_BYTES:
                key = next(iter(self._waiting))
                waiting = self._waiting.pop(key)
                self._bytes -= waiting.size
                size += waiting.size
                taken.append((key, waiting))
        return [self._written(*key, waiting) for key, waiting in taken]

    def _written(self, run_id: str, step_id: str, waiting: _Waiting) -> pb.StepLog:
        log = pb.StepLog(run_id=run_id, step_id=step_id, dropped=waiting.dropped)
        for line in waiting.lines:
            message = pb.StepLogLine(at_us=line.at_us, attempt=line.attempt, level=line.level)
            try:
                message.text.data = msgspec.json.encode(line.text)
                if self.codec is not None:
                    self.codec.encode(message)
            except Exception:  # noqa: BLE001  a lone surrogate, or any error of the user's codec
                log.dropped += 1
            else:
                log.lines.append(message)
        return log


def _nobody() -> None:
    """Until the worker has a session nothing is sent."""


def _text(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.exc_info:
        text = f"{text}\n{_formatter.formatException(record.exc_info)}"
    return text if len(text) <= STEP_LOG_LINE_BYTES else text[: STEP_LOG_LINE_BYTES - 3] + "..."
