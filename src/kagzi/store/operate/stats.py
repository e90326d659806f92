"""Statistics by the minute."""

from ...core.stats import StatsBucket
from ...core.times import Timestamp
from ..rows import Row
from ..sessions import Purpose, Session, Sessions, verb


def read_bucket(row: Row) -> StatsBucket:
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


async def _purge(session: Session, before: Timestamp, limit: int) -> bool:
    return len(await session.write("purge_stats", before=before, limit=limit)) >= limit


class Stats(Sessions):
    """Implements `store.protocol.StatsVerbs`, except what reads the runs themselves."""

    purge_stats = verb(Purpose.CHORE, _purge)
