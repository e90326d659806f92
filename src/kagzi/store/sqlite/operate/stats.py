"""Statistics by the minute and by the hour. A reader aggregates the runs; the writer only stores the result."""

from collections.abc import Sequence

from ....core.stats import MINUTE_US, LiveStats, hour_of, minute_of
from ....core.times import Timestamp
from ...operate.stats import Stats, read_minute, roll_up_hours
from ...protocol.stats import ROLLED_UP_AT_MOST_US, ROLLED_UP_AT_ONCE_US
from ..connection.connection import Database, Record
from ..connection.connections import Connections
from ..connection.session import Session, run_to_end
from ..write.fast_path import Writer


class SqliteStats(Stats, Connections):
    """Implements `store.protocol.StatsVerbs`."""

    _rolled_up_until: Timestamp = 0  # includes minutes in which nothing happened, which are not stored

    async def roll_up(self, now: Timestamp) -> bool:
        end = minute_of(now)
        done = self._rolled_up_until or await self._read(_rolled_up)
        if done >= end:
            return False
        begin = done - MINUTE_US if done else await self._read(_first_minute, end - MINUTE_US)
        since = max(begin, end - ROLLED_UP_AT_MOST_US)
        until = min(end, since + ROLLED_UP_AT_ONCE_US)
        minutes = await self._scan("", _minutes, None, since, until)
        # After a long downtime it goes back only so far; but the hour that was incomplete is still summed up.
        left = min(begin, since)
        if minutes or (hour_of(left) < hour_of(until) and await self._read(_has_minutes, left, until)):
            await self._change(_note, minutes, left, until)
        self._rolled_up_until = until
        return until < end

    async def live_stats(self, namespace: str, since: Timestamp, until: Timestamp) -> LiveStats:
        return await self._scan(namespace, _live, namespace, since, until)


def _rolled_up(database: Database) -> Timestamp:
    row = database.row("rolled_up")
    return 0 if row is None else row[0]


def _first_minute(database: Database, otherwise: Timestamp) -> Timestamp:
    row = database.row("first_created")
    return otherwise if row is None or row[0] is None else minute_of(row[0])


def _minutes(database: Database, namespace: str | None, since: Timestamp, until: Timestamp) -> list[Record]:
    return database.records("minutes", {"namespace": namespace, "since": since, "until": until})


def _has_minutes(database: Database, since: Timestamp, until: Timestamp) -> bool:
    """Whether there are minutes in the hours that were over by `until`."""
    return database.row("has_minutes", {"since": hour_of(since), "until": hour_of(until)}) is not None


def _note(writer: Writer, minutes: Sequence[Record], since: Timestamp, until: Timestamp) -> None:
    for minute in minutes:
        writer.database.run("note_minute", minute)
    run_to_end(roll_up_hours(Session(writer.database), since, until))
    writer.database.run("note_rolled_up", (until,))


def _live(database: Database, namespace: str, since: Timestamp, until: Timestamp) -> LiveStats:
    begin = max(since, _rolled_up(database))
    rows = _minutes(database, namespace, begin, until) if begin < until else []
    rows.sort(key=lambda row: (row["minute"], row["workflow_type"]))
    return LiveStats(begin, tuple(map(read_minute, rows)))
