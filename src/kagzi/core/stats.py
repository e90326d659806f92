"""Statistics of a minute, an hour or a day: counts and durations that can be added up.

Percentiles of minutes cannot be merged into one of an hour. So each bucket also counts runs by duration, in 32 classes
of doubling width. The counts are added, and the percentile of any span is read from the sums. It is exact within a
factor of two, the width of a class.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from .times import US_PER_S, Timestamp

MINUTE_US = 60 * US_PER_S
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US

Step: TypeAlias = Literal["1m", "5m", "1h", "1d"]
STEPS: dict[Step, int] = {"1m": MINUTE_US, "5m": 5 * MINUTE_US, "1h": HOUR_US, "1d": DAY_US}
STEP_BUCKETS = 200
"""The maximum number of time steps in one response; each has OTHER and at most this many types:"""
STEP_TYPES = 10
OTHER = ""
"""Used as the type: all types that are not named."""

CLASSES = 32
TOOK_BOUNDS_US = tuple(1_000 << place for place in range(CLASSES - 1))
"""Upper bounds of the classes: class 0 is below 1 ms, class n from 2^(n-1) to below 2^n ms, the last is unbounded."""
NO_TOOK: tuple[int, ...] = ()


class StatsBucket(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of a type that started or ended in the period that begins at `minute`. `p50_us` and `p95_us`: percentiles of
    the durations of ended runs, from their first claim; None if none was ever claimed. For one minute they are exact,
    for longer periods they are read from `took`: counts by class, empty if they were not kept."""

    minute: Timestamp
    workflow_type: str
    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    p50_us: int | None = None
    p95_us: int | None = None
    took: tuple[int, ...] = NO_TOOK

    @property
    def events(self) -> int:
        return self.started + self.completed + self.failed + self.cancelled


def minute_of(at: Timestamp) -> Timestamp:
    return at - at % MINUTE_US


def hour_of(at: Timestamp) -> Timestamp:
    return at - at % HOUR_US


def bounds_of(place: int) -> tuple[int, int | None]:
    """The lower bound of a class, and that of the next class."""
    return TOOK_BOUNDS_US[place - 1] if place else 0, TOOK_BOUNDS_US[place] if place < CLASSES - 1 else None


def percentile_us(took: Sequence[int], percent: int) -> int | None:
    """The approximate percentile, in the class of the exact value. None: no run ended."""
    count = sum(took)
    if not count:
        return None
    rank = max(-(-count * percent // 100), 1)
    below = 0
    for place, here in enumerate(took):
        if below + here >= rank:
            least, end = bounds_of(place)
            return least if end is None else least + (end - least) * (2 * (rank - below) - 1) // (2 * here)
        below += here
    raise AssertionError("a rank is one of those that were counted")


def merge(buckets: Sequence[StatsBucket], begin: Timestamp, workflow_type: str) -> StatsBucket:
    """Merges buckets into one. A single minute keeps its exact values."""
    if len(buckets) == 1:
        return msgspec.structs.replace(buckets[0], minute=begin, workflow_type=workflow_type)
    kept = [bucket.took for bucket in buckets if bucket.took]
    took = tuple(map(sum, zip(*kept, strict=True))) if kept else NO_TOOK
    return StatsBucket(
        minute=begin,
        workflow_type=workflow_type,
        started=sum(bucket.started for bucket in buckets),
        completed=sum(bucket.completed for bucket in buckets),
        failed=sum(bucket.failed for bucket in buckets),
        cancelled=sum(bucket.cancelled for bucket in buckets),
        p50_us=percentile_us(took, 50),
        p95_us=percentile_us(took, 95),
        took=took,
    )


def merge_by(buckets: Iterable[StatsBucket], step_us: int, named: frozenset[str] | None = None) -> list[StatsBucket]:
    """Merges by time step and type, oldest first. Types not in `named` (None: all are) become OTHER."""
    parts: dict[tuple[Timestamp, str], list[StatsBucket]] = {}
    for bucket in buckets:
        name = bucket.workflow_type if named is None or bucket.workflow_type in named else OTHER
        parts.setdefault((bucket.minute - bucket.minute % step_us, name), []).append(bucket)
    return [merge(parts[key], *key) for key in sorted(parts)]


def busiest(buckets: Iterable[StatsBucket], count: int) -> frozenset[str] | None:
    """The types with the most events. None: there are no more types than `count`."""
    events: dict[str, int] = {}
    for bucket in buckets:
        events[bucket.workflow_type] = events.get(bucket.workflow_type, 0) + bucket.events
    if len(events) <= count:
        return None
    return frozenset(sorted(events, key=lambda name: (-events[name], name))[:count])


class LiveStats(msgspec.Struct, frozen=True):
    """Minutes from `since` on, of all types, computed from the runs: they are not stored yet."""

    since: Timestamp
    minutes: tuple[StatsBucket, ...]


class NotedStats(msgspec.Struct, frozen=True):
    """Stored statistics by time step, up to `until`."""

    until: Timestamp
    buckets: tuple[StatsBucket, ...]


def with_live(  # noqa: PLR0917  a span, and its statistics
    noted: NotedStats, live: LiveStats, since: Timestamp, until: Timestamp, step_us: int, workflow_type: str
) -> list[StatsBucket]:
    """The stored statistics, continued with those computed from the runs, which may have been read earlier."""
    begin = max(noted.until, live.since, since)
    newer = (
        bucket
        for bucket in live.minutes
        if begin <= bucket.minute < until and workflow_type in ("", bucket.workflow_type)
    )
    return merge_by((*noted.buckets, *newer), step_us)
