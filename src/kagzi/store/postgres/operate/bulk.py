"""Operations on everything a filter matches."""

import msgspec

from ....core.bulk import Batch, BulkOperation, BulkProgress
from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.times import Timestamp
from ...rows import read_bulk
from ..connection.connections import Links
from ..run.pages import read_page

_encode = msgspec.json.Encoder().encode


class BulkDesk(Links):
    """Keeps `store.protocol.BulkVerbs`."""

    async def add_bulk(self, operation: BulkOperation) -> BulkOperation:
        async with self._questions.use() as session:
            await session.write(
                "insert_bulk",
                operation_id=operation.operation_id,
                namespace=operation.namespace,
                action=operation.action,
                filter=_encode(operation.where).decode(),
                reason=operation.reason,
                request_id=operation.request_id,
                created_at=operation.created_at,
            )
            [row] = await session.read(
                "get_bulk_by_request", namespace=operation.namespace, request_id=operation.request_id
            )
        return read_bulk(row)

    async def get_bulk(self, namespace: str, operation_id: str) -> BulkOperation | None:
        async with self._readers.use(confirm=False) as session:
            rows = await session.read("get_bulk", operation_id=operation_id, namespace=namespace)
        return read_bulk(rows[0]) if rows else None

    async def list_bulk(self, namespace: str, cursor: Cursor | None, limit: int) -> Rows[BulkOperation]:
        backwards = cursor is not None and cursor.direction == "prev"
        at, last_id = (None, None) if cursor is None else (cursor.at, cursor.id)
        async with self._scan(namespace) as session:
            name = "newer_bulks" if backwards else "older_bulks"
            rows, more = await read_page(
                session, name, limit, namespace=namespace, cursor_at=at, cursor_id=last_id, limit=limit + 1
            )
        found = [read_bulk(row) for row in rows]
        if backwards:
            found.reverse()
        return Rows(tuple(found), more)

    async def stop_bulk(self, namespace: str, operation_id: str, now: Timestamp) -> BulkOperation | None:
        async with self._questions.use() as session:
            await session.write("stop_bulk", operation_id=operation_id, namespace=namespace, now=now)
        return await self.get_bulk(namespace, operation_id)

    async def claim_bulk(self, server_id: str, now: Timestamp, until: Timestamp) -> BulkOperation | None:
        async with self._questions.use() as session:
            rows = await session.write("claim_bulk", server_id=server_id, now=now, until=until)
        return read_bulk(rows[0]) if rows else None

    async def plan_bulk(self, operation_id: str, server_id: str, batch: Batch, until: Timestamp) -> bool:
        return await self._changed(
            "plan_bulk", operation_id=operation_id, server_id=server_id, batch=_encode(batch).decode(), until=until
        )

    async def keep_bulk(self, operation_id: str, server_id: str, until: Timestamp) -> bool:
        return await self._changed("keep_bulk", operation_id=operation_id, server_id=server_id, until=until)

    async def advance_bulk(self, progress: BulkProgress, server_id: str, now: Timestamp, until: Timestamp) -> bool:
        return await self._changed(
            "advance_bulk",
            operation_id=progress.operation_id,
            server_id=server_id,
            done=progress.done,
            failed=progress.failed,
            last_error=progress.last_error,
            cursor_at=None if progress.cursor is None else progress.cursor.at,
            cursor_id=None if progress.cursor is None else progress.cursor.id,
            until=until,
            finished=progress.finished,
            now=now,
        )

    async def forget_bulk(self, before: Timestamp, limit: int) -> bool:
        async with self._questions.use() as session:
            return len(await session.write("forget_bulk", before=before, limit=limit)) == limit

    async def _changed(self, statement: str, /, **given: object) -> bool:
        async with self._questions.use() as session:
            return bool(await session.write(statement, **given))
