"""Forgetting what has ended. What is to go is looked for without locks, locked and checked again, and then deleted."""

from collections.abc import Sequence

from ....core.records import NamespaceRecord
from ....core.states import CODE_OF_RUN_STATUS, RunStatus
from ....core.times import Timestamp
from ...protocol.retention import LONG_HISTORY_SEQ, Purged
from ...rows import read_labels, read_namespace
from ..connection.connection import Session
from ..connection.connections import Links


class RetentionDesk(Links):
    """Keeps `store.protocol.RetentionVerbs`."""

    async def purge_runs(
        self, namespace: str, statuses: Sequence[RunStatus], *, after: Timestamp, until: Timestamp, limit: int
    ) -> Purged:
        codes = [int(CODE_OF_RUN_STATUS[status]) for status in statuses]
        async with self._questions.use(confirm=False) as session:
            found = await session.read(
                "ended_runs", namespace=namespace, after=after, until=until, statuses=codes, limit=limit
            )
            if not found:
                return Purged(0, until, more=False)
            deleted = await _delete_runs(session, namespace, [row["run_id"] for row in found], until)
        more = len(found) == limit
        return Purged(len(deleted), found[-1]["finished_at"] if more else until, more=more and bool(deleted))

    async def delete_runs(self, namespace: str, run_ids: Sequence[str], *, until: Timestamp) -> Sequence[str]:
        if not run_ids:
            return ()
        async with self._questions.use() as session:
            return await _delete_runs(session, namespace, run_ids, until)

    async def purge_leftovers(self, limit: int) -> bool:
        async with self._questions.use(confirm=False) as session, session.transaction():
            return await _purge_leftovers(session, limit)

    async def namespaces_after(self, namespace: str, limit: int) -> Sequence[NamespaceRecord]:
        async with self._questions.use(confirm=False) as session:
            return [
                read_namespace(row) for row in await session.read("namespaces_after", namespace=namespace, limit=limit)
            ]

    async def claim_chore(self, name: str, now: Timestamp, until: Timestamp) -> bool:
        async with self._questions.use(confirm=False) as session:
            return bool(await session.write("claim_chore", name=name, now=now, until=until))


async def _delete_runs(session: Session, namespace: str, run_ids: Sequence[str], until: Timestamp) -> Sequence[str]:
    """Two statements: one would delete the history as it was before it had the locks."""
    async with session.transaction():
        rows = await session.read("lock_runs_to_delete", namespace=namespace, run_ids=run_ids, until=until)
        found = [row["run_id"] for row in rows]
        if found:
            short = [row["run_id"] for row in rows if row["seq"] <= LONG_HISTORY_SEQ]
            labels = [
                {"key": key, "value": value, "created_at": row["created_at"], "run_id": row["run_id"]}
                for row in rows
                for key, value in read_labels(row["labels"]).items()
            ]
            await session.read("delete_runs", run_ids=found, short_run_ids=short, namespace=namespace, labels=labels)
    return found


async def _purge_leftovers(session: Session, limit: int) -> bool:
    rows = await session.read("next_leftover")
    if not rows:
        return False
    run_id: str = rows[0]["run_id"]
    left = limit
    for statement in ("delete_some_signals", "delete_some_attempts", "delete_some_steps"):
        if left > 0:
            left -= len(await session.read(statement, run_id=run_id, limit=left))
    if left > 0:
        await session.read("end_leftover", run_id=run_id)
    return True
