"""Time, ids and randomness of a test environment: set by the test, and reproducible."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from random import Random  # noqa: TID251  seeded on purpose
from typing import Any

from ...core.ids import RUN_RANDOM_BITS, uuid4, uuid7_of
from ...core.times import US_PER_S, Timestamp


class VirtualClock:
    """A `core.providers.Clock` that stands still until it is moved."""

    def __init__(self, now: Timestamp) -> None:
        self._now = now

    def now(self) -> Timestamp:
        return self._now

    def follow(self, store_now: Timestamp, sent_at: Timestamp, received_at: Timestamp) -> None:
        """Do nothing: the store uses this clock."""

    def move_to(self, now: Timestamp) -> None:
        """Never moves backwards."""
        self._now = max(now, self._now)


class SeededIds:
    """A `core.providers.Ids` that returns the same ids in the same order in each environment."""

    def __init__(self) -> None:
        self._random = Random(1)
        self._last = (0, 0)

    def run_id(self, now: Timestamp, namespace: str) -> str:
        """Within one microsecond the ids count up, so they sort in the order in which they were drawn."""
        last_at, last = self._last
        number = last + 1 if last_at == now else self._random.getrandbits(RUN_RANDOM_BITS - 1)
        self._last = (now, number)
        return uuid7_of(namespace, now, number)

    def token(self) -> str:
        return uuid4(f"{self._random.getrandbits(128):032x}")

    def nonce(self) -> int:
        return self._random.getrandbits(63) | 1

    def secret(self) -> str:
        return f"{self._random.getrandbits(256):064x}"


class SeededRng:
    """A `core.providers.Rng`."""

    def __init__(self) -> None:
        self._random = Random(2)

    def fraction(self) -> float:
        return self._random.random()


class _Timer(asyncio.TimerHandle):
    def run(self) -> None:
        if not self.cancelled():
            self._run()

    def cancel(self) -> None:
        """Only mark it as cancelled: the loop does not know this handle."""
        asyncio.Handle.cancel(self)


class VirtualTimers:
    """The timers of runs, in the time of a VirtualClock (`sdk.execution.ports.Timers`). Their callbacks run on the
    loop of the worker."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._timers: list[tuple[float, int, asyncio.AbstractEventLoop, _Timer]] = []
        self._serial = itertools.count()

    def time(self) -> float:
        return self._clock.now() / US_PER_S

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        timer = _Timer(when, callback, args, loop)
        if when <= self.time():
            loop.call_soon(timer.run)
        else:
            heapq.heappush(self._timers, (when, next(self._serial), loop, timer))
        return timer

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args)

    def next_due(self) -> Timestamp | None:
        while self._timers and self._timers[0][3].cancelled():
            heapq.heappop(self._timers)
        return -int(-self._timers[0][0] * US_PER_S // 1) if self._timers else None

    def fire_due(self) -> None:
        """Call this after moving the clock."""
        while (due := self.next_due()) is not None and due <= self._clock.now():
            _, _, loop, timer = heapq.heappop(self._timers)
            if not loop.is_closed():
                loop.call_soon(timer.run)
