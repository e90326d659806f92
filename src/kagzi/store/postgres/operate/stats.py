"""Statistics by the minute and by the hour."""

from ....core.stats import LiveStats, minute_of
from ....core.times import Timestamp
from ...operate.stats import Stats, read_minute, roll_up_hours
from ...protocol.stats import ROLLED_UP_AT_MOST_US, ROLLED_UP_AT_ONCE_US
from ..connection.connections import Connections


class PostgresStats(Stats, Connections):
    """Implements `store.protocol.StatsVerbs`."""

    async def roll_up(self, now: Timestamp) -> bool:
        # It writes, so it does not use a connection that must serve reads while commits wait for a standby.
        async with (
            self._scans.take(""),
            self._questions.use(confirm=False) as session,
            session.transaction(),
        ):
            rows = await session.read(
                "roll_up", now=minute_of(now), most_us=ROLLED_UP_AT_MOST_US, most_at_once_us=ROLLED_UP_AT_ONCE_US
            )
            for row in rows:
                await roll_up_hours(session, row["hours_since"], row["until"])
        return bool(rows) and bool(rows[0]["more"])

    async def live_stats(self, namespace: str, since: Timestamp, until: Timestamp) -> LiveStats:
        async with self._scan(namespace) as session:
            rows = await session.read("live_stats", namespace=namespace, since=since, until=until)
        minutes = tuple(read_minute(row) for row in rows if row["minute"] is not None)
        return LiveStats(rows[0]["since"], minutes)
