"""Whether the store does what it is asked, as those who use it all the time have seen."""

import asyncio
import logging

from ...core.outages import DATABASE, database_words
from ...core.providers import Clock
from ...core.times import Timestamp
from ..measurements.measurements import Measurements

logger = logging.getLogger("kagzi.engine")

SLOW_S = 0.9
"""From when on a question that the store has not answered is worth telling to somebody who waits for it."""


class Outages:
    """`reason` is None while all is well. `last_failure_at`: leases are not ended for a while after it. `measurements`:
    where failures are counted, and whatever else is done with the store."""

    def __init__(self, clock: Clock, measurements: Measurements | None = None) -> None:
        self._clock = clock
        self.measurements = measurements or Measurements()
        self.reason: str | None = None
        self.last_failure_at: Timestamp = 0
        self._words = ""
        self._waiting_since: dict[object, float] = {}  # the oldest first

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
        """The store is asked something, within a block."""
        return _Asking(self._waiting_since)

    def problem(self) -> str:
        """Why those who wait for the store wait, in words for clients; empty if nothing is known to be wrong."""
        if self.reason is not None:
            return self._words
        for since in self._waiting_since.values():
            silent_s = asyncio.get_running_loop().time() - since
            return f"{DATABASE} has not answered for {silent_s:.0f} s" if silent_s >= SLOW_S else ""
        return ""


class _Asking:
    """Plain, since every commit makes one."""

    __slots__ = ("_waiting_since",)

    def __init__(self, waiting_since: dict[object, float]) -> None:
        self._waiting_since = waiting_since

    def __enter__(self) -> None:
        self._waiting_since[self] = asyncio.get_running_loop().time()

    def __exit__(self, *_: object) -> None:
        del self._waiting_since[self]


def backoff_s(failures: int, *, first_s: float = 0.05, most_s: float = 1.0) -> float:
    """How long to pause after so many failures in a row (1, 2, ...)."""
    return min(first_s * 2.0 ** min(failures - 1, 20), most_s)
