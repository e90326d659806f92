"""Whether the store does what it is asked, as those who use it all the time have seen."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

from ...core.outages import DATABASE, database_words
from ...core.providers import Clock
from ...core.times import Timestamp

logger = logging.getLogger("kagzi.engine")

SLOW_S = 0.9
"""From when on a question that the store has not answered is worth telling to somebody who waits for it."""


class Outages:
    """`reason` is None while all is well. `last_failure_at`: leases are not ended for a while after it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reason: str | None = None
        self.last_failure_at: Timestamp = 0
        self._words = ""
        self._waiting_since: dict[object, float] = {}  # the oldest first

    def seen(self, error: BaseException) -> None:
        self.last_failure_at = self._clock.now()
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

    @contextmanager
    def asking(self) -> Generator[None]:
        """The store is asked something."""
        token = object()
        self._waiting_since[token] = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            del self._waiting_since[token]

    def problem(self) -> str:
        """Why those who wait for the store wait, in words for clients; empty if nothing is known to be wrong."""
        if self.reason is not None:
            return self._words
        for since in self._waiting_since.values():
            silent_s = asyncio.get_running_loop().time() - since
            return f"{DATABASE} has not answered for {silent_s:.0f} s" if silent_s >= SLOW_S else ""
        return ""


def backoff_s(failures: int, *, first_s: float = 0.05, most_s: float = 1.0) -> float:
    """How long to pause after so many failures in a row (1, 2, ...)."""
    return min(first_s * 2.0 ** min(failures - 1, 20), most_s)
