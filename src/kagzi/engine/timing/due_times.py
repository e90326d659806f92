"""The due times that this server knows of, for its timers."""

import asyncio
import heapq

from ...core.limits import Settings
from ...core.providers import Clock
from ...core.times import US_PER_MS, Timestamp

_MOST_TIMES = 10_000


class DueTimes:
    """Only keeps times up to about the next poll. `polled`: the nearest due time of the last poll, or the nearest for
    which there was no space. `changed` is set when something is due before `sleeping_until`."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._ahead_us = 2 * settings.poll_interval_ms * US_PER_MS
        self._times: list[Timestamp] = []  # a heap
        self.polled: Timestamp | None = None
        self.sleeping_until: Timestamp = 0
        self.changed = asyncio.Event()

    def add(self, due_at: Timestamp) -> None:
        if due_at >= self._clock.now() + self._ahead_us:
            return
        if len(self._times) < _MOST_TIMES:
            heapq.heappush(self._times, due_at)
        else:
            self.polled = due_at if self.polled is None else min(self.polled, due_at)
        if due_at < self.sleeping_until:
            self.changed.set()

    def __contains__(self, due_at: Timestamp) -> bool:
        return due_at in self._times

    def next(self) -> Timestamp | None:
        if not self._times:
            return self.polled
        return self._times[0] if self.polled is None else min(self._times[0], self.polled)

    def remove_until(self, now: Timestamp) -> None:
        while self._times and self._times[0] <= now:
            heapq.heappop(self._times)
