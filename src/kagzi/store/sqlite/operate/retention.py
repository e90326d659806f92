"""Forgetting what has ended. What is to go is looked for by the thread that reads; the one that writes checks it again."""

from collections.abc import Sequence
from typing import Any

from ....core.records import NamespaceRecord
from ....core.states import CODE_OF_RUN_STATUS, RunStatus
from ....core.times import Timestamp
from ...protocol.retention import LONG_HISTORY_SEQ, Purged
from ...rows import read_labels, write_json
from ..connection.connection import Database, Row
from ..connection.connections import Lanes
from ..write.fast_path import Writer
from .namespace_rows import find_namespace


class RetentionDesk(Lanes):
    """Keeps `store.protocol.RetentionVerbs`."""

    async def purge_runs(
        self, namespace: str, statuses: Sequence[RunStatus], *, after: Timestamp, until: Timestamp, limit: int
    ) -> Purged:
        given = {"namespace": namespace, "after": after, "until": until, "limit": limit}
        codes = write_json([CODE_OF_RUN_STATUS[status] for status in statuses])
        found = await self._read(_ended_runs, given | {"statuses": codes})
        if not found:
            return Purged(0, until, more=False)
        deleted = await self.delete_runs(namespace, [run_id for run_id, _ in found], until=until)
        more = len(found) == limit
        return Purged(len(deleted), found[-1][1] if more else until, more=more and bool(deleted))

    async def delete_runs(self, namespace: str, run_ids: Sequence[str], *, until: Timestamp) -> Sequence[str]:
        return await self._change(_delete_runs, namespace, run_ids, until) if run_ids else ()

    async def purge_leftovers(self, limit: int) -> bool:
        return await self._change(_purge_leftovers, limit)

    async def namespaces_after(self, namespace: str, limit: int) -> Sequence[NamespaceRecord]:
        return await self._read(_namespaces_after, namespace, limit)

    async def claim_chore(self, name: str, now: Timestamp, until: Timestamp) -> bool:
        return await self._change(_claim_chore, name, now, until)


def _ended_runs(database: Database, given: dict[str, Any]) -> list[Row]:
    return database.rows("ended_runs", given)


def _delete_runs(writer: Writer, namespace: str, run_ids: Sequence[str], until: Timestamp) -> Sequence[str]:
    database = writer.database
    found = database.rows(
        "runs_to_delete", {"namespace": namespace, "run_ids": write_json(list(run_ids)), "until": until}
    )
    if not found:
        return ()
    all_ids = {"run_ids": write_json([row[0] for row in found])}
    short = {"run_ids": write_json([row[0] for row in found if row[1] <= LONG_HISTORY_SEQ])}
    long = [row[0] for row in found if row[1] > LONG_HISTORY_SEQ]
    labels = [
        (key, value, created_at, run_id)
        for run_id, _, text, created_at in found
        if text
        for key, value in read_labels(text).items()
    ]
    if labels:
        database.run("delete_labels", {"namespace": namespace, "labels": write_json(labels)})
    database.run("delete_links_to", short | {"namespace": namespace})
    database.run("delete_links_from", all_ids | {"namespace": namespace})
    for statement in ("delete_steps", "delete_attempts", "delete_signals"):
        database.run(statement, short)
    if long:
        database.run("leave_history", {"run_ids": write_json(long)})
    database.run("delete_runs", all_ids)
    for row in found:
        writer.fences.forget(row[0])
    return [row[0] for row in found]


def _purge_leftovers(writer: Writer, limit: int) -> bool:
    row = writer.database.row("next_leftover")
    if row is None:
        return False
    left = limit
    for statement in ("delete_some_signals", "delete_some_attempts", "delete_some_steps"):
        if left > 0:
            left -= writer.database.run(statement, {"run_id": row[0], "limit": left})
    if left > 0:
        writer.database.run("end_leftover", {"run_id": row[0]})
    return True


def _namespaces_after(database: Database, namespace: str, limit: int) -> Sequence[NamespaceRecord]:
    names = [row[0] for row in database.rows("namespaces_after", (namespace, limit))]
    return [found for name in names if (found := find_namespace(database, name)) is not None]


def _claim_chore(writer: Writer, name: str, now: Timestamp, until: Timestamp) -> bool:
    return writer.database.row("claim_chore", {"name": name, "now": now, "until": until}) is not None
