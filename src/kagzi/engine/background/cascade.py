"""Cancels children when their parent ends or is cancelled, or when a race has abandoned the step that started them.

Pending work is marked in the store, in the transaction that caused it. If a server dies in the middle, the next server
that polls does the rest.
"""

import asyncio

from ...core.errors import Unavailable
from ...core.limits import Settings
from ...core.providers import Clock
from ...core.times import US_PER_MS
from ...store.protocol import Store
from ..commit.dispatcher import Dispatcher
from ..commit.outages import Outages, backoff_s

CASCADE_RUNS = 200  # per batch
SPACING_S = 0.02
_CALL_TIMEOUT_S = 30.0


class Cascade:
    """`children_due` is set when children may have to be cancelled."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        settings: Settings,
        outages: Outages,
        dispatcher: Dispatcher,
        children_due: asyncio.Event,
    ) -> None:
        self._store = store
        self._clock = clock
        self._cleanup_us = settings.cleanup_ms * US_PER_MS
        self._outages = outages
        self._dispatcher = dispatcher
        self._work = children_due
        self._doing = False

    async def run(self) -> None:
        if self._doing:  # the task died in the middle
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
                await asyncio.sleep(SPACING_S)  # handle many ends in one cascade

    async def _some(self) -> bool:
        """Whether there may be more. Children of cancelled children become due through the effects."""
        now = self._clock.now()
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            more, effects = await self._store.cascade(now, now + self._cleanup_us, CASCADE_RUNS)
        self._dispatcher.dispatch(effects)
        return more
