"""Figures by the minute."""

from collections.abc import Sequence

from ....core.stats import StatsBucket, minute_of
from ....core.times import Timestamp
from ...protocol.stats import ROLLED_UP_AT_MOST_US, ROLLED_UP_AT_ONCE_US
from ..connection.connection import Row
from ..connection.connections import Links


class StatsDesk(Links):
    """Keeps `store.protocol.StatsVerbs`."""

    async def roll_up(self, now: Timestamp) -> bool:
        # It writes: not on a connection that answers readers while commits wait for a standby.
        async with self._scans.take(""), self._questions.use(confirm=False) as session:
            rows = await session.write(
                "roll_up", now=minute_of(now), most_us=ROLLED_UP_AT_MOST_US, most_at_once_us=ROLLED_UP_AT_ONCE_US
            )
        return bool(rows) and bool(rows[0]["more"])

    async def stats(
        self, namespace: str, workflow_type: str, since: Timestamp, until: Timestamp, limit: int
    ) -> Sequence[StatsBucket]:
        async with self._scan(namespace) as session:
            rows = await session.read(
                "stats", namespace=namespace, workflow_type=workflow_type, since=since, until=until, limit=limit
            )
        return [_bucket(row) for row in rows]

    async def purge_stats(self, before: Timestamp, limit: int) -> bool:
        async with self._questions.use(confirm=False) as session:
            [row] = await session.write("purge_stats", before=before, limit=limit)
        removed: int = row["removed"]
        return removed == limit


def _bucket(row: Row) -> StatsBucket:
    return StatsBucket(
        minute=row["minute"],
        workflow_type=row["workflow_type"],
        started=row["started"],
        completed=row["completed"],
        failed=row["failed"],
        cancelled=row["cancelled"],
        p50_us=row["p50_us"],
        p95_us=row["p95_us"],
    )
