"""API keys, and browser sessions that were opened with one."""

from collections.abc import Sequence
from typing import Protocol

from ...core.keys.audit import AuditEntry
from ...core.keys.keys import BrowserSession, KeyRecord, KeyWithSecrets
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp


class KeyVerbs(Protocol):
    """The store gets only hashes of secrets. `namespace` EVERY_NAMESPACE finds the keys of all namespaces."""

    async def create_key(self, key: KeyRecord, secret_hash: str, audit: AuditEntry) -> KeyRecord:
        """Store the key with its secret and return it. If its request_id was used before, return that earlier key,
        which then has both secrets. Raises what core.keys.keys.check_repeat raises; ResourceExhausted if the namespace
        has limits.KEYS valid keys."""
        ...

    async def find_keys(self, key_ids: Sequence[str]) -> Sequence[KeyWithSecrets]:
        """Those of these keys that exist, in any order."""
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
        """Add a secret; older ones stay valid until `keep_until`. Secrets that the same request_id added before stay as
        valid as the new one. None: no such key. Raises PreconditionFailed if it was revoked, or has limits.KEY_SECRETS
        valid secrets."""
        ...

    async def revoke_key(self, namespace: str, key_id: str, now: Timestamp, audit: AuditEntry) -> KeyRecord | None:
        """Revoke a key permanently. A key that was revoked before does not change. None: no such key."""
        ...

    async def note_keys_used(self, key_ids: Sequence[str], now: Timestamp) -> None: ...

    async def forget_keys(self, before: Timestamp, now: Timestamp, limit: int) -> bool:
        """Delete keys that became invalid before `before`, secrets without a key, and expired sessions. Returns whether
        there may be more."""
        ...

    async def add_browser_session(self, opened: BrowserSession, kept: int) -> None:
        """Add a session, and keep the `kept` newest of its key."""
        ...

    async def get_browser_session(self, session_hash: str) -> BrowserSession | None: ...

    async def remove_browser_session(self, session_hash: str) -> None: ...
