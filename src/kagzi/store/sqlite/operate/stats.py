"""Figures by the minute. Runs are read by the thread that reads; the one that writes only notes what came of it."""

from collections.abc import Sequence

from ....core.stats import MINUTE_US, StatsBucket, minute_of
from ....core.times import Timestamp
from ...protocol.stats import ROLLED_UP_AT_MOST_US, ROLLED_UP_AT_ONCE_US
from ..connection.connection import Database, Row
from ..connection.connections import Lanes
from ..write.fast_path import Writer


class StatsDesk(Lanes):
    """Keeps `store.protocol.StatsVerbs`."""

    _looked_until: Timestamp = 0  # nothing happened since that was last noted

    async def roll_up(self, now: Timestamp) -> bool:
        end = minute_of(now)
        done = self._looked_until or await self._read(_rolled_up)
        if done >= end:
            return False
        left = done - MINUTE_US if done else await self._read(_first_minute, end - MINUTE_US)
        since = max(left, end - ROLLED_UP_AT_MOST_US)
        until = min(end, since + ROLLED_UP_AT_ONCE_US)
        minutes = await self._scan("", _minutes, None, since, until)
        if minutes:
            await self._change(_note, minutes, until)
        self._looked_until = until
        return until < end

    async def stats(
        self, namespace: str, workflow_type: str, since: Timestamp, until: Timestamp, limit: int
    ) -> Sequence[StatsBucket]:
        return await self._scan(namespace, _stats, namespace, workflow_type, (since, until), limit)

    async def purge_stats(self, before: Timestamp, limit: int) -> bool:
        return await self._change(_purge_stats, before, limit)


def _rolled_up(database: Database) -> Timestamp:
    row = database.row("rolled_up")
    return 0 if row is None else row[0]


def _first_minute(database: Database, otherwise: Timestamp) -> Timestamp:
    row = database.row("first_created")
    return otherwise if row is None or row[0] is None else minute_of(row[0])


def _minutes(database: Database, namespace: str | None, since: Timestamp, until: Timestamp) -> list[Row]:
    return database.rows("minutes", {"namespace": namespace, "since": since, "until": until})


def _note(writer: Writer, minutes: Sequence[Row], until: Timestamp) -> None:
    for row in minutes:
        writer.database.run("note_minute", row)
    writer.database.run("note_rolled_up", (until,))


def _stats(
    database: Database, namespace: str, workflow_type: str, span: tuple[Timestamp, Timestamp], limit: int
) -> list[StatsBucket]:
    since, until = span
    live_since = max(since, _rolled_up(database))
    given = {"namespace": namespace, "workflow_type": workflow_type, "since": since, "limit": limit}
    rows = database.rows("stats", given | {"until": min(until, live_since)})
    live = _minutes(database, namespace, live_since, until) if live_since < until else []
    rows += sorted(
        (row for row in live if not workflow_type or row[1] == workflow_type), key=lambda row: (row[2], row[1])
    )
    return [_bucket(row) for row in rows[:limit]]


def _bucket(row: Row) -> StatsBucket:
    _, workflow_type, minute, started, completed, failed, cancelled, p50_us, p95_us = row
    return StatsBucket(
        minute=minute,
        workflow_type=workflow_type,
        started=started,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        p50_us=p50_us,
        p95_us=p95_us,
    )


def _purge_stats(writer: Writer, before: Timestamp, limit: int) -> bool:
    return writer.database.run("purge_stats", {"before": before, "limit": limit}) >= limit
