"""Whether the store does what it is asked, as those who use it all the time have seen."""

import logging

from ..core.errors import Contended, StoreBroken, StoreLost
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
        what = _what(error)
        if self.reason is None:
            logger.warning("%s, trying on: %s", what, error)
        self.reason = f"{what}; the server's log says why"

    def clock_stepped(self) -> None:
        self.last_failure_at = min(self.last_failure_at, self._clock.now())

    def over(self) -> None:
        if self.reason is not None:
            logger.warning("the store works again")
            self.reason = None


def _what(error: BaseException) -> str:
    """In words that tell nobody where the store is."""
    if isinstance(error, Contended):
        return "the store is locked by somebody else"
    if isinstance(error, StoreLost):
        return "the store's files were taken away: start the server again"
    return "the store fails" if isinstance(error, StoreBroken) else "the store cannot be reached"


def backoff_s(failures: int, *, first_s: float = 0.05, most_s: float = 1.0) -> float:
    """How long to pause after so many failures in a row (1, 2, ...)."""
    return min(first_s * 2.0 ** min(failures - 1, 20), most_s)
