"""Fires timers when they are due: never early, and without constant reads of the store.

Due times that arise on this server are kept in memory up to the next poll; each poll returns the nearest due time in
the store, so that timers of a dead server fire too. An idle server only polls.
"""

import asyncio
from collections.abc import Callable

from ...core.effects import NO_EFFECTS
from ...core.errors import Unavailable
from ...core.limits import POLL_TYPES, Settings
from ...core.providers import Clock, Rng
from ...core.times import US_PER_S, Timestamp
from ...store.protocol import Fired, PendingWork, Store, TypeKey
from ..background.failure_log import log_fired
from ..commit.dispatcher import Dispatcher
from ..commit.outages import Outages, backoff_s
from ..matching.heartbeats import Heartbeats
from ..matching.lease_times import LeaseTimes
from .due_times import DueTimes
from .store_clock import StoreClock

FIRE_RUNS = 500
_JITTER = 0.1  # upwards only: the interval is never shortened
_LEAST_WAIT_S = 0.0005
_STUCK_FIRST_US = 1 * US_PER_S
_STUCK_MOST_US = 5 * US_PER_S
_CALL_TIMEOUT_S = 30.0


class Timers:
    """`on_poll` gets the result of each poll; it must not wait. `alone`: this is the only server on the store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        store_clock: StoreClock,
        rng: Rng,
        settings: Settings,
        lease_times: LeaseTimes,
        heartbeats: Heartbeats,
        outages: Outages,
        due_times: DueTimes,
        dispatcher: Dispatcher,
        on_poll: Callable[[PendingWork], None],
        alone: bool,
    ) -> None:
        self._measurements = dispatcher.measurements
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._rng = rng
        self._settings = settings
        self._lease_times = lease_times
        self._heartbeats = heartbeats
        self._outages = outages
        self._due = due_times
        self._dispatcher = dispatcher
        self._on_poll = on_poll
        self._alone = alone
        self._stuck_us = 0  # pause after a fire that found nothing to do although something was due
        self._stuck_until: Timestamp = 0
        self._polled_to: TypeKey | None = None  # the next poll returns the types after it
        self._poll_at = 0.0

    def clock_stepped(self) -> None:
        self._stuck_us = self._stuck_until = 0
        self._due.changed.set()

    def poll_soon(self) -> None:
        self._poll_at = 0.0
        self._due.changed.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._poll_at = 0.0
        failures = 0
        while True:
            now = self._clock.now()
            due = self._due.next()
            try:
                if due is not None and due <= now:
                    await self._store_clock.confirm()
                    await self._fire_due()
                elif loop.time() >= self._poll_at:
                    await self._poll()
                else:
                    await self._wait(now, due)
                    continue
            except (Unavailable, TimeoutError) as error:
                self._outages.seen(error)
                failures += 1
                await asyncio.sleep(backoff_s(failures))
            else:
                failures = 0
                self._outages.over()

    async def _wait(self, now: Timestamp, due: Timestamp | None) -> None:
        rest_s = self._poll_at - asyncio.get_running_loop().time()
        if due is not None:
            rest_s = min(rest_s, (due - now) / US_PER_S)
        self._due.sleeping_until = now + int(rest_s * US_PER_S)
        try:
            async with asyncio.timeout(max(rest_s, _LEAST_WAIT_S)):
                await self._due.changed.wait()
        except TimeoutError:
            pass
        self._due.sleeping_until = 0
        self._due.changed.clear()

    async def _fire_due(self) -> None:
        now, due = self._clock.now(), self._due.next()
        if due is not None and due <= now:  # still due by the confirmed time
            await self._fire(now, due)

    async def _fire(self, now: Timestamp, due: Timestamp) -> None:
        end_leases = self._lease_times.may_end(now)
        seen_by_poll = self._due.polled is not None and self._due.polled <= now
        self._due.remove_until(now)
        try:
            with self._outages.asking():
                async with asyncio.timeout(_CALL_TIMEOUT_S):
                    fired, effects = await self._store.fire(
                        now, end_leases=end_leases, limit=FIRE_RUNS, claim_cap=self._settings.claim_cap
                    )
        except BaseException:
            self._due.add(now)  # still to be done
            raise
        if not end_leases and (again_at := self._lease_times.end_from()) not in self._due:
            self._due.add(again_at)  # expired leases may be among what was due
        if fired.more:
            self._due.add(now)
        if seen_by_poll:
            if effects is not NO_EFFECTS:
                self._due.polled = None
                self._stuck_us = 0
                self._poll_at = 0.0  # the next due time is unknown
            else:
                self._hold_off(now, end_leases=end_leases)
        log_fired(fired, effects.ended)
        self._count(fired, late_us=self._clock.now() - due if effects is not NO_EFFECTS else None)
        self._dispatcher.dispatch(effects)

    def _count(self, fired: Fired, *, late_us: int | None) -> None:
        """`late_us`: how late the earliest due time was; None: nothing was done."""
        self._measurements.leases_lost += len(fired.expired)
        self._measurements.runs_quarantined += sum(lease.problem is not None for lease in fired.expired)
        if late_us is not None:
            self._measurements.timer_fired("run", late_us)

    def _hold_off(self, now: Timestamp, *, end_leases: bool) -> None:
        """What is due cannot be done: a lease whose worker gets a last chance to renew, or a locked row."""
        longest = _STUCK_MOST_US if end_leases else _STUCK_FIRST_US
        self._stuck_us = min(max(self._stuck_us * 2, _STUCK_FIRST_US), longest)
        self._stuck_until = now + self._stuck_us
        self._due.polled = self._stuck_until
        self._poll_at = 0.0  # it may be done already: a lease that another server renewed is no longer due

    async def _poll(self) -> None:
        heartbeats = self._heartbeats.take()
        sent_at = self._clock.now()
        try:
            with self._outages.asking():
                async with asyncio.timeout(_CALL_TIMEOUT_S):
                    work = await self._store.poll(heartbeats, sent_at, self._polled_to)
        except BaseException:
            self._heartbeats.put_back(heartbeats)
            raise
        self._polled_to = work.pending[-1] if len(work.pending) >= POLL_TYPES else None
        # Writing heartbeats may cost a second statement. A single server need not find timers of others, so its next
        # poll can wait.
        intervals = 2 if heartbeats and self._alone else 1
        self._poll_at = asyncio.get_running_loop().time() + intervals * self._interval_s(sent_at)
        if self._store_clock.polled(work.store_now, sent_at, self._clock.now()):
            self._poll_at = 0.0
        self._due.polled = due = work.next_due_at
        if due is not None and due < self._stuck_until:
            if due <= sent_at:
                self._due.polled = self._stuck_until
            else:
                self._stuck_us = self._stuck_until = 0
        self._on_poll(work)

    def _interval_s(self, now: Timestamp) -> float:
        """Leases shorter than the interval could expire unnoticed between two polls: polls more often if they are in
        use here, or may be in use on another server that may die."""
        interval_ms = self._settings.poll_interval_ms
        if not self._alone or self._lease_times.in_use(now):
            interval_ms = min(interval_ms, max(self._settings.lease_ms // 2, 50))
        jitter = _JITTER * self._rng.fraction() if self._settings.jitter else 0.0
        return interval_ms * (1.0 + jitter) / 1_000
