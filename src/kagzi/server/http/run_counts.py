"""The counts of runs that the dashboard shows for a namespace: computed once for all concurrent viewers."""

from functools import partial
from typing import NamedTuple

from ...core.providers import Clock
from ...core.records import RunFilter
from ...core.states import OPEN, RunStatus
from ...core.times import US_PER_S, Timestamp
from ...engine import Runs, Shared

SHARED_S = 5.0
_DAY_US = 86_400 * US_PER_S


class RunCount(NamedTuple):
    runs: int
    capped: bool  # there are more


class RunCounts(NamedTuple):
    """`in_flight`: open and not paused. `failed`: those that ended in the last 24 hours."""

    in_flight: RunCount
    failing: RunCount
    waiting: RunCount
    paused: RunCount
    failed: RunCount


class CountedRuns:
    def __init__(self, runs: Runs, clock: Clock) -> None:
        self._runs = runs
        self._clock = clock
        self._shared: Shared[RunCounts] = Shared(SHARED_S)

    async def get(self, namespace: str) -> RunCounts:
        """The counts, at most SHARED_S old. Raises InvalidArgument, Unavailable."""
        return await self._shared.get(namespace, partial(self._count, namespace))

    async def _count(self, namespace: str) -> RunCounts:
        since = self._clock.now() - _DAY_US
        return RunCounts(*[RunCount(*await self._runs.count(namespace, where)) for where in _filters(since)])


def _filters(since: Timestamp) -> tuple[RunFilter, ...]:
    """In the order of the fields of RunCounts."""
    return (
        RunFilter(statuses=tuple(status for status in RunStatus if status in OPEN and status is not RunStatus.PAUSED)),
        RunFilter(failing=True),
        RunFilter(waiting=True),
        RunFilter(statuses=(RunStatus.PAUSED,)),
        RunFilter(statuses=(RunStatus.FAILED,), ended_after=since),
    )
