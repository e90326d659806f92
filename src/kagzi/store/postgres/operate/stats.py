"""Statistics by the minute."""

from collections.abc import Sequence

from ....core.stats import StatsBucket, minute_of
from ....core.times import Timestamp
from ...operate.stats import Stats, read_bucket
from ...protocol.stats import ROLLED_UP_AT_MOST_US, ROLLED_UP_AT_ONCE_US
from ..connection.connections import Connections


class PostgresStats(Stats, Connections):
    """Implements `store.protocol.StatsVerbs`."""

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
        return [read_bucket(row) for row in rows]
