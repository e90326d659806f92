"""What happens, in figures: minute by minute, and what is open at the moment."""

from collections.abc import Mapping

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument
from ...core.providers import Clock
from ...core.records import RunFilter
from ...core.states import OPEN, RunStatus
from ...core.stats import MINUTE_US, StatsBucket, minute_of
from ...core.times import Timestamp
from ...store.protocol import Store
from ..checks import requests as checks

_DEFAULT_SPAN_US = 60 * MINUTE_US
_PURGED_ROWS = 1_000


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """`open_is_capped`: at least one of the counts stopped at the cap."""

    buckets: tuple[StatsBucket, ...]
    open_by_status: Mapping[RunStatus, int]
    open_is_capped: bool


class Stats:
    """`roll_up` and `forget` are chores (see Housekeeping)."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(
        self, namespace: str, *, since: Timestamp | None, until: Timestamp | None, workflow_type: str
    ) -> Figures:
        """Whole minutes from the one of `since` (default: an hour before the end) to the one before `until` (default:
        now, and the minute that has begun). Raises InvalidArgument."""
        checks.name(namespace, "namespace")
        checks.optional_name(workflow_type, "workflow_type")
        checks.timestamp(since, "since")
        checks.timestamp(until, "until")
        end = minute_of((self._clock.now() if until is None else until - 1) + MINUTE_US)
        begin = end - _DEFAULT_SPAN_US if since is None else minute_of(since)
        if begin >= end:
            raise InvalidArgument("since is not before until. Give an earlier one.", field="since")
        buckets = await self._store.stats(namespace, workflow_type, begin, end, limits.STATS_BUCKETS + 1)
        if len(buckets) > limits.STATS_BUCKETS:
            raise InvalidArgument(
                f"more than {limits.STATS_BUCKETS} minutes and types are in this span. "
                "Shorten it, or name a workflow_type.",
                field="since",
            )
        types = (workflow_type,) if workflow_type else ()
        counts = {
            status: await self._store.count_runs(
                namespace, RunFilter(statuses=(status,), workflow_types=types), limits.COUNT_CAP
            )
            for status in RunStatus
            if status in OPEN
        }
        return Figures(
            buckets=tuple(buckets),
            open_by_status=counts,
            open_is_capped=any(count >= limits.COUNT_CAP for count in counts.values()),
        )

    async def roll_up(self, now: Timestamp) -> bool:
        return await self._store.roll_up(now)

    async def forget(self, now: Timestamp) -> bool:
        return await self._store.purge_stats(now - limits.STATS_KEPT_US, _PURGED_ROWS)
