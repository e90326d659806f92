"""The audit log of administrative changes. The verbs that make the changes add the entries, in the same transaction."""

from typing import Protocol

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp


class AuditVerbs(Protocol):
    async def list_audit(
        self, namespace: str, *, since: Timestamp, until: Timestamp, cursor: Cursor | None, limit: int
    ) -> Rows[AuditEntry]:
        """Entries from `since` (inclusive) to `until` (exclusive), newest first by (at, audit_id). `namespace`
        EVERY_NAMESPACE: those of all namespaces."""
        ...

    async def forget_audit(self, before: Timestamp, limit: int) -> bool:
        """Delete up to `limit` entries older than `before`. Returns whether there may be more."""
        ...
