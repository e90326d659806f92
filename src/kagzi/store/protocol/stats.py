"""Statistics for charts."""

from typing import Protocol

from ...core.stats import LiveStats, NotedStats
from ...core.times import Timestamp

ROLLED_UP_AT_ONCE_US = 300_000_000
ROLLED_UP_AT_MOST_US = 86_400_000_000
"""How far back a roll-up goes if there was none before, or none for a long time."""


class StatsVerbs(Protocol):
    """Statistics per minute and per hour. They are stored apart from the runs and outlive them."""

    async def roll_up(self, now: Timestamp) -> bool:
        """Record the minutes that have passed since the last roll-up, and the last recorded one again, a few at a time;
        and sum up the completed hours, in the same transaction. Returns whether there are more. Idempotent."""
        ...

    async def stats(  # noqa: PLR0917  a query and its limit
        self, namespace: str, workflow_type: str, since: Timestamp, until: Timestamp, step_us: int, limit: int, /
    ) -> NotedStats:
        """Recorded statistics by time steps (of core.stats.STEPS) from `since` to before `until`, both multiples of a
        step, oldest first; at most `limit` pairs of time and type. Steps of an hour or more are read from hours."""
        ...

    async def live_stats(self, namespace: str, since: Timestamp, until: Timestamp, /) -> LiveStats:
        """The minutes from `since` to before `until` that are not recorded yet, computed from the runs of all types."""
        ...

    async def purge_stats(self, minutes_before: Timestamp, hours_before: Timestamp, limit: int, /) -> bool:
        """Delete up to `limit` minutes, and as many hours, before these times. Returns whether there may be more."""
        ...
