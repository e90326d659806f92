"""Logs runs that ended with unread signals, at a limited rate: one workflow may do so with every run."""

import logging
from collections.abc import Sequence

from ...core.limits import UNREAD_LOGGED
from ...core.providers import Clock
from ...core.run.handing_on import UnreadEnd
from ...core.text.plurals import counted
from ...core.times import US_PER_S, Timestamp

logger = logging.getLogger("kagzi.engine")

_WINDOW_US = 60 * US_PER_S


class UnreadLog:
    """Names the first runs of each minute, and counts the others. What was handed on is not worth a line."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: Timestamp = 0
        self._lines = 0
        self._unlogged = 0

    def write(self, endings: Sequence[UnreadEnd]) -> None:
        for end in endings:
            if end.unread:
                self._write(end)

    def _write(self, end: UnreadEnd) -> None:
        self._turn_window()
        if self._lines >= UNREAD_LOGGED:
            self._unlogged += 1
            return
        self._lines += 1
        run = end.run
        logger.warning(
            "%s %r, run %s of namespace %s, ended with %s. See: kagzi explain %s",
            end.workflow_type,
            end.workflow_id,
            run.run_id,
            run.namespace,
            counted(end.unread, "unread signal"),
            run.run_id,
            extra={
                "namespace": run.namespace,
                "run_id": run.run_id,
                "workflow_id": end.workflow_id,
                "workflow_type": end.workflow_type,
                "unread_signals": end.unread,
            },
        )

    def _turn_window(self) -> None:
        now = self._clock.now()
        if 0 <= now - self._began < _WINDOW_US:
            return
        if self._unlogged:
            logger.warning("%d more runs ended with unread signals", self._unlogged)
        self._began, self._lines, self._unlogged = now, 0, 0
