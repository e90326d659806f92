"""Metrics of the store's contents: read on demand, and cached for some seconds.

Every server reads the same, so every server shows the same. Nothing is read while nobody asks.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ...core.errors import KagziError
from ...core.providers import Clock
from ...core.states import WorkerStatus
from ...core.times import US_PER_S, Timestamp
from ...store.protocol import QueueGauge, Store
from ..services.explain.limit_reasons import limited_by
from .measurements import NAMESPACES, PAIRS, WORKFLOW_TYPES, Measurements
from .values import OTHER, Labels, Sample, Samples

logger = logging.getLogger("kagzi.engine")

SHARED_S = 10.0
STALE_S = 60.0
"""Older values are not shown."""
WAIT_S = 0.5
"""How long a request waits for the store before it gets the previous values."""
COUNTED_RUNS = 100_000
OPEN_NAMESPACES = 200
WORKERS = 10_000
LIMITED_TYPES = 50
"""How many types with limits are checked for what limits them."""
_TIMEOUT_S = 20.0


class StoreGauges:
    """`alive_since`: a worker that has not reported since then is offline."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        measurements: Measurements,
        alive_since: Callable[[Timestamp], Timestamp],
    ) -> None:
        self._store = store
        self._clock = clock
        self._measurements = measurements
        self._alive_since = alive_since
        self._samples: Samples = {}
        self._read_s: float | None = None
        self._asking: asyncio.Task[None] | None = None
        self._failing = False

    async def admit_names(self) -> None:
        """Admits the names that all servers know, before names that only come up here. If the store is unavailable,
        they are read on demand."""
        try:
            async with asyncio.timeout(WAIT_S):
                namespaces, types = await self._store.first_names(namespaces=NAMESPACES, types=WORKFLOW_TYPES)
        except (KagziError, TimeoutError) as error:
            logger.warning("metrics name what comes first: %s", error)
            return
        self._measurements.namespaces.admit_all(namespaces)
        self._measurements.workflow_types.admit_all(types)

    async def samples(self) -> Samples:
        """Empty if the store has not responded for a minute."""
        loop = asyncio.get_running_loop()
        if self._read_s is None or loop.time() - self._read_s >= SHARED_S:
            if self._asking is None:
                self._asking = loop.create_task(self._ask(), name="kagzi gauges")
            await asyncio.wait((self._asking,), timeout=WAIT_S)
        if self._read_s is None or loop.time() - self._read_s >= STALE_S:
            return {}
        return self._samples

    async def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                samples = await self._read(self._clock.now())
        except (KagziError, TimeoutError) as error:
            if not self._failing:
                logger.warning("metrics show nothing that only the database knows: %s", error)
            self._failing = True
        else:
            self._failing = False
            self._samples, self._read_s = samples, asyncio.get_running_loop().time()
        finally:
            self._asking = None

    async def _read(self, now: Timestamp) -> Samples:
        alive_since = self._alive_since(now)
        queues = await self._store.queue_gauges(alive_since, types=PAIRS, runs=COUNTED_RUNS)
        limited = await self._limited(queues, now)
        open_runs = await self._store.open_run_gauges(namespaces=OPEN_NAMESPACES, runs=COUNTED_RUNS)
        workers = await self._store.worker_gauges(alive_since, workers=WORKERS)
        depth: Counter[Labels] = Counter()
        oldest: dict[Labels, float] = {}
        for queue in queues:
            labels = self._labels(queue)
            depth[labels] += queue.waiting
            age_s = max(now - (queue.oldest_since or now), 0) / US_PER_S
            oldest[labels] = max(age_s, oldest.get(labels, 0.0))
        present: Counter[Labels] = Counter()
        slots: Counter[Labels] = Counter()
        for each in workers:
            namespace = self._measurements.namespaces.admit(each.namespace)
            present[namespace, each.status.value] += each.workers
            slots[namespace, "used"] += each.used
            if each.status is WorkerStatus.ONLINE:
                slots[namespace, "free"] += max(each.slots - each.used, 0)
        opened: Counter[Labels] = Counter()
        retrying: Counter[Labels] = Counter()
        awaiting: Counter[Labels] = Counter()
        for one in open_runs:
            namespace = self._measurements.namespaces.admit(one.namespace)
            opened.update({(namespace, status.value): runs for status, runs in one.by_status.items()})
            retrying[namespace,] += one.retrying
            awaiting[namespace,] += one.awaiting_signal
        return {
            "kagzi_queue_depth": _samples(depth),
            "kagzi_queue_oldest_age_seconds": _samples(oldest),
            "kagzi_queue_held_back": _samples(limited),
            "kagzi_open_runs": _samples(opened),
            "kagzi_runs_retrying": _samples(retrying),
            "kagzi_runs_awaiting_signal": _samples(awaiting),
            "kagzi_workers": _samples(present),
            "kagzi_worker_slots": _samples(slots),
        }

    def _labels(self, queue: QueueGauge) -> Labels:
        if not queue.key.workflow_type:
            return OTHER, OTHER
        return self._measurements.labels(*queue.key)

    async def _limited(self, queues: Sequence[QueueGauge], now: Timestamp) -> Mapping[Labels, int]:
        limited: Counter[Labels] = Counter()
        for queue in queues:
            if not queue.served:
                limited[*self._labels(queue), "no_worker"] += queue.waiting
        for queue in [queue for queue in queues if queue.served and queue.limited][:LIMITED_TYPES]:
            pressure = await self._store.type_pressure(*queue.key, "")
            limit = None if pressure is None else limited_by(pressure, queue.key.workflow_type, "", now)
            if limit is not None:
                limited[*self._labels(queue), limit.reason] += queue.waiting
            elif pressure is not None and pressure.limits.by_key:
                limited[*self._labels(queue), "key_limit"] += queue.waiting
        return limited


def _samples(values: Mapping[Labels, float]) -> list[Sample]:
    return list(values.items())
