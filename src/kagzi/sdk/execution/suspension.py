"""A run that can only wait leaves its worker: its coroutine is kept for a while, or unwound by `Suspended`."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")

KEPT_RUNS_MAX = 1_000
KEPT_S = 300.0


class Suspended(BaseException):
    """Unwinds workflow code whose run goes on elsewhere or later. Not an Exception: `except Exception` must not see it.

    Cleanup that runs meanwhile cannot record anything: ctx calls raise this again.
    """


class KeptRuns(Generic[K]):
    """Parked runs whose coroutines wait here, by run id; at most so many, each for so long. What is dropped is unwound."""

    def __init__(
        self,
        drop: Callable[[K], None],
        *,
        loop: asyncio.AbstractEventLoop,
        count_max: int = KEPT_RUNS_MAX,
        age_max_s: float = KEPT_S,
    ) -> None:
        self._drop = drop
        self._loop = loop
        self._count_max = count_max
        self._age_max_s = age_max_s
        self._kept: OrderedDict[str, tuple[float, K]] = OrderedDict()
        self._sweep: asyncio.TimerHandle | None = None

    def keep(self, run_id: str, run: K, *, wakes_in_s: float | None) -> None:
        """Keep the run if it is likely to be back in time. Otherwise, or when there are too many, drop one."""
        if self._count_max == 0 or wakes_in_s is None or wakes_in_s > self._age_max_s:
            self._drop(run)
            return
        previous = self.take(run_id)
        if previous is not None:
            self._drop(previous)
        self._kept[run_id] = (self._loop.time() + self._age_max_s, run)
        if len(self._kept) > self._count_max:
            self._drop(self._kept.popitem(last=False)[1][1])
        self._arm()

    def take(self, run_id: str) -> K | None:
        kept = self._kept.pop(run_id, None)
        return None if kept is None else kept[1]

    def drop_all(self) -> None:
        while self._kept:
            self._drop(self._kept.popitem(last=False)[1][1])
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def __len__(self) -> int:
        return len(self._kept)

    def _arm(self) -> None:
        if self._sweep is None and self._kept:
            oldest = next(iter(self._kept.values()))[0]
            self._sweep = self._loop.call_at(oldest, self._drop_old)

    def _drop_old(self) -> None:
        self._sweep = None
        now = self._loop.time()
        while self._kept and next(iter(self._kept.values()))[0] <= now:
            self._drop(self._kept.popitem(last=False)[1][1])
        self._arm()
