"""Whether a lease may have ended, by this worker's own clock.

A worker that was stopped (SIGSTOP, a suspended machine, a loop that was blocked for too long) comes back to results and
tasks that were on their way to it. Its runs may be in other hands by now. So nothing begins in a run whose lease was
not renewed in time until the server has said that the run is still this worker's.
"""

import math
import time
from collections.abc import Callable


class LeaseClock:
    """Of one session. Times are monotonic seconds; `renewed` may be called from another thread."""

    __slots__ = ("_gap_at", "_renewed_at", "lease_s", "now")

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.lease_s = math.inf
        self._renewed_at = now()
        self._gap_at = -math.inf

    def renewed(self, at: float) -> None:
        """A heartbeat for all runs that are held left at this time. One that left too late renews nothing for sure."""
        if at - self._renewed_at > self.lease_s:
            self._gap_at = at
        self._renewed_at = max(at, self._renewed_at)

    def is_over(self, accepted_at: float, requested_at: float) -> bool:
        """Whether a run's lease may have ended: it was accepted then, and the server confirmed it by what was asked
        then.

        What is accepted soon after a gap may have been sent before it.
        """
        renewed_at = self._renewed_at
        if self._gap_at == -math.inf and self.now() - renewed_at <= self.lease_s:
            return False  # there never was a gap: asked before each step
        if max(requested_at, accepted_at - self.lease_s / 2) < self._gap_at:
            renewed_at = requested_at
        return self.now() - max(renewed_at, requested_at) > self.lease_s
