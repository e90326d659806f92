"""Operations on everything a filter matches."""

import msgspec

from ...core.bulk import Batch, BulkOperation, BulkProgress
from ...core.cursor import Cursor
from ...core.records import Rows, RunFilter
from ...core.times import Timestamp
from .connections import Row
from .links import Links
from .pages import read_page

_encode = msgspec.json.Encoder().encode
_decode_filter = msgspec.json.Decoder(RunFilter).decode
_decode_batch = msgspec.json.Decoder(Batch).decode


class BulkDesk(Links):
    """Keeps `store.protocol.BulkVerbs`."""

    async def add_bulk(self, operation: BulkOperation) -> BulkOperation:
        async with self._questions.use() as session:
            await session.write(
                "insert_bulk",
                operation.operation_id,
                operation.namespace,
                operation.action,
                _encode(operation.where).decode(),
                operation.reason,
                operation.request_id,
                operation.created_at,
            )
            [row] = await session.read("get_bulk_by_request", operation.namespace, operation.request_id)
        return _read_bulk(row)

    async def get_bulk(self, namespace: str, operation_id: str) -> BulkOperation | None:
        async with self._readers.use(confirm=False) as session:
            rows = await session.read("get_bulk", operation_id, namespace)
        return _read_bulk(rows[0]) if rows else None

    async def list_bulk(self, namespace: str, cursor: Cursor | None, limit: int) -> Rows[BulkOperation]:
        backwards = cursor is not None and cursor.direction == "prev"
        at, last_id = (None, None) if cursor is None else (cursor.at, cursor.id)
        async with self._scan(namespace) as session:
            name = "newer_bulks" if backwards else "older_bulks"
            rows, more = await read_page(session, name, namespace, at, last_id, limit + 1, limit=limit)
        found = [_read_bulk(row) for row in rows]
        if backwards:
            found.reverse()
        return Rows(tuple(found), more)

    async def stop_bulk(self, namespace: str, operation_id: str, now: Timestamp) -> BulkOperation | None:
        async with self._questions.use() as session:
            await session.write("stop_bulk", operation_id, namespace, now)
        return await self.get_bulk(namespace, operation_id)

    async def claim_bulk(self, server_id: str, now: Timestamp, until: Timestamp) -> BulkOperation | None:
        async with self._questions.use() as session:
            rows = await session.write("claim_bulk", server_id, now, until)
        return _read_bulk(rows[0]) if rows else None

    async def plan_bulk(self, operation_id: str, server_id: str, batch: Batch, until: Timestamp) -> bool:
        return await self._changed("plan_bulk", operation_id, server_id, _encode(batch).decode(), until)

    async def keep_bulk(self, operation_id: str, server_id: str, until: Timestamp) -> bool:
        return await self._changed("keep_bulk", operation_id, server_id, until)

    async def advance_bulk(self, progress: BulkProgress, server_id: str, now: Timestamp, until: Timestamp) -> bool:
        return await self._changed(
            "advance_bulk",
            progress.operation_id,
            server_id,
            progress.done,
            progress.failed,
            progress.last_error,
            None if progress.cursor is None else progress.cursor.at,
            None if progress.cursor is None else progress.cursor.id,
            until,
            progress.finished,
            now,
        )

    async def forget_bulk(self, before: Timestamp, limit: int) -> bool:
        async with self._questions.use() as session:
            return len(await session.write("forget_bulk", before, limit)) == limit

    async def _changed(self, statement: str, *given: object) -> bool:
        async with self._questions.use() as session:
            return bool(await session.write(statement, *given))


def _read_bulk(row: Row) -> BulkOperation:
    return BulkOperation(
        operation_id=row["id"],
        namespace=row["namespace"],
        action=row["action"],
        where=_decode_filter(row["filter"]),
        reason=row["reason"],
        request_id=row["request_id"],
        created_at=row["created_at"],
        matched=row["matched"],
        done=row["done"],
        failed=row["failed"],
        last_error=row["last_error"],
        finished_at=row["finished_at"],
        stopped=row["stopped"],
        cursor=None if row["cursor_at"] is None else Cursor(row["cursor_at"], row["cursor_run"]),
        batch=None if row["batch"] is None else _decode_batch(row["batch"]),
    )
