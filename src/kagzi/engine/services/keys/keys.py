"""API keys: create, list, rotate, revoke; and find the keys of callers."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from ....core import limits
from ....core.access import Scope
from ....core.errors import InvalidArgument, not_found
from ....core.keys.audit import Action
from ....core.keys.keys import (
    KEY_ID_DIGITS,
    BrowserSession,
    Credential,
    KeyRecord,
    KeyWithSecrets,
    hash_secret,
    key_text,
)
from ....core.pages.counting import Counted
from ....core.pages.cursor import Cursor
from ....core.providers import Clock, Ids
from ....core.times import Timestamp
from ....store.protocol import Store
from ...checks import requests as checks
from ..paging import Page, PageAsk, page_cursor, page_of, page_size, with_total
from .audit import Audit

_FORGOTTEN_AT_ONCE = 500


class NewKey(NamedTuple):
    """`text`: the complete key, which is shown only once."""

    key: KeyRecord
    text: str


class Keys:
    """`announce` is called with the id of a key that has changed here; `on_change`, if set, for changes here or
    elsewhere: an empty id stands for all keys."""

    def __init__(self, store: Store, *, clock: Clock, ids: Ids, audit: Audit, announce: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._announce = announce
        self.on_change: Callable[[], None] | None = None

    # --- for administrators -------------------------------------------------------------------------------------------

    async def create(
        self,
        namespace: str,
        name: str,
        scopes: Sequence[str],
        *,
        expires_at: Timestamp | None = None,
        request_id: str = "",
    ) -> NewKey:
        """`namespace` EVERY_NAMESPACE: valid in all of them. A repeat with the same request_id returns the same key
        with another secret; both are valid. Raises InvalidArgument, AlreadyExists, ResourceExhausted."""
        checks.name(namespace, "namespace_id")
        checks.name(name, "name")
        checks.optional_name(request_id, "request_id")
        checks.timestamp(expires_at, "expires_at")
        now = self._clock.now()
        if expires_at is not None and expires_at <= now:
            raise InvalidArgument("expires_at has passed. Give a time to come, or none.", field="expires_at")
        secret = self._ids.secret()
        request = KeyRecord(
            key_id=self._ids.secret()[:KEY_ID_DIGITS],
            namespace=namespace,
            name=name,
            scopes=_scopes(scopes),
            created_at=now,
            request_id=request_id or self._ids.token(),
            expires_at=expires_at,
        )
        details = {"name": name, "scopes": " ".join(request.scopes)}
        entry = self._audit.entry(Action.KEY_CREATE, namespace, request.key_id, details)
        kept = await self._store.create_key(request, hash_secret(secret), entry)
        self._changed(kept.key_id)
        return NewKey(kept, key_text(kept.key_id, secret))

    async def list(self, namespace: str, page: PageAsk) -> Page[KeyRecord]:
        """Newest first, including keys that are no longer valid. EVERY_NAMESPACE: of all namespaces."""
        checks.name(namespace, "namespace_id")
        bound_to = msgspec.json.encode(("keys", namespace)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_keys(namespace, cursor, page_size(page))
        result = page_of(rows, cursor, bound_to, lambda one: Cursor(one.created_at, one.key_id))
        return await with_total(result, page, self._store, Counted(rows="keys", namespace=namespace))

    async def rotate(self, namespace: str, key_id: str, *, grace_us: int = 0, request_id: str = "") -> NewKey:
        """Creates a new secret; older ones stay valid for `grace_us`. Repeats as in `create`. Raises NotFound,
        PreconditionFailed if the key was revoked."""
        self._check(namespace, key_id)
        checks.optional_name(request_id, "request_id")
        checks.within(grace_us, 0, limits.DURATION_MAX_US, "grace")
        now = self._clock.now()
        secret = self._ids.secret()
        details = {"grace_seconds": grace_us // 1_000_000}
        kept = await self._store.rotate_key(
            namespace,
            key_id,
            hash_secret(secret),
            request_id=request_id or self._ids.token(),
            keep_until=now + grace_us,
            now=now,
            audit=self._audit.entry(Action.KEY_ROTATE, namespace, key_id, details),
        )
        if kept is None:
            raise not_found("key", key_id)
        self._changed(key_id)
        return NewKey(kept, key_text(key_id, secret))

    async def revoke(self, namespace: str, key_id: str) -> KeyRecord:
        """Permanently, and on every server within seconds. Raises NotFound."""
        self._check(namespace, key_id)
        entry = self._audit.entry(Action.KEY_REVOKE, namespace, key_id)
        kept = await self._store.revoke_key(namespace, key_id, self._clock.now(), entry)
        if kept is None:
            raise not_found("key", key_id)
        self._changed(key_id)
        return kept

    def _check(self, namespace: str, key_id: str) -> None:
        checks.name(namespace, "namespace_id")
        checks.name(key_id, "key_id")

    def _changed(self, key_id: str) -> None:
        self._announce(key_id)
        self.changed()

    def changed(self) -> None:
        """A key changed here or on another server."""
        if self.on_change is not None:
            self.on_change()

    # --- for authentication -------------------------------------------------------------------------------------------

    async def find(self, key_ids: Sequence[str]) -> Sequence[KeyWithSecrets]:
        """The keys that exist."""
        return await self._store.find_keys(key_ids)

    async def note_used(self, key_ids: Sequence[str]) -> None:
        await self._store.note_keys_used(key_ids, self._clock.now())

    async def open_session(self, credential: Credential) -> tuple[str, BrowserSession]:
        """The token of a new browser session, shown only once. The caller must have verified the credential."""
        now = self._clock.now()
        token = self._ids.secret()
        session = BrowserSession(
            session_hash=hash_secret(token),
            key_id=credential.key_id,
            secret_hash=credential.secret_hash,
            created_at=now,
            expires_at=now + limits.BROWSER_SESSION_US,
        )
        await self._store.add_browser_session(session, limits.BROWSER_SESSIONS)
        return token, session

    async def session(self, session_hash: str) -> BrowserSession | None:
        """None: there is none, or it has expired."""
        session = await self._store.get_browser_session(session_hash)
        return session if session is not None and session.expires_at > self._clock.now() else None

    async def close_session(self, session_hash: str) -> None:
        await self._store.remove_browser_session(session_hash)
        self.changed()

    async def forget(self, now: Timestamp) -> bool:
        """A chore."""
        return await self._store.forget_keys(now - limits.AUDIT_KEPT_US, now, _FORGOTTEN_AT_ONCE)


def _scopes(words: Sequence[str]) -> tuple[Scope, ...]:
    """Without duplicates, in the order of Scope."""
    known = ", ".join(Scope)
    if not words:
        raise InvalidArgument(f"scopes is empty: the key could do nothing. Give some of: {known}.", field="scopes")
    for word in words:
        if word not in list(Scope):
            raise InvalidArgument(f"scopes names {word!r}. It can name: {known}.", field="scopes")
    return tuple(scope for scope in Scope if scope in words)
