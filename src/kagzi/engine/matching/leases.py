"""Renews, shortens and hands back leases.

However many leases a call names, they are changed a few at a time: the writes of others go in between.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from weakref import WeakValueDictionary

from ...core.errors import Unavailable
from ...core.limits import LEASES_AT_ONCE, Settings
from ...core.providers import Clock
from ...core.records import RunLease
from ...core.times import US_PER_MS, Timestamp
from ...store.protocol import Renewal, Store
from ..commit.dispatcher import Dispatcher
from ..commit.outages import Outages, backoff_s
from ..timing.store_clock import StoreClock
from .lease_times import LeaseTimes, ReleaseQueue
from .overdue import OverdueSteps

logger = logging.getLogger("kagzi.engine")

_CALL_TIMEOUT_S = 30.0


class Leases:
    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        store_clock: StoreClock,
        settings: Settings,
        outages: Outages,
        times: LeaseTimes,
        releases: ReleaseQueue,
        dispatcher: Dispatcher,
        overdue: OverdueSteps,
    ) -> None:
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._outages = outages
        self._grace_us = settings.reconnect_grace_ms * US_PER_MS
        self._times = times
        self._releases = releases
        self._dispatcher = dispatcher
        self._overdue = overdue
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # as long as somebody waits
        self._renewing = asyncio.Lock()

    async def renew(self, leased: Sequence[RunLease]) -> Renewal:
        """If the store is away nothing is lost: no lease is ended for one ttl after that."""
        parts = [await self._renew(part) for part in _parts(leased)]
        if len(parts) == 1:
            return parts[0]
        return Renewal(
            tuple(item for part in parts for item in part.lost),
            tuple(item for part in parts for item in part.cancel_requested),
            tuple(item for part in parts for item in part.overdue),
            tuple(run for part in parts for run in part.pause_requested),
        )

    async def _renew(self, leased: Sequence[RunLease]) -> Renewal:
        """A few leases of one namespace. One statement at a time, in turn over the calls of a namespace and over
        namespaces: whoever sends many heartbeats waits for itself."""
        namespace = leased[0].run.namespace
        turn = self._turns.get(namespace)
        if turn is None:
            turn = self._turns[namespace] = asyncio.Lock()
        try:
            async with asyncio.timeout(_CALL_TIMEOUT_S), turn, self._renewing:
                await self._store_clock.confirm()
                now = self._clock.now()
                renewal = await self._store.renew(leased, now, self._times.until(now), grace_us=self._grace_us)
        except (Unavailable, TimeoutError) as error:
            self._outages.seen(error)
            return Renewal((), ())
        self._outages.over()
        if renewal.overdue:
            self._overdue.take(renewal.overdue)
        return renewal

    async def shorten_leases(self, leased: Sequence[RunLease]) -> Timestamp:
        """Their session closed without goodbye: its worker has the grace to come back. Returns when that ends."""
        until = self._clock.now() + self._grace_us
        try:
            for part in _parts(leased):
                async with asyncio.timeout(_CALL_TIMEOUT_S):
                    await self._store.shorten_leases(part, until)
        except (Unavailable, TimeoutError) as error:
            self._outages.seen(error)  # they end by themselves, later
        return until

    async def release(self, leased: Sequence[RunLease]) -> None:
        """Hand runs back: PENDING at once. If the store is away, as soon as it is back."""
        try:
            await self._hand_back(leased)
        except (Unavailable, TimeoutError) as error:
            self._outages.seen(error)
            self._releases.add(leased)

    async def lost_before_ack(self, leased: Sequence[RunLease]) -> Sequence[Timestamp]:
        """Their session broke before they were known to have arrived, and one of them may be why. The first time a run
        goes back at once; after that, like one that had arrived, when the grace is over, and those of one session one
        by one, so that the innocent get away from the guilty. If the store is away they go back as soon as it is there
        again, uncounted: an outage proves nothing. Returns when there is something to do."""
        now = self._clock.now()
        untils = [now + self._grace_us + place * self._grace_us // len(leased) for place in range(len(leased))]
        done = 0
        try:
            for part in _parts(leased):
                async with asyncio.timeout(_CALL_TIMEOUT_S):
                    effects = await self._store.lost_before_ack(part, now, untils[done : done + len(part)])
                self._dispatcher.dispatch(effects)
                done += len(part)
        except (Unavailable, TimeoutError) as error:
            self._outages.seen(error)
            self._releases.add(leased[done:])
        return untils[:done]

    async def flush(self, timeout_s: float) -> None:
        """Hand back what is still waiting for it, as far as the store lets us."""
        if self._releases.leases:
            leased, self._releases.leases = self._releases.leases, []
            try:
                async with asyncio.timeout(timeout_s):
                    await self._hand_back(leased)
            except (Unavailable, TimeoutError) as error:
                logger.warning("%d runs could not be handed back; their leases will end: %s", len(leased), error)

    async def run(self) -> None:
        self._releases.work.set()  # if it died before, there may be something to do
        failures = 0
        while True:
            await self._releases.work.wait()
            self._releases.work.clear()
            while self._releases.leases:
                some = self._releases.leases[:LEASES_AT_ONCE]
                try:
                    await self._hand_back(some)
                except (Unavailable, TimeoutError) as error:
                    self._outages.seen(error)
                    failures += 1
                    await asyncio.sleep(backoff_s(failures))
                else:
                    failures = 0
                    del self._releases.leases[: len(some)]

    async def _hand_back(self, leased: Sequence[RunLease]) -> None:
        for part in _parts(leased):
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                effects = await self._store.release(part, self._clock.now())
            self._dispatcher.dispatch(effects)


def _parts(leased: Sequence[RunLease]) -> Iterator[Sequence[RunLease]]:
    """As they came, a few at a time."""
    for start in range(0, len(leased), LEASES_AT_ONCE):
        yield leased[start : start + LEASES_AT_ONCE]
