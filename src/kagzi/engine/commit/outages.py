"""Tracks whether the store is available, as observed by its frequent users."""

import asyncio
import logging

from ...core.outages import DATABASE, database_words
from ...core.providers import Clock
from ...core.times import Timestamp
from ..measurements.measurements import Measurements

logger = logging.getLogger("kagzi.engine")

SLOW_S = 0.9
"""How long the store may be silent before waiting callers are told."""


class Outages:
    """`reason` is None while the store works. `last_failure_at`: leases are not ended for a while after it.
    `measurements` counts failures and other store events."""

    def __init__(self, clock: Clock, measurements: Measurements | None = None) -> None:
        self._clock = clock
        self.measurements = measurements or Measurements()
        self.reason: str | None = None
        self.last_failure_at: Timestamp = 0
        self._words = ""
        self._waiting_since: dict[object, float] = {}  # oldest first

    def seen(self, error: BaseException) -> None:
        self.last_failure_at = self._clock.now()
        self.measurements.store_failed(error)
        self._words = database_words(error)
        if self.reason is None:
            logger.warning("%s; trying again: %s", self._words, error)
        self.reason = f"{self._words}; the server's log says why"

    def clock_stepped(self) -> None:
        self.last_failure_at = min(self.last_failure_at, self._clock.now())

    def over(self) -> None:
        if self.reason is not None:
            logger.warning("the store is available again")
            self.reason = None

    def asking(self) -> "_Asking":
        """A context manager around a request to the store."""
        return _Asking(self._waiting_since)

    def problem(self) -> str:
        """Why callers wait for the store, in words for clients; empty if no problem is known."""
        if self.reason is not None:
            return self._words
        for since in self._waiting_since.values():
            silent_s = asyncio.get_running_loop().time() - since
            return f"{DATABASE} has not answered for {silent_s:.0f} s" if silent_s >= SLOW_S else ""
        return ""


class _Asking:
    """A minimal class, since every commit creates one."""

    __slots__ = ("_waiting_since",)

    def __init__(self, waiting_since: dict[object, float]) -> None:
        self._waiting_since = waiting_since

    def __enter__(self) -> None:
        self._waiting_since[self] = asyncio.get_running_loop().time()

    def __exit__(self, *_: object) -> None:
        del self._waiting_since[self]


def backoff_s(failures: int, *, first_s: float = 0.05, most_s: float = 1.0) -> float:
    """How long to pause after this many consecutive failures (1, 2, ...)."""
    return min(first_s * 2.0 ** min(failures - 1, 20), most_s)
