"""Deletes runs that have ended. They are selected without locks, then locked and checked, then deleted."""

from collections.abc import Sequence

from ....core.states import CODE_OF_RUN_STATUS, RunStatus
from ....core.times import Timestamp
from ...operate.retention import Retention, purged
from ...protocol.retention import LONG_HISTORY_SEQ, Purged
from ...rows import read_labels
from ..connection.connection import Session
from ..connection.connections import Connections


class PostgresRetention(Retention, Connections):
    """Implements `store.protocol.RetentionVerbs`."""

    async def purge_runs(
        self, namespace: str, statuses: Sequence[RunStatus], *, after: Timestamp, until: Timestamp, limit: int
    ) -> Purged:
        codes = [int(CODE_OF_RUN_STATUS[status]) for status in statuses]
        async with self._questions.use(confirm=False) as session:
            ended = await session.read(
                "ended_runs", namespace=namespace, after=after, until=until, statuses=codes, limit=limit
            )
            run_ids = [row["run_id"] for row in ended]
            deleted = await _delete_runs(session, namespace, run_ids, until) if run_ids else ()
        return purged(ended, len(deleted), until, limit)

    async def delete_runs(self, namespace: str, run_ids: Sequence[str], *, until: Timestamp) -> Sequence[str]:
        if not run_ids:
            return ()
        async with self._questions.use() as session:
            return await _delete_runs(session, namespace, run_ids, until)


async def _delete_runs(session: Session, namespace: str, run_ids: Sequence[str], until: Timestamp) -> Sequence[str]:
    """Two statements: a single one would delete the history as it was before the locks were held."""
    async with session.transaction():
        rows = await session.read("lock_runs_to_delete", namespace=namespace, run_ids=run_ids, until=until)
        locked = [row["run_id"] for row in rows]
        if locked:
            short = [row["run_id"] for row in rows if row["seq"] <= LONG_HISTORY_SEQ]
            labels = [
                {"key": key, "value": value, "created_at": row["created_at"], "run_id": row["run_id"]}
                for row in rows
                for key, value in read_labels(row["labels"]).items()
            ]
            await session.read("delete_runs", run_ids=locked, short_run_ids=short, namespace=namespace, labels=labels)
    return locked
