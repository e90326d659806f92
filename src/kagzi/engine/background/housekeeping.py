"""Chores: periodic work in the background. One at a time, each at its own interval.

Every server does them. Repeating a chore is safe; a chore for which it would be a waste is `shared`: a record in the
store lets only one server do it per interval. A chore does a small part at a time and returns whether there is more. It
gets at most half of the time, and after its turn the others come first.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import msgspec

from ...core.errors import Unavailable
from ...core.limits import Settings
from ...core.providers import Clock, Rng
from ...core.times import US_PER_S, Timestamp
from ...store.protocol import Store
from ..measurements.measurements import Measurements

logger = logging.getLogger("kagzi.engine")

TURN_S = 5.0
CALL_TIMEOUT_S = 30.0
_JITTER = 0.2  # upwards only: the interval is never shortened
_SOON_S = 2.0
_FIRST_S = 30.0  # after a start, only cheap chores run earlier
_BACKOFF_FIRST_S = 5.0
_BACKOFF_MOST_S = 600.0
_PAUSE_LEAST_S = 0.002
_PAUSE_MOST_S = 0.5

Work: TypeAlias = Callable[[Timestamp], Awaitable[bool]]


class Chore(msgspec.Struct, frozen=True, kw_only=True):
    """`work(now)` does a small part quickly and returns whether there is more to do at once. `every`: the number of
    housekeeping intervals (a minute each, unless set otherwise) between two turns. `cheap`: one statement, so it may
    also run soon after the start."""

    name: str
    work: Work
    every: int = 5
    cheap: bool = False
    shared: bool = False


class _Place:
    """A chore and when it is due next."""

    def __init__(self, chore: Chore, due_s: float) -> None:
        self.chore = chore
        self.due_s = due_s
        self.failures = 0
        self.goes_on = False  # its turn ended before its work did
        self.wanted = False


class Housekeeping:
    """All chores must be added before `run`."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        rng: Rng,
        settings: Settings,
        alone: bool,
        measurements: Measurements | None = None,
    ) -> None:
        self._measurements = measurements or Measurements()
        self._store = store
        self._clock = clock
        self._rng = rng
        self._interval_s = settings.housekeeping_ms / 1_000
        self._jitter = _JITTER if settings.jitter else 0.0
        self._alone = alone
        self._chores: dict[str, Chore] = {}
        self._places: dict[str, _Place] = {}
        self._changed = asyncio.Event()

    def add_all(self, chores: Iterable[Chore]) -> None:
        """Raises ValueError, as `add` does."""
        for chore in chores:
            self.add(chore)

    def add(self, chore: Chore) -> None:
        if chore.name in self._chores:
            raise ValueError(f"task {chore.name!r} already exists")
        if chore.every < 1:
            raise ValueError(f"task {chore.name!r} must not run more often than once per interval")
        self._chores[chore.name] = chore

    def soon(self, name: str) -> None:
        """Do this chore next, regardless of its interval and of other servers."""
        place = self._places.get(name)
        if place is not None:
            place.due_s = 0.0
            place.wanted = True
            self._changed.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        self._places = {chore.name: _Place(chore, started_s + self._first_s(chore)) for chore in self._chores.values()}
        while True:
            place = min(self._places.values(), key=lambda place: place.due_s, default=None)
            rest_s = None if place is None else place.due_s - loop.time()
            if place is None or (rest_s is not None and rest_s > 0):
                await self._wait(rest_s)
            else:
                await self._turn(place)
                await asyncio.sleep(_PAUSE_LEAST_S)  # even if the chore never awaited anything

    async def _wait(self, rest_s: float | None) -> None:
        try:
            async with asyncio.timeout(rest_s):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    async def _turn(self, place: _Place) -> None:
        """Errors affect only the chore itself: it is retried with a growing delay."""
        loop = asyncio.get_running_loop()
        chore, wanted = place.chore, place.wanted
        place.wanted = False
        try:
            place.goes_on = await self._work(chore, mine=wanted or place.goes_on)
        except (Unavailable, TimeoutError) as error:
            logger.warning("the chore %r could not be done and is tried again: %s", chore.name, error)
        except Exception:
            logger.exception("the chore %r went wrong and is tried again", chore.name)
        else:
            place.failures = 0
            self._measurements.chore_done(chore.name, self._clock.now())
            pause_s = 0.0 if place.goes_on or place.wanted else self._pause_s(chore)
            place.due_s = loop.time() + pause_s
            return
        place.failures += 1
        place.due_s = loop.time() + min(_BACKOFF_FIRST_S * 2.0 ** min(place.failures - 1, 20), _BACKOFF_MOST_S)

    async def _work(self, chore: Chore, *, mine: bool) -> bool:
        """Whether there is more to do at the end of the turn."""
        loop = asyncio.get_running_loop()
        if chore.shared and not mine and not self._alone and not await self._claimed(chore):
            return False
        end_s = loop.time() + TURN_S
        while True:
            began_s = loop.time()
            async with asyncio.timeout(CALL_TIMEOUT_S):
                more = await chore.work(self._clock.now())
            now_s = loop.time()
            if not more or now_s >= end_s:
                return more
            await asyncio.sleep(min(max(now_s - began_s, _PAUSE_LEAST_S), _PAUSE_MOST_S))

    async def _claimed(self, chore: Chore) -> bool:
        now = self._clock.now()
        until = now + int(chore.every * self._interval_s * US_PER_S)
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await self._store.claim_chore(chore.name, now, until)

    def _pause_s(self, chore: Chore) -> float:
        return chore.every * self._interval_s * (1.0 + self._jitter * self._rng.fraction())

    def _first_s(self, chore: Chore) -> float:
        """Randomised, so that servers that start together do not run the same chore at the same time."""
        fraction = self._rng.fraction()
        if chore.cheap:
            return min(_SOON_S, self._interval_s) * fraction
        interval_s = chore.every * self._interval_s
        return min(max(interval_s * fraction, _FIRST_S), interval_s)
