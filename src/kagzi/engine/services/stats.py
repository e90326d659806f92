"""Statistics: events by minute or in longer steps, and the runs that are open now."""

from collections.abc import Mapping
from typing import cast

import msgspec

from ...core import limits
from ...core.errors import InvalidArgument
from ...core.providers import Clock
from ...core.records import RunFilter
from ...core.states import OPEN, RunStatus
from ...core.stats import (
    HOUR_US,
    MINUTE_US,
    STEP_BUCKETS,
    STEP_TYPES,
    STEPS,
    LiveStats,
    StatsBucket,
    Step,
    busiest,
    merge_by,
    minute_of,
    with_live,
)
from ...core.times import Timestamp
from ...store.protocol import Store
from ..checks import requests as checks
from .shared import Shared

_DEFAULT_STEPS = 60
_PURGED_ROWS = 1_000


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """`buckets`: oldest first, by type. `open_is_capped`: at least one of the counts stopped at the cap."""

    buckets: tuple[StatsBucket, ...]
    open_by_status: Mapping[RunStatus, int]
    open_is_capped: bool
    step: Step = "1m"


class Stats:
    """`roll_up` and `forget` are chores (see Housekeeping). What has to be read from the runs (the current minute, open
    runs) is cached for STATS_SHARED_S."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._live: Shared[LiveStats] = Shared(limits.STATS_SHARED_S)
        self._open: Shared[Mapping[RunStatus, int]] = Shared(limits.STATS_SHARED_S)

    async def get(
        self,
        namespace: str,
        *,
        since: Timestamp | None,
        until: Timestamp | None,
        workflow_type: str,
        step: str = "",
    ) -> Figures:
        """Whole steps from the one of `since` (default: 60 steps before the end) to the one before `until` (default:
        now, including the current step). With a `step` ("1m", "5m", "1h", "1d"): at most STEP_BUCKETS steps, each with
        the STEP_TYPES types that have the most events, and the others as one. Without: every minute of every type.
        Raises InvalidArgument."""
        checks.name(namespace, "namespace")
        checks.optional_name(workflow_type, "workflow_type")
        checks.timestamp(since, "since")
        checks.timestamp(until, "until")
        step_us = _step_us(step)
        last = self._clock.now() if until is None else until - 1
        end = last - last % step_us + step_us
        begin = end - _DEFAULT_STEPS * step_us if since is None else since - since % step_us
        if begin >= end:
            raise InvalidArgument("since is not before until. Give an earlier one.", field="since")
        if step and (end - begin) // step_us > STEP_BUCKETS:
            raise InvalidArgument(
                f"there are {(end - begin) // step_us} steps of {step} in this span; at most {STEP_BUCKETS} are shown. "
                "Shorten it, or take longer steps.",
                field="since",
            )
        noted = await self._store.stats(namespace, workflow_type, begin, end, step_us, limits.STATS_BUCKETS + 1)
        buckets = with_live(noted, await self._minutes_of(namespace), begin, end, step_us, workflow_type)
        if len(buckets) > limits.STATS_BUCKETS:
            raise InvalidArgument(
                f"more than {limits.STATS_BUCKETS} {'steps' if step else 'minutes'} and types are in this span. "
                "Shorten it, or name a workflow_type.",
                field="since",
            )
        if step and (named := busiest(buckets, STEP_TYPES)) is not None:
            buckets = merge_by(buckets, step_us, named)
        counts = await self._open.get((namespace, workflow_type), lambda: self._count_open(namespace, workflow_type))
        return Figures(
            buckets=tuple(buckets),
            open_by_status=counts,
            open_is_capped=any(count >= limits.COUNT_CAP for count in counts.values()),
            step=cast("Step", step or "1m"),
        )

    async def _minutes_of(self, namespace: str) -> LiveStats:
        """What is not rolled up yet: a minute or two, unless no server has run for a while."""
        until = minute_of(self._clock.now()) + MINUTE_US
        return await self._live.get(
            namespace, lambda: self._store.live_stats(namespace, until - _DEFAULT_STEPS * MINUTE_US, until)
        )

    async def _count_open(self, namespace: str, workflow_type: str) -> Mapping[RunStatus, int]:
        types = (workflow_type,) if workflow_type else ()
        return {
            status: await self._store.count_runs(
                namespace, RunFilter(statuses=(status,), workflow_types=types), limits.COUNT_CAP
            )
            for status in RunStatus
            if status in OPEN
        }

    async def roll_up(self, now: Timestamp) -> bool:
        return await self._store.roll_up(now)

    async def forget(self, now: Timestamp) -> bool:
        minutes_before, hours_before = now - limits.STATS_KEPT_US, now - limits.STATS_HOURS_KEPT_US
        return await self._store.purge_stats(minutes_before, hours_before - hours_before % HOUR_US, _PURGED_ROWS)


def _step_us(step: str) -> int:
    if not step:
        return MINUTE_US
    for known, step_us in STEPS.items():
        if known == step:
            return step_us
    raise InvalidArgument(f"step={step!r} must be one of {', '.join(STEPS)}.", field="step")
