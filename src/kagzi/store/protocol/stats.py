"""Figures for charts."""

from collections.abc import Sequence
from typing import Protocol

from ...core.stats import StatsBucket
from ...core.times import Timestamp

ROLLED_UP_AT_ONCE_US = 300_000_000
ROLLED_UP_AT_MOST_US = 86_400_000_000
"""So far back it goes when it was never done, or not for long."""


class StatsVerbs(Protocol):
    """Per minute, kept apart from the runs: what happened stays known when they are gone."""

    async def roll_up(self, now: Timestamp) -> bool:
        """Note what happened in the minutes that have passed since this was last done, and in the one before again; a
        few of them at a time. Returns whether there are more. Whoever does it twice changes nothing."""
        ...

    async def stats(
        self, namespace: str, workflow_type: str, since: Timestamp, until: Timestamp, limit: int
    ) -> Sequence[StatsBucket]:
        """Minutes from `since` to before `until` (both whole minutes), oldest first, at most `limit`: as they were
        noted, and the latest as the runs tell."""
        ...

    async def purge_stats(self, before: Timestamp, limit: int) -> bool:
        """Forget up to `limit` minutes before that. Returns whether there may be more."""
        ...
