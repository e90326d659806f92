"""Collects the log lines of step bodies for the server to store. Best effort: no step waits for it, and its memory is
bounded."""

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
    """Lines of one step that have not been sent yet."""

    __slots__ = ("dropped", "lines", "size")

    def __init__(self) -> None:
        self.lines: list[_Line] = []
        self.size = 0
        self.dropped = 0


class StepLogCollector:
    """The unsent log lines of the steps of one worker. `on_lines` is called, in the thread that logs, when the first
    line to send arrives. `codec`: lines leave the process encoded."""

    def __init__(self) -> None:
        self.on_lines: Callable[[], None] = _nobody
        self.codec: MessageCodec | None = None
        self._guard = threading.Lock()
        self._waiting: dict[tuple[str, str], _Waiting] = {}
        self._bytes = 0

    def collect(self, where: StepInfo, record: logging.LogRecord) -> None:
        """May be called in any thread. Never raises."""
        try:
            text = _text(record)
        except Exception:  # noqa: BLE001  cannot be formatted: the handlers report it
            return
        line = _Line(int(record.created * US_PER_S), where.attempt, record.levelname, text)
        if self._add((where.run_id, where.step_id), line):
            self.on_lines()

    def _add(self, key: tuple[str, str], line: _Line) -> bool:
        """Returns whether it is the first waiting line."""
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
            while len(waiting.lines) > STEP_LOG_LINES or waiting.size > STEP_LOG_BYTES:  # more than the server keeps
                gone = len(waiting.lines.pop(0).text)
                waiting.size -= gone
                self._bytes -= gone
                waiting.dropped += 1
            return first

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def take(self) -> list[pb.StepLog]:
        """The lines to send now, about as many as fit into a message. The rest wait."""
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
    """The default of `on_lines`, until the worker has a session."""


def _text(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.exc_info:
        text = f"{text}\n{_formatter.formatException(record.exc_info)}"
    return text if len(text) <= STEP_LOG_LINE_BYTES else text[: STEP_LOG_LINE_BYTES - 3] + "..."
