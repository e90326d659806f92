"""Operations on everything a filter matches."""

from typing import Any

from ....core.bulk import Batch, BulkOperation, BulkProgress
from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.times import Timestamp
from ...rows import read_bulk, write_json
from ..connection.connection import Database
from ..connection.connections import Lanes
from ..write.fast_path import Writer
from ..write.text_validation import require_plain

_END: Timestamp = 2**63 - 1


class BulkDesk(Lanes):
    """Keeps `store.protocol.BulkVerbs`."""

    async def add_bulk(self, operation: BulkOperation) -> BulkOperation:
        return await self._change(_add_bulk, operation)

    async def get_bulk(self, namespace: str, operation_id: str) -> BulkOperation | None:
        return await self._read(_get_bulk, namespace, operation_id)

    async def list_bulk(self, namespace: str, cursor: Cursor | None, limit: int) -> Rows[BulkOperation]:
        return await self._scan(namespace, _list_bulk, namespace, cursor, limit)

    async def stop_bulk(self, namespace: str, operation_id: str, now: Timestamp) -> BulkOperation | None:
        return await self._change(_stop_bulk, namespace, operation_id, now)

    async def claim_bulk(self, server_id: str, now: Timestamp, until: Timestamp) -> BulkOperation | None:
        return await self._change(_claim_bulk, server_id, now, until)

    async def plan_bulk(self, operation_id: str, server_id: str, batch: Batch, until: Timestamp) -> bool:
        given = {"operation_id": operation_id, "server_id": server_id, "batch": write_json(batch), "until": until}
        return await self._change(_changed, "plan_bulk", given)

    async def keep_bulk(self, operation_id: str, server_id: str, until: Timestamp) -> bool:
        given = {"operation_id": operation_id, "server_id": server_id, "until": until}
        return await self._change(_changed, "keep_bulk", given)

    async def advance_bulk(self, progress: BulkProgress, server_id: str, now: Timestamp, until: Timestamp) -> bool:
        given = {
            "operation_id": progress.operation_id,
            "done": progress.done,
            "failed": progress.failed,
            "last_error": progress.last_error,
            "finished": progress.finished,
            "cursor_at": None if progress.cursor is None else progress.cursor.at,
            "cursor_id": None if progress.cursor is None else progress.cursor.id,
            "server_id": server_id,
            "now": now,
            "until": until,
        }
        return await self._change(_changed, "advance_bulk", given)

    async def forget_bulk(self, before: Timestamp, limit: int) -> bool:
        return await self._change(_forget_bulk, before, limit)


def _forget_bulk(writer: Writer, before: Timestamp, limit: int) -> bool:
    return writer.database.run("forget_bulk", {"before": before, "limit": limit}) == limit


def _changed(writer: Writer, statement: str, given: dict[str, Any]) -> bool:
    return writer.database.run(statement, given) == 1


def _add_bulk(writer: Writer, operation: BulkOperation) -> BulkOperation:
    require_plain(reason=operation.reason, request_id=operation.request_id)
    given = (
        operation.operation_id,
        operation.namespace,
        operation.action,
        write_json(operation.where),
        operation.reason,
        operation.request_id,
        operation.created_at,
    )
    writer.database.run("insert_bulk", given)
    row = writer.database.record("get_bulk_by_request", (operation.namespace, operation.request_id))
    assert row is not None  # it was there, or is there now
    return read_bulk(row)


def _get_bulk(database: Database, namespace: str, operation_id: str) -> BulkOperation | None:
    row = database.record("get_bulk", (operation_id, namespace))
    return None if row is None else read_bulk(row)


def _list_bulk(database: Database, namespace: str, cursor: Cursor | None, limit: int) -> Rows[BulkOperation]:
    place = cursor or Cursor(_END, "")
    given = {"namespace": namespace, "at": place.at, "id": place.id, "limit": limit + 1}
    rows, more = database.page("newer_bulks" if place.direction == "prev" else "older_bulks", given, limit)
    found = [read_bulk(row) for row in rows]
    if place.direction == "prev":
        found.reverse()
    return Rows(tuple(found), more)


def _stop_bulk(writer: Writer, namespace: str, operation_id: str, now: Timestamp) -> BulkOperation | None:
    writer.database.run("stop_bulk", {"operation_id": operation_id, "namespace": namespace, "now": now})
    return _get_bulk(writer.database, namespace, operation_id)


def _claim_bulk(writer: Writer, server_id: str, now: Timestamp, until: Timestamp) -> BulkOperation | None:
    row = writer.database.record("claim_bulk", {"server_id": server_id, "now": now, "until": until})
    return None if row is None else read_bulk(row)
