"""Deletes runs that have ended. The reader's thread selects them; the writer checks them again."""

from collections.abc import Sequence

from ....core.states import CODE_OF_RUN_STATUS, RunStatus
from ....core.times import Timestamp
from ...operate.retention import Retention, purged
from ...protocol.retention import LONG_HISTORY_SEQ, Purged
from ...rows import read_labels, write_json
from ..connection.connection import Database, Record
from ..connection.connections import Connections
from ..write.fast_path import Writer


class SqliteRetention(Retention, Connections):
    """Implements `store.protocol.RetentionVerbs`."""

    async def purge_runs(
        self, namespace: str, statuses: Sequence[RunStatus], *, after: Timestamp, until: Timestamp, limit: int
    ) -> Purged:
        codes = write_json([CODE_OF_RUN_STATUS[status] for status in statuses])
        span: dict[str, object] = {
            "namespace": namespace,
            "after": after,
            "until": until,
            "limit": limit,
            "statuses": codes,
        }
        ended = await self._read(_ended_runs, span)
        deleted = await self.delete_runs(namespace, [row["run_id"] for row in ended], until=until)
        return purged(ended, len(deleted), until, limit)

    async def delete_runs(self, namespace: str, run_ids: Sequence[str], *, until: Timestamp) -> Sequence[str]:
        return await self._change(_delete_runs, namespace, run_ids, until) if run_ids else ()


def _ended_runs(database: Database, span: dict[str, object]) -> list[Record]:
    return database.records("ended_runs", span)


def _delete_runs(writer: Writer, namespace: str, run_ids: Sequence[str], until: Timestamp) -> Sequence[str]:
    database = writer.database
    rows = database.rows(
        "runs_to_delete", {"namespace": namespace, "run_ids": write_json(list(run_ids)), "until": until}
    )
    if not rows:
        return ()
    all_ids = {"run_ids": write_json([row[0] for row in rows])}
    short = {"run_ids": write_json([row[0] for row in rows if row[1] <= LONG_HISTORY_SEQ])}
    long = [row[0] for row in rows if row[1] > LONG_HISTORY_SEQ]
    labels = [
        (key, value, created_at, run_id)
        for run_id, _, text, created_at in rows
        if text
        for key, value in read_labels(text).items()
    ]
    if labels:
        database.run("delete_labels", {"namespace": namespace, "labels": write_json(labels)})
    database.run("delete_links_to", short | {"namespace": namespace})
    database.run("delete_links_from", all_ids | {"namespace": namespace})
    for statement in ("delete_steps", "delete_attempts", "delete_signals", "delete_logs", "delete_forgotten_steps"):
        database.run(statement, short)
    if long:
        database.run("leave_history", {"run_ids": write_json(long)})
    database.run("delete_runs", all_ids)
    for row in rows:
        writer.fences.forget(row[0])
    return [row[0] for row in rows]
