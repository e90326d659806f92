"""Deletes ended runs after their retention: set by the namespace for each way to end, or else by the server.

Each batch is sized to take about 25 ms, so that no lock is held noticeably long and, on SQLite, the only writer is soon
free again.
"""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from ...core.limits import Settings
from ...core.records import NamespaceRecord
from ...core.states import RunStatus
from ...core.times import US_PER_MS, US_PER_S, Timestamp
from ...store.protocol import Store

AIM_S = 0.025
ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)
_FIRST_RUNS = 25
_MOST_RUNS = 1_000
_MUCH = 3
_LEFTOVER_ROWS_PER_RUN = 10  # a row of a history costs about a tenth of a run
_NAMESPACES_AT_ONCE = 100
_FORGET_PLACES_AFTER = 100  # sweeps: imports bring old runs, and locked runs have to be retried


class Batch:
    """The batch size, adjusted so that a batch takes about AIM_S. One that takes much longer halves it."""

    def __init__(self) -> None:
        self.runs = _FIRST_RUNS

    def took(self, seconds: float) -> None:
        step = self.runs // 8 + 1
        if seconds > _MUCH * AIM_S:
            self.runs = max(1, self.runs // 2)
        elif seconds > AIM_S:
            self.runs = max(1, self.runs - step)
        else:
            self.runs = min(_MOST_RUNS, self.runs + step)


class _Task(msgspec.Struct, frozen=True):
    namespace: str
    statuses: tuple[RunStatus, ...]
    until: Timestamp


class Retention:
    """A chore (see Housekeeping): each call deletes one batch."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._default_us = settings.retention_ms * US_PER_MS
        self._batch = Batch()
        self._tasks: list[_Task] = []
        self._after_namespace = ""
        self._all_namespaces = False
        self._reached: dict[tuple[str, tuple[RunStatus, ...]], Timestamp] = {}
        self._sweeps = 0

    async def work(self, now: Timestamp) -> bool:
        if self._tasks:
            await self._purge(self._tasks[-1])
            return True
        if not self._all_namespaces:
            await self._plan(now)
            return True
        if await self._clear_leftovers():
            return True
        self._after_namespace, self._all_namespaces = "", False
        self._sweeps += 1
        if self._sweeps % _FORGET_PLACES_AFTER == 0:
            self._reached.clear()
        return False

    async def _plan(self, now: Timestamp) -> None:
        records = await self._store.namespaces_after(self._after_namespace, _NAMESPACES_AT_ONCE)
        self._all_namespaces = len(records) < _NAMESPACES_AT_ONCE
        for record in records:
            self._after_namespace = record.namespace
            self._tasks += self._tasks_of(record, now)

    def _tasks_of(self, record: NamespaceRecord, now: Timestamp) -> Sequence[_Task]:
        """One task for all statuses with the same retention."""
        by_age: dict[int, tuple[RunStatus, ...]] = {}
        for status in ENDED:
            age_us = kept_us(record.retention_seconds, status, self._default_us)
            by_age[age_us] = (*by_age.get(age_us, ()), status)
        return [_Task(record.namespace, statuses, now - age_us) for age_us, statuses in by_age.items()]

    async def _purge(self, task: _Task) -> None:
        loop = asyncio.get_running_loop()
        key = (task.namespace, task.statuses)
        began_s = loop.time()
        purged = await self._store.purge_runs(
            task.namespace,
            task.statuses,
            after=self._reached.get(key, 0),
            until=task.until,
            limit=self._batch.runs,
        )
        if purged.runs:
            self._batch.took(loop.time() - began_s)
        self._reached[key] = min(purged.reached, task.until)
        if not purged.more:
            self._tasks.pop()

    async def _clear_leftovers(self) -> bool:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        more = await self._store.purge_leftovers(self._batch.runs * _LEFTOVER_ROWS_PER_RUN)
        if more:
            self._batch.took(loop.time() - began_s)
        return more


def kept_us(retention_seconds: Mapping[str, int], status: RunStatus, default_us: int) -> int:
    """How long a run that ended with this status is kept."""
    seconds = retention_seconds.get(status.value)
    return default_us if seconds is None else seconds * US_PER_S
