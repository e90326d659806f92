"""The connections of a store on PostgreSQL, by what they are for. Each noun's verbs are a class on top of this."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ...core import limits
from ..scans import ScanTurns
from .connections import HOT_SETTINGS, QUERY_SETTINGS, Counters, Link, LinkPool, Session, Target

QUERY_CONNECTIONS = 4


class Links(Counters):
    """Three kinds: one that only writes batches, one for claims, leases and timers, and a few for questions.

    A lost one raises Unavailable; the next call connects again.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._target = Target(url)
        self._hot = Link(self._target, self, HOT_SETTINGS)
        self._duty = Link(self._target, self, HOT_SETTINGS)
        self._questions = LinkPool(self._target, self, QUERY_SETTINGS, size=QUERY_CONNECTIONS)
        self._scans = ScanTurns(limits.SCANS_AT_ONCE)

    @asynccontextmanager
    async def _scan(self, namespace: str) -> AsyncGenerator[Session]:
        """A connection for a scan. They never take all that there are for questions."""
        async with self._scans.take(namespace), self._questions.use() as session:
            yield session

    async def close(self) -> None:
        await self._hot.close()
        await self._duty.close()
        await self._questions.close()
