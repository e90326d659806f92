"""Sends the collected log lines of steps: once a second, while there are any."""

import asyncio
import contextlib
from collections.abc import Callable

from .collector import SENT_EVERY_S, StepLogCollector
from .records import unwatch_records, watch_records


class StepLogSender:
    """Belongs to the event loop on which it is started. `report`: sends waiting lines with the next message."""

    def __init__(self, report: Callable[[], None], collector: StepLogCollector) -> None:
        self._report = report
        self._collector = collector
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_watching = self._stopped = False

    def start(self) -> None:
        self._collector.on_lines = self._soon
        self._is_watching = True
        watch_records()

    def flush(self) -> None:
        """The worker stops: send waiting lines with its last message."""
        if not self._collector.is_empty:
            self._report()

    def stop(self) -> None:
        """Also allowed if it was not started."""
        self._stopped = True
        if self._is_watching:
            self._is_watching = False
            unwatch_records()
        if self._timer is not None:
            self._timer.cancel()

    def _soon(self) -> None:
        """Called in the thread that logged a line."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._later)

    def _later(self) -> None:
        if self._timer is None and not self._stopped:
            self._timer = self._loop.call_later(SENT_EVERY_S, self._send)

    def _send(self) -> None:
        self._timer = None
        if not self._collector.is_empty:
            self._report()
            self._later()  # for lines that do not fit into the message or arrive before it is sent
