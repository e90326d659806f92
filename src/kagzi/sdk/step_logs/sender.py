"""When the gathered log lines of steps are sent: once a second, while there are any."""

import asyncio
import contextlib
from collections.abc import Callable

from .collector import SENT_EVERY_S, StepLogCollector
from .records import unwatch_records, watch_records


class StepLogSender:
    """Belongs to the event loop it is started on. `report`: what waits is to leave with the next message."""

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
        """The worker leaves: with its last message."""
        if not self._collector.is_empty:
            self._report()

    def stop(self) -> None:
        """Also of one that was not started."""
        self._stopped = True
        if self._is_watching:
            self._is_watching = False
            unwatch_records()
        if self._timer is not None:
            self._timer.cancel()

    def _soon(self) -> None:
        """In whichever thread a line was logged."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is there any more
            self._loop.call_soon_threadsafe(self._later)

    def _later(self) -> None:
        if self._timer is None and not self._stopped:
            self._timer = self._loop.call_later(SENT_EVERY_S, self._send)

    def _send(self) -> None:
        self._timer = None
        if not self._collector.is_empty:
            self._report()
            self._later()  # what does not fit into one message, and what comes before it leaves
