"""Logs the diagnostics of workers at a limited rate: a worker must not fill the server's disk or crowd out the
diagnostics of others."""

import logging
from collections.abc import Sequence

from ...core import limits
from ...core.providers import Clock
from ...core.times import US_PER_S, Timestamp
from ...core.workers import Diagnostic

logger = logging.getLogger("kagzi.engine")

_WINDOW_US = 60 * US_PER_S


class DiagnosticsLog:
    """Limits the lines per minute for each worker, and for all together. Lines that are not logged are still among the
    worker's events."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: Timestamp = 0
        self._lines: dict[tuple[str, str], int] = {}  # by worker; bounded by the total number of lines
        self._total = 0
        self._unlogged = 0

    def write(self, namespace: str, worker_id: str, diagnostics: Sequence[Diagnostic]) -> None:
        if not diagnostics:
            return
        self._turn_window()
        worker = (namespace, worker_id)
        for diagnostic in diagnostics:
            lines = self._lines.get(worker, 0)
            if lines >= limits.DIAGNOSTICS_LOGGED or self._total >= limits.DIAGNOSTICS_LOGGED_TOTAL:
                self._leave_out(worker_id)
                continue
            self._lines[worker] = lines + 1
            self._total += 1
            logger.warning(
                "worker %s of namespace %s reports a problem: %s: %s",
                worker_id,
                namespace,
                diagnostic.kind,
                diagnostic.detail,
            )

    def _leave_out(self, worker_id: str) -> None:
        if not self._unlogged:
            logger.warning(
                "worker %s reports more diagnostics than are logged (%d a minute per worker, %d in total). "
                "See: kagzi workers events",
                worker_id,
                limits.DIAGNOSTICS_LOGGED,
                limits.DIAGNOSTICS_LOGGED_TOTAL,
            )
        self._unlogged += 1

    def _turn_window(self) -> None:
        now = self._clock.now()
        if 0 <= now - self._began < _WINDOW_US:
            return
        if self._unlogged:
            logger.warning("%d diagnostics of workers were not logged", self._unlogged)
        self._began, self._total, self._unlogged = now, 0, 0
        self._lines.clear()
