"""Whether a lease may have ended, by this worker's own clock.

A worker that was suspended (SIGSTOP, a suspended machine, an event loop blocked for too long) resumes with results and
tasks that were in flight. Meanwhile its runs may have been leased to other workers. So nothing begins in a run whose
lease was not renewed in time until the server has confirmed that this worker still holds the run.
"""

import math
import time
from collections.abc import Callable


class LeaseClock:
    """The leases of one session. Times are monotonic seconds; `renewed` may be called from another thread."""

    __slots__ = ("_gap_at", "_renewed_at", "lease_s", "now")

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.lease_s = math.inf
        self._renewed_at = now()
        self._gap_at = -math.inf

    def renewed(self, at: float) -> None:
        """A heartbeat for all leased runs was sent at this time. One that was sent too late may renew nothing."""
        if at - self._renewed_at > self.lease_s:
            self._gap_at = at
        self._renewed_at = max(at, self._renewed_at)

    def is_over(self, accepted_at: float, requested_at: float) -> bool:
        """Whether a run's lease may have ended, given when it was accepted and when the request was sent with which the
        server last confirmed it.

        A task accepted soon after a gap may have been sent before it.
        """
        renewed_at = self._renewed_at
        if self._gap_at == -math.inf and self.now() - renewed_at <= self.lease_s:
            return False  # there never was a gap. Checked first: called before each step
        if max(requested_at, accepted_at - self.lease_s / 2) < self._gap_at:
            renewed_at = requested_at
        return self.now() - max(renewed_at, requested_at) > self.lease_s
