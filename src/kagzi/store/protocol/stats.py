"""Figures for charts."""

from typing import Protocol

from ...core.stats import LiveStats, NotedStats
from ...core.times import Timestamp

ROLLED_UP_AT_ONCE_US = 300_000_000
ROLLED_UP_AT_MOST_US = 86_400_000_000
"""So far back it goes when it was never done, or not for long."""


class StatsVerbs(Protocol):
    """Per minute and per hour, kept apart from the runs: what happened stays known when they are gone."""

    async def roll_up(self, now: Timestamp) -> bool:
        """Note what happened in the minutes that have passed since this was last done, and in the one before again; a
        few of them at a time; and sum up the hours that are over, in the same transaction. Returns whether there are
        more. Whoever does it twice changes nothing."""
        ...

    async def stats(  # noqa: PLR0917  a question, and how much of an answer
        self, namespace: str, workflow_type: str, since: Timestamp, until: Timestamp, step_us: int, limit: int, /
    ) -> NotedStats:
        """By steps (one of core.stats.STEPS) from `since` to before `until`, both whole steps, oldest first, at most
        `limit` of times and types: as they were noted. Hours are read instead of minutes if the steps are as long."""
        ...

    async def live_stats(self, namespace: str, since: Timestamp, until: Timestamp, /) -> LiveStats:
        """The minutes before `until` that are not noted yet, none before `since`, as the runs tell: of all types."""
        ...

    async def purge_stats(self, minutes_before: Timestamp, hours_before: Timestamp, limit: int, /) -> bool:
        """Forget up to `limit` minutes, and hours, before that. Returns whether there may be more."""
        ...
