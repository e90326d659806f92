"""Operations on everything a filter matches."""

from typing import Protocol

from ...core.bulk import Batch, BulkOperation, BulkProgress
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp


class BulkVerbs(Protocol):
    """Durable: they continue after a restart. One server at a time works on an operation and renews that."""

    async def add_bulk(self, operation: BulkOperation, *, audit: AuditEntry | None = None) -> BulkOperation:
        """Keep it; returns the one that was kept, which is an earlier one if its request_id was used before."""
        ...

    async def get_bulk(self, namespace: str, operation_id: str) -> BulkOperation | None: ...

    async def list_bulk(self, namespace: str, cursor: Cursor | None, limit: int) -> Rows[BulkOperation]:
        """Newest first by (created_at, operation_id)."""
        ...

    async def stop_bulk(
        self, namespace: str, operation_id: str, now: Timestamp, *, audit: AuditEntry | None = None
    ) -> BulkOperation | None:
        """End it where it is. One that has finished stays as it is. None: no such operation."""
        ...

    async def claim_bulk(self, server_id: str, now: Timestamp, until: Timestamp) -> BulkOperation | None:
        """An unfinished operation that nobody works on, or this server, the one longest left alone first;
        this server's until `until`. None: nothing to do."""
        ...

    async def plan_bulk(self, operation_id: str, server_id: str, batch: Batch, until: Timestamp) -> bool:
        """Write down what will be done next. False: it is not this server's any more, or it was stopped."""
        ...

    async def keep_bulk(self, operation_id: str, server_id: str, until: Timestamp) -> bool:
        """Go on with a batch that takes long. False as above."""
        ...

    async def advance_bulk(self, progress: BulkProgress, server_id: str, now: Timestamp, until: Timestamp) -> bool:
        """The batch that was planned is done: counted, and the cursor moved, once. False: no longer this server's."""
        ...

    async def forget_bulk(self, before: Timestamp, limit: int) -> bool:
        """Delete operations that had finished before then. Returns whether there may be more."""
        ...
