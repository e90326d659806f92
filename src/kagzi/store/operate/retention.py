"""Deletes runs that have ended. A store selects them without locks, then locks and checks them, and deletes them."""

from collections.abc import Sequence

from ...core.times import Timestamp
from ..protocol.retention import Purged
from ..rows import Row
from ..sessions import Purpose, Session, Sessions, first, verb


def purged(ended: Sequence[Row], deleted: int, until: Timestamp, limit: int) -> Purged:
    """`ended`: the selected runs, oldest first, at most `limit`. Some may be locked or must be kept."""
    more = len(ended) == limit
    return Purged(deleted, ended[-1]["finished_at"] if more else until, more=more and bool(deleted))


async def _purge_leftovers(session: Session, limit: int) -> bool:
    async with session.transaction():
        leftover = await first(session, "next_leftover")
        if leftover is None:
            return False
        run_id: str = leftover["run_id"]
        remaining = limit
        for statement in _PARTS:
            if remaining > 0:
                remaining -= len(await session.read(statement, run_id=run_id, limit=remaining))
        if remaining > 0:
            await session.read("end_leftover", run_id=run_id)
    return True


_PARTS = (
    "delete_some_signals",
    "delete_some_attempts",
    "delete_some_logs",
    "delete_some_forgotten_steps",
    "delete_some_steps",
)


async def _claim_chore(session: Session, name: str, now: Timestamp, until: Timestamp) -> bool:
    return bool(await session.write("claim_chore", name=name, now=now, until=until))


class Retention(Sessions):
    """Implements `store.protocol.RetentionVerbs`, except the deletion of whole runs."""

    purge_leftovers = verb(Purpose.CHORE, _purge_leftovers)
    claim_chore = verb(Purpose.CHORE, _claim_chore)
