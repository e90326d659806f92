"""Whether the store can be reached, as those who use it all the time have seen."""

import logging

from ..core.seams import Clock
from ..core.times import Timestamp

logger = logging.getLogger("kagzi.engine")


class Outages:
    """`reason` is None while all is well. `last_failure_at`: leases are not ended for a while after it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reason: str | None = None
        self.last_failure_at: Timestamp = 0

    def seen(self, error: BaseException) -> None:
        self.last_failure_at = self._clock.now()
        if self.reason is None:
            logger.warning("the store cannot be reached, trying on: %s", error)
        self.reason = "the store cannot be reached; the server's log says why"

    def clock_stepped(self) -> None:
        self.last_failure_at = min(self.last_failure_at, self._clock.now())

    def over(self) -> None:
        if self.reason is not None:
            logger.warning("the store can be reached again")
            self.reason = None


def backoff_s(failures: int, *, first_s: float = 0.05, most_s: float = 1.0) -> float:
    """How long to pause after so many failures in a row (1, 2, ...)."""
    return min(first_s * 2.0 ** min(failures - 1, 20), most_s)
