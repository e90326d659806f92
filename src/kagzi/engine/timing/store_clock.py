"""Synchronises this server's clock with the store's clock, which is authoritative: all servers of a store share it.

Between two polls this server counts elapsed time, so that changes of its wall clock have no effect. Code that makes
decisions by the time calls `confirm` first: after a gap between polls (a suspended machine, a stopped process) the
store is polled before anything fires.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from ...core.errors import Unavailable
from ...core.limits import Settings
from ...core.providers import Clock
from ...core.times import US_PER_MS, US_PER_S, Timestamp
from ...store.protocol import Store

logger = logging.getLogger("kagzi.engine")

STEP_US = 1 * US_PER_S
"""A larger difference is not drift: a clock was set."""
SETTLE_US = 900 * US_PER_S
"""How long a step of the machine's own clock must last before it is followed, if the store has no other clock
(SQLite)."""
_TRUSTED_INTERVALS = 3  # polls come every one or two intervals
_CLOCK_TICK_US = 1_000
_POLL_TIMEOUT_S = 30.0


class _Step(NamedTuple):
    by_us: int
    seen_at: Timestamp


class StoreClock:
    """`alone`: the store's clock is this machine's own. `on_step` is called after the clock has followed a step."""

    def __init__(
        self, store: Store, *, clock: Clock, settings: Settings, alone: bool, on_step: Callable[[], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._trusted_us = _TRUSTED_INTERVALS * settings.poll_interval_ms * US_PER_MS
        self._alone = alone
        self._settle_us = SETTLE_US if alone else 0
        self._on_step = on_step
        self._polled_at: Timestamp | None = None
        self._lag_us: int | None = None
        self._step: _Step | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Polls once before anything is decided. An unavailable store is polled as soon as it is back."""
        try:
            await self._poll()
        except (Unavailable, TimeoutError) as error:
            logger.warning("the store's clock is not known yet: %s", error)

    async def confirm(self) -> None:
        """Returns when a recent poll has confirmed the clock. Raises Unavailable, TimeoutError if the store is
        unavailable."""
        if self._is_recent():
            return
        async with self._turn:
            if not self._is_recent():
                await self._poll()

    def lag_us(self) -> int | None:
        """How long the store took to respond to the last poll; None: no poll has succeeded yet."""
        return self._lag_us

    def _is_recent(self) -> bool:
        return self._polled_at is not None and 0 <= self._clock.now() - self._polled_at <= self._trusted_us

    async def _poll(self) -> None:
        again = True
        while again:
            sent_at = self._clock.now()
            async with asyncio.timeout(_POLL_TIMEOUT_S):
                work = await self._store.poll((), sent_at)
            again = self.polled(work.store_now, sent_at, self._clock.now())

    def polled(self, store_now: Timestamp, sent_at: Timestamp, answered_at: Timestamp) -> bool:
        """Processes a poll. Returns whether to poll again at once: the store's clock seems to have stepped, which a
        second poll must confirm.

        Differences within the uncertainty of the round trip are ignored: following them would only add jitter.
        """
        by_us = store_now - (sent_at + answered_at) // 2
        self._lag_us = max(answered_at - sent_at, 0)
        uncertain_us = (answered_at - sent_at) // 2 + _CLOCK_TICK_US
        first, self._polled_at = self._polled_at is None, answered_at
        if abs(by_us) <= uncertain_us + STEP_US:
            self._agree(by_us, uncertain_us, store_now, sent_at, answered_at)
            return False
        if first:
            self._follow(by_us, store_now, sent_at, answered_at)
            self._on_step()
            return False
        if self._step is None or abs(self._step.by_us - by_us) > uncertain_us + STEP_US:
            self._step = _Step(by_us, answered_at)
            if self._alone:
                logger.warning(
                    "this machine's clock was set %+.1f s away from elapsed time. "
                    "Timers, leases and deadlines follow elapsed time; "
                    "the new time is used after %d minutes, or after a restart",
                    by_us / US_PER_S,
                    self._settle_us // (60 * US_PER_S),
                )
            return not self._alone
        if answered_at - self._step.seen_at >= self._settle_us:
            logger.warning("the store's clock has moved by %+.1f s; this server follows it", by_us / US_PER_S)
            self._step = None
            self._follow(by_us, store_now, sent_at, answered_at)
            self._on_step()
        return False

    def _agree(
        self, by_us: int, uncertain_us: int, store_now: Timestamp, sent_at: Timestamp, answered_at: Timestamp
    ) -> None:
        if self._step is not None:
            logger.warning("the store's clock agrees again with the time that has passed")
            self._step = None
        if abs(by_us) > uncertain_us:
            self._follow(by_us, store_now, sent_at, answered_at)

    def _follow(self, by_us: int, store_now: Timestamp, sent_at: Timestamp, answered_at: Timestamp) -> None:
        self._clock.follow(store_now, sent_at, answered_at)
        self._polled_at = answered_at + by_us
