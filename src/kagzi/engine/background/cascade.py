"""Children follow their parent: when it ends or is to be cancelled, or when a race has abandoned the step that started them.

What is to be done is a mark in the store, made in the transaction that made it necessary. So a server that dies in the middle
leaves the rest to whoever looks next.
"""

import asyncio
from collections.abc import Callable

from ...core.errors import Unavailable
from ...core.limits import Settings
from ...core.providers import Clock
from ...core.times import US_PER_MS, Timestamp
from ...store.protocol import Cascaded, Store
from ..commit.outages import Outages, backoff_s

CASCADE_RUNS = 200  # at a time
SPACING_S = 0.02
_CALL_TIMEOUT_S = 30.0


class Cascade:
    """`on_cascaded` hears of the children that were asked to stop, and by when they must have; it must not wait."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        settings: Settings,
        outages: Outages,
        on_cascaded: Callable[[Cascaded, Timestamp], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._cleanup_us = settings.cleanup_ms * US_PER_MS
        self._outages = outages
        self._on_cascaded = on_cascaded
        self._work = asyncio.Event()
        self._doing = False

    def wanted(self) -> None:
        """There may be children to be cancelled."""
        self._work.set()

    async def run(self) -> None:
        if self._doing:  # it died in the middle
            self._work.set()
        failures = 0
        while True:
            await self._work.wait()
            self._work.clear()
            self._doing = True
            try:
                while await self._some():
                    failures = 0
            except (Unavailable, TimeoutError) as error:
                self._outages.seen(error)
                self._work.set()
                failures += 1
                await asyncio.sleep(backoff_s(failures))
            else:
                self._doing = False
                failures = 0
                await asyncio.sleep(SPACING_S)  # many ends at once are one cascade

    async def _some(self) -> bool:
        """Whether there may be more: also because children that were cancelled have children of their own."""
        now = self._clock.now()
        cancel_by = now + self._cleanup_us
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            cascaded = await self._store.cascade(now, cancel_by, CASCADE_RUNS)
        self._on_cascaded(cascaded, cancel_by)
        return cascaded.more or any(cancelled.has_children for cancelled in cascaded.cancelled)
