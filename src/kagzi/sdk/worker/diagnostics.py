"""Diagnostics of a worker that cannot work properly: for its log, and for its events on the server."""

import logging
import threading
import time
from collections.abc import Callable

from ...core.workers import Diagnostic
from ...v1 import worker_pb2 as pb
from ..step_logs.collector import StepLogCollector

logger = logging.getLogger("kagzi.worker")

REPEAT_S = 60.0
_KEPT = 16


class Diagnostics:
    """Collects reports from any thread. `on_report` is called in that thread. Repeated reports of a kind are
    suppressed for a while."""

    def __init__(self, *, repeat_s: float = REPEAT_S) -> None:
        self._repeat_s = repeat_s
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self._waiting: list[Diagnostic] = []
        self.on_report: Callable[[], None] = _nobody
        self.step_logs: StepLogCollector | None = None

    def report(self, kind: str, detail: str) -> bool:
        """Returns False if the same kind was reported a moment ago."""
        now = time.monotonic()
        with self._lock:
            last = self._last.get(kind)
            if last is not None and now - last < self._repeat_s:
                return False
            self._last[kind] = now
            self._waiting.append(Diagnostic(kind, detail))
            del self._waiting[:-_KEPT]
        logger.warning("%s", detail)
        self.on_report()
        return True

    def take(self) -> list[Diagnostic]:
        """Take the reports that have not been sent yet."""
        if not self._waiting:
            return []
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken

    def take_logs(self) -> "list[pb.StepLog]":
        """Take the step log lines that have not been sent yet, as many as fit into a message."""
        return [] if self.step_logs is None else self.step_logs.take()

    def put_back(self, unsent: list[Diagnostic]) -> None:
        """Keep reports that could not be sent."""
        with self._lock:
            self._waiting[:0] = unsent


def _nobody() -> None:
    """The default of `on_report`, until the worker has a session."""
