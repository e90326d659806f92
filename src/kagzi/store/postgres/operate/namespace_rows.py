"""Namespaces, their limits and their end."""

import asyncio
from collections.abc import Collection

from ....core.errors import Unavailable
from ....core.pages.cursor import Cursor
from ....core.records import NamespaceRecord, Rows
from ....core.times import Timestamp
from ...protocol.namespaces import Deletion, Measured, NamespaceChores
from ...rows import read_namespace, write_json
from ..connection.connection import Session
from ..run.pages import read_page
from ..statements import NAMESPACE_TABLES

_WRITERS_TIMEOUT_S = 10.0
_WRITERS_PAUSE_S = 0.01


async def get_namespace(session: Session, namespace: str) -> NamespaceRecord | None:
    rows = await session.read("get_namespace", namespace=namespace)
    return read_namespace(rows[0]) if rows else None


async def list_namespaces(session: Session, cursor: Cursor | None, limit: int) -> Rows[NamespaceRecord]:
    before = cursor is not None and cursor.direction == "prev"
    name = "list_namespaces_before" if before else "list_namespaces_after"
    rows, more = await read_page(session, name, limit, cursor=None if cursor is None else cursor.id, limit=limit + 1)
    records = [read_namespace(row) for row in rows]
    if before:
        records.reverse()
    return Rows(tuple(records), has_more=more)


async def put_namespace(session: Session, record: NamespaceRecord, now: Timestamp, *, new: bool) -> bool:
    created_at = record.created_at or now
    rows = await session.write("put_namespace", created_at=created_at, only_insert=new, **_values(record))
    return bool(rows)


async def update_namespace(
    session: Session, record: NamespaceRecord, fields: Collection[str]
) -> NamespaceRecord | None:
    rows = await session.write("update_namespace", fields=list(fields), **_values(record))
    return read_namespace(rows[0]) if rows else None


def _values(record: NamespaceRecord) -> dict[str, object]:
    return {
        "namespace": record.namespace,
        "enabled": record.enabled,
        "open_runs_limit": record.open_runs_limit,
        "running_runs_limit": record.running_runs_limit,
        "starts_per_second_limit": record.starts_per_second_limit,
        "stored_bytes_limit": record.stored_bytes_limit,
        "sessions_limit": record.sessions_limit,
        "schedules_limit": record.schedules_limit,
        "retention": write_json(record.retention_seconds) if record.retention_seconds else None,
    }


# --- the end of one ------------------------------------------------------------------------------------------------------


async def delete_namespace(session: Session, namespace: str, now: Timestamp, cap: int) -> Deletion | None:
    """Close the door, wait until those have passed who were in it, then look who is inside: starts take no lock on the
    namespace, so that only the end of their transactions tells."""
    before = await get_namespace(session, namespace)
    if before is None:
        return None
    asked = await session.write("ask_deletion", namespace=namespace, now=now)
    if not asked or asked[0]["purging"]:
        return Deletion(granted=True)
    await _writers_gone(session)
    async with session.transaction():
        if not await session.read("lock_namespace", namespace=namespace):
            return None
        [open_runs] = await session.read("count_open_runs", namespace=namespace, limit=cap)
        [schedules] = await session.read("count_enabled_schedules", namespace=namespace, cap=cap)
        if not open_runs["runs"] and not schedules["schedules"]:
            await session.read("grant_deletion", namespace=namespace)
            return Deletion(granted=True)
        await session.read("refuse_deletion", namespace=namespace, enabled=before.enabled)
    return Deletion(granted=False, open_runs=open_runs["runs"], schedules=schedules["schedules"])


async def _writers_gone(session: Session) -> None:
    """Returns when every transaction has ended that wrote runs when this was called."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _WRITERS_TIMEOUT_S
    waiting = {row["writer"] for row in await session.read("writers_of_runs")}
    while waiting:
        if loop.time() > deadline:
            raise Unavailable("transactions that began before the deletion have not ended yet. Try again.")
        await asyncio.sleep(_WRITERS_PAUSE_S)
        waiting &= {row["writer"] for row in await session.read("writers_of_runs")}


async def namespace_chores(session: Session, now: Timestamp, measured_until: Timestamp) -> NamespaceChores:
    [row] = await session.write("namespace_chores", now=now, measured_until=measured_until)
    return NamespaceChores(purge=row["purge"], measure=row["measure"])


async def purge_namespace(session: Session, namespace: str, limit: int) -> bool:
    record = await get_namespace(session, namespace)
    if record is None or not record.deleting:
        return False
    if await session.read("any_run_of_namespace", namespace=namespace):
        return False
    for table in NAMESPACE_TABLES:
        [removed] = await session.write(f"remove_{table}", namespace=namespace, limit=limit)
        if removed["removed"]:
            return True
    await session.write("remove_namespace", namespace=namespace)
    return False


# --- what it keeps -------------------------------------------------------------------------------------------------------


async def measure_runs(session: Session, namespace: str, after: Cursor | None, limit: int) -> Measured:
    at, run_id = (None, None) if after is None else (after.at, after.id)
    rows = await session.read("measure_runs", namespace=namespace, after_at=at, after_run_id=run_id, limit=limit)
    last = rows[-1] if len(rows) == limit else None
    return Measured(
        sum(row["bytes"] for row in rows), None if last is None else Cursor(last["created_at"], last["run_id"])
    )


async def note_stored_bytes(session: Session, namespace: str, stored_bytes: int, now: Timestamp) -> None:
    await session.write("note_stored_bytes", namespace=namespace, stored_bytes=stored_bytes, now=now)
