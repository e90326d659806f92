"""Who may call: API keys, and browser sessions that were opened with one."""

from collections.abc import Sequence
from typing import Protocol

from ...core.keys.audit import AuditEntry
from ...core.keys.keys import BrowserSession, KeyRecord, KeyWithSecrets
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp


class KeyVerbs(Protocol):
    """Only hashes of secrets come here. `namespace` EVERY_NAMESPACE finds the keys of all of them."""

    async def create_key(self, key: KeyRecord, secret_hash: str, audit: AuditEntry) -> KeyRecord:
        """Keep it with its secret; returns the one that was kept, which is an earlier one if its request_id was used
        before: that one has both secrets then. Raises what core.keys.keys.check_repeat raises; ResourceExhausted if the
        namespace has limits.KEYS good keys."""
        ...

    async def find_keys(self, key_ids: Sequence[str]) -> Sequence[KeyWithSecrets]:
        """Those that there are, in any order."""
        ...

    async def list_keys(self, namespace: str, cursor: Cursor | None, limit: int) -> Rows[KeyRecord]:
        """Newest first by (created_at, key_id)."""
        ...

    async def rotate_key(
        self,
        namespace: str,
        key_id: str,
        secret_hash: str,
        *,
        request_id: str,
        keep_until: Timestamp,
        now: Timestamp,
        audit: AuditEntry,
    ) -> KeyRecord | None:
        """Add a secret; older ones are good until `keep_until`. If the request_id was used before, those that it made
        are as good as the new one. None: no such key. Raises PreconditionFailed if it was revoked, or has
        limits.KEY_SECRETS good secrets."""
        ...

    async def revoke_key(self, namespace: str, key_id: str, now: Timestamp, audit: AuditEntry) -> KeyRecord | None:
        """For good. One that was revoked before stays as it is. None: no such key."""
        ...

    async def note_keys_used(self, key_ids: Sequence[str], now: Timestamp) -> None: ...

    async def forget_keys(self, before: Timestamp, now: Timestamp, limit: int) -> bool:
        """Delete keys that have not been good since before then, secrets without a key, and sessions that are over.
        Returns whether there may be more."""
        ...

    async def add_browser_session(self, opened: BrowserSession, kept: int) -> None:
        """The `kept` newest of its key stay."""
        ...

    async def get_browser_session(self, session_hash: str) -> BrowserSession | None: ...

    async def remove_browser_session(self, session_hash: str) -> None: ...
