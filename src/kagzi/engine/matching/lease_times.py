"""How long leases last. A lease is always set to now + ttl, never extended from its old end."""

import asyncio
import logging
from collections.abc import Iterable

from ...core.limits import Settings
from ...core.providers import Clock
from ...core.records import RunLease
from ...core.times import US_PER_MS, Timestamp
from ...store.protocol import LeaseTerms
from ..commit.outages import Outages

logger = logging.getLogger("kagzi.engine")

_MOST_RELEASES = 100_000


class LeaseTimes:
    def __init__(self, *, clock: Clock, settings: Settings, outages: Outages) -> None:
        self._clock = clock
        self._outages = outages
        self._lease_us = settings.lease_ms * US_PER_MS
        self._trace_max_age_us = settings.trace_max_age_ms * US_PER_MS
        self._started_at: Timestamp = clock.now()
        self._granted_until: Timestamp = 0

    def start(self) -> None:
        self._started_at = self._clock.now()

    def clock_stepped(self) -> None:
        """Times from before the step are void: leases are not ended for one ttl."""
        now = self._clock.now()
        self._started_at = now
        self._granted_until = min(self._granted_until, now + self._lease_us)
        self._outages.clock_stepped()

    def until(self, now: Timestamp) -> Timestamp:
        """The end of a lease that is given or renewed now."""
        self._granted_until = now + self._lease_us
        return self._granted_until

    def old_before(self, now: Timestamp) -> Timestamp:
        """Runs created before this get a new trace for each claim from now on."""
        return now - self._trace_max_age_us

    def terms(self, now: Timestamp) -> LeaseTerms:
        return LeaseTerms(self.until(now), now + self._lease_us // 2)

    def may_end(self, now: Timestamp) -> bool:
        """False for one ttl after the start or an outage of the store: live workers must get the chance to renew."""
        return now >= self.end_from()

    def end_from(self) -> Timestamp:
        """When leases may be ended again."""
        return max(self._started_at, self._outages.last_failure_at) + self._lease_us

    def in_use(self, now: Timestamp) -> bool:
        """Whether leases given here may still be valid, so that their ends have to be watched closely."""
        return now < self._granted_until + self._lease_us


class ReleaseQueue:
    """Runs to hand back as soon as the store is available. `work` is set while there are some."""

    def __init__(self) -> None:
        self.leases: list[RunLease] = []
        self.work = asyncio.Event()

    def add(self, leases: Iterable[RunLease]) -> None:
        self.leases.extend(leases)
        if len(self.leases) > _MOST_RELEASES:
            logger.warning("too many runs to hand back: the oldest are released when their leases end")
            del self.leases[:-_MOST_RELEASES]
        self.work.set()
