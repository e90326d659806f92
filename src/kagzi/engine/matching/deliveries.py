"""Runs that are being delivered to a worker. On a slow connection that may take longer than a lease. The worker cannot
renew leases of runs that it has not received, so the server renews them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ...core.records import RunLease
from .lease_registry import Holding

CHECKS_PER_LEASE = 3
LEASES_TO_ARRIVE = 40  # maximum delivery time in leases, ten minutes by default; after it, the lease is lost
LEASES_TO_SEND = 4  # how many leases a worker that does not read counts as alive after the last message was sent


class Deliveries:
    """The deliveries of one session. Nothing is checked while all its runs have arrived.

    `renew` renews leases in the background. `is_alive`: whether the worker reported recently; None while nothing is
    read from it, because it does not read its own messages. `sent`: a number that grows with each message that was sent
    to the worker.
    """

    def __init__(
        self,
        leased: Mapping[str, Holding],
        *,
        lease_s: float,
        renew: Callable[[Sequence[RunLease]], object],
        is_alive: Callable[[], bool | None],
        sent: Callable[[], int],
    ) -> None:
        self._leased = leased
        self._lease_s = lease_s
        self._interval_s = lease_s / CHECKS_PER_LEASE
        self._renew = renew
        self._is_alive = is_alive
        self._sent = sent
        self._sent_before = -1
        self._progress_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def begin(self) -> None:
        """Runs were sent, or reading from the worker has stopped."""
        if self._timer is None and not self._closed:
            self._timer = self._loop.call_later(self._interval_s, self._check)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        self._timer = None
        now = self._loop.time()
        alive = self._is_alive()
        if (sent := self._sent()) != self._sent_before:
            self._sent_before, self._progress_at = sent, now
        on_the_way = [holding for holding in self._leased.values() if not holding.received]
        if on_the_way or alive is None:
            self.begin()
        if alive is None:  # its heartbeats are not read either
            if self._leased and now - self._progress_at <= LEASES_TO_SEND * self._lease_s:
                self._renew([each.leased for each in self._leased.values() if self._may_wait(each, now)])
        elif alive and (slow := [each for each in on_the_way if self._is_slow(each, now)]):
            self._renew([each.leased for each in slow])

    def _is_slow(self, holding: Holding, now: float) -> bool:
        return now - holding.sent_at >= self._interval_s and self._may_wait(holding, now)

    def _may_wait(self, holding: Holding, now: float) -> bool:
        return holding.received or now - holding.sent_at <= LEASES_TO_ARRIVE * self._lease_s
