"""Namespaces: their limits, what they store, and the last steps of their deletion."""

from collections.abc import Collection

import msgspec

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import NamespaceRecord, Rows
from ...core.times import Timestamp
from ..protocol.namespaces import Measured, NamespaceChores
from ..rows import read_namespace, write_json
from ..sessions import NIL_ID, Purpose, Session, Sessions, first, list_page, scan, verb
from ..sql_files import NAMESPACE_TABLES
from .audit import note_audit


async def get_namespace(session: Session, namespace: str) -> NamespaceRecord | None:
    row = await first(session, "get_namespace", namespace=namespace)
    return None if row is None else read_namespace(row)


async def _list(session: Session, cursor: Cursor | None, limit: int) -> Rows[NamespaceRecord]:
    name = "" if cursor is None else cursor.id
    return await list_page(session, "list_namespaces", read_namespace, cursor, limit, cursor=name)


async def _after(session: Session, namespace: str, limit: int) -> list[NamespaceRecord]:
    rows = await session.read("namespaces_after", namespace=namespace, limit=limit)
    return [read_namespace(row) for row in rows]


async def _put(
    session: Session,
    record: NamespaceRecord,
    now: Timestamp,
    *,
    new: bool = False,
    audit: AuditEntry | None = None,
) -> bool:
    async with session.transaction():
        done = await _put_row(session, record, now, new=new)
        if done:
            await note_audit(session, audit)
    return done


async def _put_row(session: Session, record: NamespaceRecord, now: Timestamp, *, new: bool) -> bool:
    rows = await session.read(
        "put_namespace",
        namespace=record.namespace,
        enabled=record.enabled,
        created_at=record.created_at or now,
        open_runs_limit=record.open_runs_limit,
        running_runs_limit=record.running_runs_limit,
        starts_per_second_limit=record.starts_per_second_limit,
        stored_bytes_limit=record.stored_bytes_limit,
        sessions_limit=record.sessions_limit,
        schedules_limit=record.schedules_limit,
        retention=write_json(record.retention_seconds) if record.retention_seconds else None,
        only_insert=new,
    )
    return bool(rows)


async def _update(
    session: Session, record: NamespaceRecord, fields: Collection[str], *, audit: AuditEntry | None = None
) -> NamespaceRecord | None:
    """Sets these fields only, so that concurrent changes of others are kept."""
    async with session.transaction():
        row = await first(session, "lock_namespace", namespace=record.namespace)
        before = None if row is None else read_namespace(row)
        if before is None or before.deleting:
            return None
        updated = msgspec.structs.replace(before, **{field: getattr(record, field) for field in fields})
        await _put_row(session, updated, updated.created_at, new=False)
        await note_audit(session, audit)
    return updated


async def _chores(session: Session, now: Timestamp, measured_until: Timestamp) -> NamespaceChores:
    purge = await first(session, "namespace_to_purge")
    measure = await session.write("claim_measurement", now=now, measured_until=measured_until)
    return NamespaceChores(
        purge="" if purge is None else purge["namespace"], measure=measure[0]["namespace"] if measure else ""
    )


async def _purge(session: Session, namespace: str, limit: int) -> bool:
    record = await get_namespace(session, namespace)
    if record is None or not record.deleting:
        return False
    if await session.read("any_run_of_namespace", namespace=namespace):
        return False
    for table in NAMESPACE_TABLES:
        if await session.write(f"remove_{table}", namespace=namespace, limit=limit):
            return True
    await session.write("remove_namespace", namespace=namespace)
    return False


async def _measure(session: Session, namespace: str, after: Cursor | None, limit: int) -> Measured:
    at, run_id = (-1, NIL_ID) if after is None else (after.at, after.id)
    rows = await session.read("measure_runs", namespace=namespace, after_at=at, after_run_id=run_id, limit=limit)
    last = rows[-1] if len(rows) == limit else None
    return Measured(
        sum(row["bytes"] for row in rows), None if last is None else Cursor(last["created_at"], last["run_id"])
    )


async def _note_stored_bytes(session: Session, namespace: str, stored_bytes: int, now: Timestamp) -> None:
    await session.write("note_stored_bytes", namespace=namespace, stored_bytes=stored_bytes, now=now)


class Namespaces(Sessions):
    """Implements `store.protocol.NamespaceVerbs`, except `delete_namespace`."""

    get_namespace = verb(Purpose.READ, get_namespace)
    put_namespace = verb(Purpose.WRITE, _put)
    update_namespace = verb(Purpose.WRITE, _update)
    namespace_chores = verb(Purpose.CHORE, _chores)
    purge_namespace = verb(Purpose.CHORE, _purge)
    measure_runs = scan(_measure)
    note_stored_bytes = verb(Purpose.CHORE, _note_stored_bytes)
    namespaces_after = verb(Purpose.READ, _after)

    async def list_namespaces(self, cursor: Cursor | None, limit: int) -> Rows[NamespaceRecord]:
        return await self.run_scan("", lambda session: _list(session, cursor, limit))
