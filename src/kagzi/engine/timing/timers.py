"""Doing things when they are due: never early, and without asking the store all the time.

Due times that come up on this server are kept in memory as far as the next look; each look brings the nearest one that the
store knows, so that the timers of a server that died fire, too. An idle server does nothing but look.
"""

import asyncio
import heapq
from collections.abc import Callable

from ...core.errors import Unavailable
from ...core.limits import LOOK_TYPES, Settings
from ...core.providers import Clock, Rng
from ...core.times import US_PER_MS, US_PER_S, Timestamp
from ...store.protocol import Fired, Horizon, Store, TypeKey
from ..background.failure_log import log_fired
from ..commit.outages import Outages, backoff_s
from ..matching.heartbeats import Beats
from ..matching.leases import Leases
from .store_clock import StoreClock

FIRE_RUNS = 500
_HEARD_TIMES = 10_000
_JITTER = 0.1  # upwards only: looks are never closer than their interval
_LEAST_WAIT_S = 0.0005
_STUCK_FIRST_US = 1 * US_PER_S
_STUCK_MOST_US = 5 * US_PER_S
_CALL_TIMEOUT_S = 30.0


class Timers:
    """`on_fired` and `on_look` are told what came of it; they must not wait. `alone`: no other server is on this store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        store_clock: StoreClock,
        rng: Rng,
        settings: Settings,
        leases: Leases,
        beats: Beats,
        outages: Outages,
        on_fired: Callable[[Fired], None],
        on_look: Callable[[Horizon], None],
        alone: bool,
    ) -> None:
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._rng = rng
        self._settings = settings
        self._leases = leases
        self._beats = beats
        self._outages = outages
        self._on_fired = on_fired
        self._on_look = on_look
        self._alone = alone
        self._heard: list[Timestamp] = []  # a heap
        self._ahead: Timestamp | None = None  # the nearest that the last look saw
        self._stuck_us = 0  # pause after a fire that found nothing to do although something was due
        self._stuck_until: Timestamp = 0
        self._looked_to: TypeKey | None = None  # types behind it were not told yet
        self._look_at = 0.0
        self._sleeping_until: Timestamp = 0
        self._changed = asyncio.Event()

    def hear(self, due_at: Timestamp) -> None:
        """Something is due then. What lies far ahead need not be remembered: a look comes before it."""
        if due_at >= self._clock.now() + 2 * self._settings.look_interval_ms * US_PER_MS:
            return
        if len(self._heard) < _HEARD_TIMES:
            heapq.heappush(self._heard, due_at)
        else:
            self._ahead = due_at if self._ahead is None else min(self._ahead, due_at)
        if due_at < self._sleeping_until:
            self._changed.set()

    def clock_stepped(self) -> None:
        self._stuck_us = self._stuck_until = 0
        self._changed.set()

    def look_soon(self) -> None:
        self._look_at = 0.0
        self._changed.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._look_at = 0.0
        failures = 0
        while True:
            now = self._clock.now()
            due = self._next_due()
            try:
                if due is not None and due <= now:
                    await self._store_clock.confirm()
                    await self._fire_due()
                elif loop.time() >= self._look_at:
                    await self._look()
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

    def _next_due(self) -> Timestamp | None:
        if not self._heard:
            return self._ahead
        return self._heard[0] if self._ahead is None else min(self._heard[0], self._ahead)

    async def _wait(self, now: Timestamp, due: Timestamp | None) -> None:
        rest_s = self._look_at - asyncio.get_running_loop().time()
        if due is not None:
            rest_s = min(rest_s, (due - now) / US_PER_S)
        self._sleeping_until = now + int(rest_s * US_PER_S)
        try:
            async with asyncio.timeout(max(rest_s, _LEAST_WAIT_S)):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._sleeping_until = 0
        self._changed.clear()

    async def _fire_due(self) -> None:
        now, due = self._clock.now(), self._next_due()
        if due is not None and due <= now:  # still, now that the time is confirmed
            await self._fire(now)

    async def _fire(self, now: Timestamp) -> None:
        end_leases = self._leases.may_end(now)
        seen_by_look = self._ahead is not None and self._ahead <= now
        while self._heard and self._heard[0] <= now:
            heapq.heappop(self._heard)
        try:
            with self._outages.asking():
                async with asyncio.timeout(_CALL_TIMEOUT_S):
                    fired = await self._store.fire(
                        now, end_leases=end_leases, limit=FIRE_RUNS, claim_cap=self._settings.claim_cap
                    )
        except BaseException:
            self.hear(now)  # it is still to be done
            raise
        did_something = bool(fired.woken or fired.ended or fired.lost)
        if not end_leases and (again_at := self._leases.end_from()) not in self._heard:
            self.hear(again_at)  # a lease may be among what was due
        if fired.more:
            self.hear(now)
        if seen_by_look:
            if did_something:
                self._ahead = None
                self._stuck_us = 0
                self._look_at = 0.0  # what comes after it is not known
            else:
                self._hold_off(now, end_leases=end_leases)
        log_fired(fired)
        self._on_fired(fired)

    def _hold_off(self, now: Timestamp, *, end_leases: bool) -> None:
        """What is due cannot be done: a lease whose holder gets a last chance, or a row that is locked."""
        longest = _STUCK_MOST_US if end_leases else _STUCK_FIRST_US
        self._stuck_us = min(max(self._stuck_us * 2, _STUCK_FIRST_US), longest)
        self._stuck_until = now + self._stuck_us
        self._ahead = self._stuck_until
        self._look_at = 0.0  # or is it done already? A lease that another server renewed is not due any more

    async def _look(self) -> None:
        beats = self._beats.take()
        asked_at = self._clock.now()
        try:
            with self._outages.asking():
                async with asyncio.timeout(_CALL_TIMEOUT_S):
                    horizon = await self._store.look(beats, asked_at, self._looked_to)
        except BaseException:
            self._beats.put_back(beats)
            raise
        self._looked_to = horizon.pending[-1] if len(horizon.pending) >= LOOK_TYPES else None
        # Noting beats may cost a second statement. Alone, nobody else's timers are to be found, so the next look can wait.
        looks_saved = 2 if beats and self._alone else 1
        self._look_at = asyncio.get_running_loop().time() + looks_saved * self._interval_s(asked_at)
        if self._store_clock.polled(horizon.store_now, asked_at, self._clock.now()):
            self._look_at = 0.0
        self._ahead = horizon.next_due_at
        if self._ahead is not None and self._ahead < self._stuck_until:
            if self._ahead <= asked_at:
                self._ahead = self._stuck_until
            else:
                self._stuck_us = self._stuck_until = 0
        self._on_look(horizon)

    def _interval_s(self, now: Timestamp) -> float:
        """Leases shorter than the interval would end unseen between two looks: then, and while they are used, here or on another
        server that may die, look more often."""
        interval_ms = self._settings.look_interval_ms
        if not self._alone or self._leases.in_use(now):
            interval_ms = min(interval_ms, max(self._settings.lease_ms // 2, 50))
        jitter = _JITTER * self._rng.fraction() if self._settings.jitter else 0.0
        return interval_ms * (1.0 + jitter) / 1_000
