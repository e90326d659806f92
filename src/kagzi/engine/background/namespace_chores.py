"""Background work for namespaces: deletes the rows of deleted ones in small parts, and measures the stored bytes of
those that limit them."""

import asyncio
import logging

from ...core import limits
from ...core.pages.cursor import Cursor
from ...core.times import US_PER_MS, Timestamp
from ...store.protocol import Store
from ..services.namespaces import FORGETTABLE
from .retention import Batch

logger = logging.getLogger("kagzi.engine")

CHORE = "namespaces"
_ROWS_PER_RUN = 10
_MEASURED_RUNS = 500


class _Measurement:
    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.stored_bytes = 0
        self.after: Cursor | None = None


class NamespaceChores:
    """A chore (see Housekeeping): each call does a small part. If a server stops, another one continues."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch = Batch()
        self._measuring: _Measurement | None = None

    async def work(self, now: Timestamp) -> bool:
        if self._measuring is not None:
            await self._measure(self._measuring, now)
            return True
        chores = await self._store.namespace_chores(now, now + limits.MEASURE_INTERVAL_MS * US_PER_MS)
        if chores.measure:
            self._measuring = _Measurement(chores.measure)
        removed = bool(chores.purge) and await self._remove(chores.purge, now)
        return removed or self._measuring is not None

    async def _measure(self, measurement: _Measurement, now: Timestamp) -> None:
        measured = await self._store.measure_runs(measurement.namespace, measurement.after, _MEASURED_RUNS)
        measurement.stored_bytes += measured.stored_bytes
        measurement.after = measured.after
        if measured.after is None:
            self._measuring = None
            await self._store.note_stored_bytes(measurement.namespace, measurement.stored_bytes, now)

    async def _remove(self, namespace: str, now: Timestamp) -> bool:
        """Whether something was removed. Runs that are locked, or have children to be cancelled, are retried a minute
        later."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        purged = await self._store.purge_runs(namespace, FORGETTABLE, after=0, until=now, limit=self._batch.runs)
        if not purged.runs and not await self._store.purge_namespace(namespace, self._batch.runs * _ROWS_PER_RUN):
            if await self._store.get_namespace(namespace) is None:
                logger.info("namespace %s was deleted with all its runs", namespace)
                return True
            return False
        self._batch.took(loop.time() - began_s)
        return True
