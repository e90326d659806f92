"""The verbs about namespaces: what is known and allowed of them, and their end."""

from collections.abc import Collection

import msgspec

from ....core.pages.cursor import Cursor
from ....core.records import NamespaceRecord, Rows
from ....core.times import Timestamp
from ...protocol.namespaces import Deletion, Measured, NamespaceChores
from ...rows import read_namespace
from ..connection.connection import Database
from ..connection.connections import Lanes
from ..statements import NAMESPACE_TABLES
from ..write.fast_path import Writer
from .namespace_rows import find_namespace


class NamespaceDesk(Lanes):
    """Keeps `store.protocol.NamespaceVerbs`."""

    async def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        return await self._read(find_namespace, namespace)

    async def list_namespaces(self, cursor: Cursor | None, limit: int) -> Rows[NamespaceRecord]:
        return await self._scan("", _list_namespaces, cursor, limit)

    async def put_namespace(self, record: NamespaceRecord, now: Timestamp, *, new: bool = False) -> bool:
        return await self._change(_put_namespace, record, now, new=new)

    async def update_namespace(self, record: NamespaceRecord, fields: Collection[str]) -> NamespaceRecord | None:
        return await self._change(_update_namespace, record, fields)

    async def delete_namespace(self, namespace: str, now: Timestamp, cap: int) -> Deletion | None:
        return await self._change(_delete_namespace, namespace, now, cap)

    async def namespace_chores(self, now: Timestamp, measured_until: Timestamp) -> NamespaceChores:
        purge, measure = await self._read(_look_for_chores, now)
        if measure:
            await self._change(_claim_measurement, measure, measured_until)
        return NamespaceChores(purge, measure)

    async def purge_namespace(self, namespace: str, limit: int) -> bool:
        return await self._change(_purge_namespace, namespace, limit)

    async def measure_runs(self, namespace: str, after: Cursor | None, limit: int) -> Measured:
        return await self._scan(namespace, _measure_runs, namespace, after, limit)

    async def note_stored_bytes(self, namespace: str, stored_bytes: int, now: Timestamp) -> None:
        await self._change(_note_stored_bytes, namespace, stored_bytes, now)


def _list_namespaces(database: Database, cursor: Cursor | None, limit: int) -> Rows[NamespaceRecord]:
    before = cursor is not None and cursor.direction == "prev"
    name = "list_namespaces_before" if before else "list_namespaces_after"
    rows, more = database.page(name, ("" if cursor is None else cursor.id, limit + 1), limit)
    records = [read_namespace(row) for row in rows]
    if before:
        records.reverse()
    return Rows(tuple(records), has_more=more)


def _put_namespace(writer: Writer, record: NamespaceRecord, now: Timestamp, *, new: bool) -> bool:
    found = find_namespace(writer.database, record.namespace)
    if found is not None and (new or found.deleting):
        return False
    writer.namespaces.put(record, now)
    return True


def _update_namespace(writer: Writer, record: NamespaceRecord, fields: Collection[str]) -> NamespaceRecord | None:
    found = find_namespace(writer.database, record.namespace)
    if found is None or found.deleting:
        return None
    updated = msgspec.structs.replace(found, **{field: getattr(record, field) for field in fields})
    writer.namespaces.put(updated, updated.created_at)
    return updated


def _delete_namespace(writer: Writer, namespace: str, now: Timestamp, cap: int) -> Deletion | None:
    database = writer.database
    if find_namespace(database, namespace) is None:
        return None
    open_runs = database.row("count_open_runs", (namespace, cap))
    schedules = database.row("count_enabled_schedules", (namespace, cap))
    assert open_runs is not None
    assert schedules is not None
    if open_runs[0] or schedules[0]:
        return Deletion(granted=False, open_runs=open_runs[0], schedules=schedules[0])
    database.run("grant_deletion", (now, namespace))
    writer.namespaces.forget(namespace)
    return Deletion(granted=True)


def _look_for_chores(database: Database, now: Timestamp) -> tuple[str, str]:
    row = database.row("namespace_chores", (now,))
    assert row is not None  # two values, each of which may be NULL
    return row[0] or "", row[1] or ""


def _claim_measurement(writer: Writer, namespace: str, measured_until: Timestamp) -> None:
    writer.database.run("claim_measurement", (measured_until, namespace))


def _purge_namespace(writer: Writer, namespace: str, limit: int) -> bool:
    database = writer.database
    record = find_namespace(database, namespace)
    if record is None or not record.deleting:
        return False
    if database.row("any_run_of_namespace", (namespace,)) is not None:
        return False
    for table in NAMESPACE_TABLES:
        if database.run(f"remove_{table}", {"namespace": namespace, "limit": limit}):
            return True
    database.run("remove_namespace", (namespace,))
    writer.forget_all()
    return False


def _measure_runs(database: Database, namespace: str, after: Cursor | None, limit: int) -> Measured:
    at, run_id = (-1, "") if after is None else (after.at, after.id)
    rows = database.rows("measure_runs", {"namespace": namespace, "at": at, "run_id": run_id, "limit": limit})
    last = rows[-1] if len(rows) == limit else None
    return Measured(sum(row[2] for row in rows), None if last is None else Cursor(last[1], last[0]))


def _note_stored_bytes(writer: Writer, namespace: str, stored_bytes: int, now: Timestamp) -> None:
    writer.database.run("note_stored_bytes", (stored_bytes, now, namespace))
    writer.namespaces.forget(namespace)
