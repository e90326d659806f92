"""Bulk operations: one action on every run that a filter matches."""

from ...core.bulk import Batch, BulkOperation, BulkProgress
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp
from ..rows import read_bulk, require_storable, write_json
from ..sessions import NIL_ID, Purpose, Session, Sessions, first, list_page, position, scan, verb
from .audit import note_audit


async def _add(session: Session, operation: BulkOperation, *, audit: AuditEntry | None = None) -> BulkOperation:
    require_storable(reason=operation.reason, request_id=operation.request_id)
    async with session.transaction():
        inserted = await session.read(
            "insert_bulk",
            operation_id=operation.operation_id,
            namespace=operation.namespace,
            action=operation.action,
            filter=write_json(operation.where),
            reason=operation.reason,
            request_id=operation.request_id,
            created_at=operation.created_at,
        )
        if inserted:
            await note_audit(session, audit)
    [row] = await session.read("get_bulk_by_request", namespace=operation.namespace, request_id=operation.request_id)
    return read_bulk(row)


async def _get(session: Session, namespace: str, operation_id: str) -> BulkOperation | None:
    row = await first(session, "get_bulk", operation_id=operation_id, namespace=namespace)
    return None if row is None else read_bulk(row)


async def _list(session: Session, namespace: str, cursor: Cursor | None, limit: int) -> Rows[BulkOperation]:
    at, last_id = position(cursor, NIL_ID)
    return await list_page(
        session, "list_bulks", read_bulk, cursor, limit, namespace=namespace, cursor_at=at, cursor_id=last_id
    )


async def _stop(
    session: Session, namespace: str, operation_id: str, now: Timestamp, *, audit: AuditEntry | None = None
) -> BulkOperation | None:
    async with session.transaction():
        if await session.read("stop_bulk", operation_id=operation_id, namespace=namespace, now=now):
            await note_audit(session, audit)
    return await _get(session, namespace, operation_id)


async def _claim(session: Session, server_id: str, now: Timestamp, until: Timestamp) -> BulkOperation | None:
    rows = await session.write("claim_bulk", server_id=server_id, now=now, until=until)
    return read_bulk(rows[0]) if rows else None


async def _plan(session: Session, operation_id: str, server_id: str, batch: Batch, until: Timestamp) -> bool:
    return bool(
        await session.write(
            "plan_bulk", operation_id=operation_id, server_id=server_id, batch=write_json(batch), until=until
        )
    )


async def _keep(session: Session, operation_id: str, server_id: str, until: Timestamp) -> bool:
    return bool(await session.write("keep_bulk", operation_id=operation_id, server_id=server_id, until=until))


async def _advance(session: Session, progress: BulkProgress, server_id: str, now: Timestamp, until: Timestamp) -> bool:
    cursor = progress.cursor
    return bool(
        await session.write(
            "advance_bulk",
            operation_id=progress.operation_id,
            server_id=server_id,
            done=progress.done,
            failed=progress.failed,
            last_error=progress.last_error,
            cursor_at=None if cursor is None else cursor.at,
            cursor_id=None if cursor is None else cursor.id,
            until=until,
            finished=progress.finished,
            now=now,
        )
    )


async def _forget(session: Session, before: Timestamp, limit: int) -> bool:
    return len(await session.write("forget_bulk", before=before, limit=limit)) == limit


class BulkOperations(Sessions):
    """Implements `store.protocol.BulkVerbs`."""

    add_bulk = verb(Purpose.WRITE, _add)
    get_bulk = verb(Purpose.LOOKUP, _get)
    list_bulk = scan(_list)
    stop_bulk = verb(Purpose.WRITE, _stop)
    claim_bulk = verb(Purpose.WRITE, _claim)
    plan_bulk = verb(Purpose.WRITE, _plan)
    keep_bulk = verb(Purpose.WRITE, _keep)
    advance_bulk = verb(Purpose.WRITE, _advance)
    forget_bulk = verb(Purpose.WRITE, _forget)
