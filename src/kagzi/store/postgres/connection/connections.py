"""The connections of a store on PostgreSQL, by purpose. The classes of verbs build on this one."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from ....core import limits
from ...scans import ScanTurns
from ...sessions import Purpose, Sessions
from .connection import HOT_SETTINGS, QUERY_SETTINGS, Counters, Link, Session
from .target import Target

_FIXED = 4
"""Connections that every server has: two for the work of workers, two for wake-ups of servers (`PostgresBus`)."""

Result = TypeVar("Result")


class LinkPool:
    """A few links, opened as needed. When all `size` are in use, callers wait."""

    def __init__(self, target: Target, counters: Counters, settings: Mapping[str, str], *, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self.links = [Link(target, counters, settings) for _ in range(size)]
        self._idle = list(self.links)

    @asynccontextmanager
    async def use(self, *, confirm: bool = True) -> AsyncGenerator[Session]:
        """See `Link`."""
        async with self._free:
            link = self._idle.pop()  # the one used last: the others may never be needed
            try:
                async with link.use(confirm=confirm) as session:
                    yield session
            finally:
                self._idle.append(link)

    async def close(self) -> None:
        for link in self.links:
            await link.close()


class Connections(Counters, Sessions):
    """Four kinds: one that only writes batches, one for claims, leases and timers, a few for the other verbs, and a few
    that only read, which keep working while commits wait for a missing standby.

    A lost one raises Unavailable; the next call reconnects.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._target = Target(url)
        self._hot = Link(self._target, self, HOT_SETTINGS)
        self._duty = Link(self._target, self, HOT_SETTINGS)
        size = (self._target.options.pool_size - _FIXED) // 2
        self._questions = LinkPool(self._target, self, QUERY_SETTINGS, size=size)
        self._readers = LinkPool(self._target, self, QUERY_SETTINGS, size=size)
        self._scans = ScanTurns(min(limits.SCANS_AT_ONCE, size - 1))

    @asynccontextmanager
    async def _scan(self, namespace: str) -> AsyncGenerator[Session]:
        """A connection for a scan, whose result is not acknowledged. Scans never use all connections for reads."""
        async with self._scans.take(namespace), self._readers.use(confirm=False) as session:
            yield session

    async def run(self, purpose: Purpose, act: Callable[[Session], Coroutine[Any, Any, Result]]) -> Result:
        async with self._session(purpose) as session:
            result = await act(session)
        return await self._confirmed(result, act) if purpose is Purpose.LOOKUP else result

    async def run_scan(self, namespace: str, act: Callable[[Session], Coroutine[Any, Any, Result]]) -> Result:
        async with self._scan(namespace) as session:
            result = await act(session)
        return await self._confirmed(result, act)

    async def _confirmed(self, result: Result, act: Callable[[Session], Coroutine[Any, Any, Result]]) -> Result:
        """A primary that was replaced without noticing does not know what was started since (ADR 0093)."""
        if result is None and self._target.barrier.needed:
            return await self.run(Purpose.WRITE, act)
        return result

    def _session(self, purpose: Purpose) -> AbstractAsyncContextManager[Session]:
        match purpose:
            case Purpose.WRITE:
                return self._questions.use()
            case Purpose.CHORE:
                return self._questions.use(confirm=False)
            case Purpose.LEASES:
                return self._duty.use(confirm=False)
            case Purpose.READ | Purpose.LOOKUP:
                return self._readers.use(confirm=False)

    @property
    def connections(self) -> Mapping[str, int]:
        links = (self._hot, self._duty, *self._questions.links, *self._readers.links)
        states = Counter(link.state for link in links)
        return {"used": states["used"], "idle": states["idle"], "closed": states["closed"]}

    async def close(self) -> None:
        await self._hot.close()
        await self._duty.close()
        await self._questions.close()
        await self._readers.close()
