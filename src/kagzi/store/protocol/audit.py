"""What administrators did. Entries are added by the verbs that make the changes, in the same transaction."""

from typing import Protocol

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp


class AuditVerbs(Protocol):
    async def list_audit(
        self, namespace: str, *, since: Timestamp, until: Timestamp, cursor: Cursor | None, limit: int
    ) -> Rows[AuditEntry]:
        """From `since` (inclusive) to `until` (exclusive), newest first by (at, audit_id). `namespace` EVERY_NAMESPACE:
        all there are."""
        ...

    async def forget_audit(self, before: Timestamp, limit: int) -> bool:
        """Delete entries older than that. Returns whether there may be more."""
        ...
