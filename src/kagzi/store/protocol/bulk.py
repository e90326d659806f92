"""Bulk operations: one action on all runs that a filter matches."""

from typing import Protocol

from ...core.bulk import Batch, BulkOperation, BulkProgress
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp


class BulkVerbs(Protocol):
    """Operations are durable and continue after a restart. One server at a time holds one, and renews its hold."""

    async def add_bulk(self, operation: BulkOperation, *, audit: AuditEntry | None = None) -> BulkOperation:
        """Store the operation and return it, or the earlier operation that was stored with the same request_id."""
        ...

    async def get_bulk(self, namespace: str, operation_id: str) -> BulkOperation | None: ...

    async def list_bulk(self, namespace: str, cursor: Cursor | None, limit: int) -> Rows[BulkOperation]:
        """Newest first by (created_at, operation_id)."""
        ...

    async def stop_bulk(
        self, namespace: str, operation_id: str, now: Timestamp, *, audit: AuditEntry | None = None
    ) -> BulkOperation | None:
        """Stop the operation where it is. A finished one does not change. None: no such operation."""
        ...

    async def claim_bulk(self, server_id: str, now: Timestamp, until: Timestamp) -> BulkOperation | None:
        """Give this server, until `until`, an unfinished operation that it holds already or that no server holds, the
        one that was left alone longest first. None: nothing to do."""
        ...

    async def plan_bulk(self, operation_id: str, server_id: str, batch: Batch, until: Timestamp) -> bool:
        """Record the next batch before it is done. False: this server lost the operation, or it was stopped."""
        ...

    async def keep_bulk(self, operation_id: str, server_id: str, until: Timestamp) -> bool:
        """Extend the hold during a batch that takes long. False: as for `plan_bulk`."""
        ...

    async def advance_bulk(self, progress: BulkProgress, server_id: str, now: Timestamp, until: Timestamp) -> bool:
        """Record that the planned batch is done: count it and move the cursor, once. False: this server lost it."""
        ...

    async def forget_bulk(self, before: Timestamp, limit: int) -> bool:
        """Delete up to `limit` operations that finished before `before`. Returns whether there may be more."""
        ...
