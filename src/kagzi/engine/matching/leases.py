"""Renews, shortens and hands back leases.

However many leases a call names, they are changed a few at a time, so that other writes run in between.
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
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # kept while somebody waits
        self._renewing = asyncio.Lock()

    async def renew(self, leased: Sequence[RunLease]) -> Renewal:
        """If the store is unavailable, nothing is lost: no lease is ended for one ttl after an outage."""
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
        """Renews a few leases of one namespace. One statement at a time, first in turn within a namespace, then between
        namespaces: a namespace with many heartbeats only delays itself."""
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
        """Their session broke: the worker has a grace period to reconnect. Returns its end."""
        until = self._clock.now() + self._grace_us
        try:
            for part in _parts(leased):
                async with asyncio.timeout(_CALL_TIMEOUT_S):
                    await self._store.shorten_leases(part, until)
        except (Unavailable, TimeoutError) as error:
            self._outages.seen(error)  # the leases end by themselves, later
        return until

    async def release(self, leased: Sequence[RunLease]) -> None:
        """Hands runs back: they become PENDING at once, or as soon as the store is available again."""
        try:
            await self._hand_back(leased)
        except (Unavailable, TimeoutError) as error:
            self._outages.seen(error)
            self._releases.add(leased)

    async def lost_before_ack(self, leased: Sequence[RunLease]) -> Sequence[Timestamp]:
        """Their session broke before the runs were known to have arrived, and one of them may be the cause. The first
        time, a run goes back at once; after that only at the end of the grace period, like a run that had arrived, and
        one after the other, to isolate the run at fault. If the store is unavailable, they go back once it is
        available, without being counted: an outage proves nothing. Returns the due times."""
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
        """Hands back what is still queued, as far as the store is available."""
        if self._releases.leases:
            leased, self._releases.leases = self._releases.leases, []
            try:
                async with asyncio.timeout(timeout_s):
                    await self._hand_back(leased)
            except (Unavailable, TimeoutError) as error:
                logger.warning("%d runs could not be handed back; their leases will end: %s", len(leased), error)

    async def run(self) -> None:
        self._releases.work.set()  # if the task died before, there may be work
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
    """In the given order, a few at a time."""
    for start in range(0, len(leased), LEASES_AT_ONCE):
        yield leased[start : start + LEASES_AT_ONCE]
