"""Statistics by the minute and by the hour."""

from ...core.stats import CLASSES, HOUR_US, NO_TOOK, NotedStats, StatsBucket, hour_of, percentile_us
from ...core.times import Timestamp
from ..rows import Row
from ..sessions import Purpose, Session, Sessions, first, scan, verb

_TOOK = tuple(f"took_{place}" for place in range(CLASSES))
_COUNTS = ("workflow_type", "minute", "started", "completed", "failed", "cancelled")


def read_minute(row: Row) -> StatsBucket:
    return StatsBucket(
        **{name: row[name] for name in _COUNTS}, p50_us=row["p50_us"], p95_us=row["p95_us"], took=_took(row)
    )


def _took(row: Row) -> tuple[int, ...]:
    took = tuple(row[name] or 0 for name in _TOOK)
    return took if any(took) else NO_TOOK


def _read_step(row: Row) -> StatsBucket:
    """Exact for a single minute; several are merged."""
    if row["parts"] == 1 and row["p50_us"] is not None:
        return read_minute(row)
    took = _took(row)
    counts = {name: row[name] for name in _COUNTS}
    return StatsBucket(**counts, p50_us=percentile_us(took, 50), p95_us=percentile_us(took, 95), took=took)


async def _noted(  # noqa: PLR0917  a query and its limit
    session: Session,
    namespace: str,
    workflow_type: str,
    since: Timestamp,
    until: Timestamp,
    step_us: int,
    limit: int,
) -> NotedStats:
    row = await first(session, "rolled_up")
    noted_until: Timestamp = 0 if row is None else row["minute"]
    hours_until = min(hour_of(noted_until), until) if step_us >= HOUR_US else 0
    rows = await session.read(
        "noted_stats",
        namespace=namespace,
        workflow_type=workflow_type,
        since=since,
        until=min(until, noted_until),
        hours_until=hours_until,
        minutes_since=max(since, hours_until),
        step_us=step_us,
        limit=limit,
    )
    return NotedStats(noted_until, tuple(map(_read_step, rows)))


async def roll_up_hours(session: Session, since: Timestamp, until: Timestamp) -> None:
    """Sum up the hours that were over by `until` and have a minute recorded since `since`, also if they were summed up
    before. Runs in the transaction that records the minutes."""
    if hour_of(since) < hour_of(until):
        await session.read("roll_up_hours", since=hour_of(since), until=hour_of(until))


async def _purge(session: Session, minutes_before: Timestamp, hours_before: Timestamp, limit: int) -> bool:
    minutes = await session.write("purge_stats", before=minutes_before, limit=limit)
    hours = await session.write("purge_hours", before=hours_before, limit=limit)
    return max(len(minutes), len(hours)) >= limit


class Stats(Sessions):
    """Implements `store.protocol.StatsVerbs`, except what reads the runs themselves."""

    stats = scan(_noted)
    purge_stats = verb(Purpose.CHORE, _purge)
