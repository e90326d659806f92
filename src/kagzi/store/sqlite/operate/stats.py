"""Statistics by the minute. A reading thread aggregates the runs; the writer only records the result."""

from collections.abc import Sequence

from ....core.stats import MINUTE_US, StatsBucket, minute_of
from ....core.times import Timestamp
from ...operate.stats import Stats, read_bucket
from ...protocol.stats import ROLLED_UP_AT_MOST_US, ROLLED_UP_AT_ONCE_US
from ..connection.connection import Database, Record
from ..connection.connections import Connections
from ..write.fast_path import Writer


class SqliteStats(Stats, Connections):
    """Implements `store.protocol.StatsVerbs`."""

    _rolled_up_until: Timestamp = 0  # also where nothing happened, which is not recorded

    async def roll_up(self, now: Timestamp) -> bool:
        end = minute_of(now)
        done = self._rolled_up_until or await self._read(_rolled_up)
        if done >= end:
            return False
        begin = done - MINUTE_US if done else await self._read(_first_minute, end - MINUTE_US)
        since = max(begin, end - ROLLED_UP_AT_MOST_US)
        until = min(end, since + ROLLED_UP_AT_ONCE_US)
        minutes = await self._scan("", _minutes, None, since, until)
        if minutes:
            await self._change(_note, minutes, until)
        self._rolled_up_until = until
        return until < end

    async def stats(
        self, namespace: str, workflow_type: str, since: Timestamp, until: Timestamp, limit: int
    ) -> Sequence[StatsBucket]:
        return await self._scan(namespace, _stats, namespace, workflow_type, (since, until), limit)


def _rolled_up(database: Database) -> Timestamp:
    row = database.row("rolled_up")
    return 0 if row is None else row[0]


def _first_minute(database: Database, otherwise: Timestamp) -> Timestamp:
    row = database.row("first_created")
    return otherwise if row is None or row[0] is None else minute_of(row[0])


def _minutes(database: Database, namespace: str | None, since: Timestamp, until: Timestamp) -> list[Record]:
    return database.records("minutes", {"namespace": namespace, "since": since, "until": until})


def _note(writer: Writer, minutes: Sequence[Record], until: Timestamp) -> None:
    for minute in minutes:
        writer.database.run("note_minute", minute)
    writer.database.run("note_rolled_up", (until,))


def _stats(
    database: Database, namespace: str, workflow_type: str, span: tuple[Timestamp, Timestamp], limit: int
) -> list[StatsBucket]:
    since, until = span
    live_since = max(since, _rolled_up(database))
    rows = database.records(
        "stats",
        {
            "namespace": namespace,
            "workflow_type": workflow_type,
            "since": since,
            "until": min(until, live_since),
            "limit": limit,
        },
    )
    live = _minutes(database, namespace, live_since, until) if live_since < until else []
    rows += sorted(
        (row for row in live if not workflow_type or row["workflow_type"] == workflow_type),
        key=lambda row: (row["minute"], row["workflow_type"]),
    )
    return [read_bucket(row) for row in rows[:limit]]
