"""API keys and browser sessions."""

from collections.abc import Sequence

import msgspec

from ...core import limits
from ...core.access import EVERY_NAMESPACE, Scope
from ...core.errors import ResourceExhausted, limit_reached
from ...core.keys.audit import AuditEntry
from ...core.keys.keys import (
    BrowserSession,
    KeyRecord,
    KeySecret,
    KeyWithSecrets,
    check_alive,
    check_repeat,
    check_secret_limit,
)
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp
from ..rows import Row, require_storable
from ..sessions import Purpose, Session, Sessions, first, list_page, position, scan, verb
from .audit import note_audit


def _read(row: Row) -> KeyRecord:
    return KeyRecord(
        key_id=row["key_id"],
        namespace=row["namespace"],
        name=row["name"],
        scopes=tuple(Scope(word) for word in row["scopes"].split()),
        created_at=row["created_at"],
        request_id=row["request_id"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        rotated_at=row["rotated_at"],
        last_used_at=row["last_used_at"],
    )


async def _create(session: Session, key: KeyRecord, secret_hash: str, audit: AuditEntry) -> KeyRecord:
    require_storable(namespace=key.namespace, name=key.name, request_id=key.request_id)
    async with session.transaction():
        await _check_key_limit(session, key)
        inserted = await session.read(
            "insert_key",
            key_id=key.key_id,
            namespace=key.namespace,
            name=key.name,
            scopes=" ".join(key.scopes),
            request_id=key.request_id,
            created_at=key.created_at,
            expires_at=key.expires_at,
        )
        if inserted:
            kept = key
            await note_audit(session, audit)
        else:
            [row] = await session.read("lock_key_by_request", namespace=key.namespace, request_id=key.request_id)
            kept = _read(row)
            check_repeat(kept, key)
            secrets = await session.read("secrets_of_key", key_id=kept.key_id, now=key.created_at)
            check_secret_limit(len(secrets), limits.KEY_SECRETS, kept)
        await _insert_secret(session, kept.key_id, secret_hash, key.request_id, key.created_at)
    return kept


async def _check_key_limit(session: Session, key: KeyRecord) -> None:
    [row] = await session.read("count_good_keys", namespace=key.namespace, now=key.created_at, cap=limits.KEYS)
    if row["good"] >= limits.KEYS:
        raise ResourceExhausted(
            f"namespace {key.namespace} has {limits.KEYS} keys, as many as it may. Revoke those that nobody uses.",
            metadata=limit_reached("keys", limits.KEYS),
        )


async def _insert_secret(session: Session, key_id: str, secret_hash: str, request_id: str, now: Timestamp) -> None:
    await session.read("insert_secret", key_id=key_id, secret_hash=secret_hash, request_id=request_id, created_at=now)


async def _find(session: Session, key_ids: Sequence[str]) -> Sequence[KeyWithSecrets]:
    keys: dict[str, KeyRecord] = {}
    secrets: dict[str, list[KeySecret]] = {}
    for row in await session.read("find_keys", key_ids=list(key_ids)):
        key_id = row["key_id"]
        keys[key_id] = _read(row)
        secrets.setdefault(key_id, []).append(
            KeySecret(row["secret_hash"], row["secret_request_id"], row["secret_created_at"], row["valid_until"])
        )
    return [KeyWithSecrets(key, tuple(secrets[key_id])) for key_id, key in keys.items()]


async def _list(session: Session, namespace: str, cursor: Cursor | None, limit: int) -> Rows[KeyRecord]:
    at, last_id = position(cursor)
    if namespace == EVERY_NAMESPACE:
        return await list_page(session, "list_all_keys", _read, cursor, limit, cursor_at=at, cursor_id=last_id)
    return await list_page(
        session, "list_keys", _read, cursor, limit, namespace=namespace, cursor_at=at, cursor_id=last_id
    )


async def _lock(session: Session, namespace: str, key_id: str) -> KeyRecord | None:
    row = await first(session, "lock_key", key_id=key_id, namespace=namespace, everywhere=namespace == EVERY_NAMESPACE)
    return None if row is None else _read(row)


async def _rotate(
    session: Session,
    namespace: str,
    key_id: str,
    secret_hash: str,
    *,
    request_id: str,
    keep_until: Timestamp,
    now: Timestamp,
    audit: AuditEntry,
) -> KeyRecord | None:
    require_storable(request_id=request_id)
    async with session.transaction():
        key = await _lock(session, namespace, key_id)
        if key is None:
            return None
        check_alive(key)
        good = await session.read("secrets_of_key", key_id=key_id, now=now)
        if not any(row["request_id"] == request_id for row in good):
            await session.read("remove_ended_secrets", key_id=key_id, now=now)
            await session.read("end_secrets", key_id=key_id, valid_until=keep_until)
            await session.read("note_rotation", key_id=key_id, now=now)
            await note_audit(session, msgspec.structs.replace(audit, namespace=key.namespace))
            key = msgspec.structs.replace(key, rotated_at=now)
            good = await session.read("secrets_of_key", key_id=key_id, now=now)
        check_secret_limit(len(good), limits.KEY_SECRETS, key)
        await _insert_secret(session, key_id, secret_hash, request_id, now)
    return key


async def _revoke(session: Session, namespace: str, key_id: str, now: Timestamp, audit: AuditEntry) -> KeyRecord | None:
    async with session.transaction():
        key = await _lock(session, namespace, key_id)
        if key is not None and key.revoked_at is None:
            await session.read("revoke_key", key_id=key_id, now=now)
            await note_audit(session, msgspec.structs.replace(audit, namespace=key.namespace))
            key = msgspec.structs.replace(key, revoked_at=now)
    return key


async def _note_used(session: Session, key_ids: Sequence[str], now: Timestamp) -> None:
    await session.write("note_keys_used", key_ids=list(key_ids), now=now)


async def _forget(session: Session, before: Timestamp, now: Timestamp, limit: int) -> bool:
    gone = [
        await session.write("forget_browser_sessions", now=now, limit=limit),
        await session.write("forget_keys", before=before, limit=limit),
        await session.write("forget_secrets", limit=limit),
    ]
    return any(len(rows) == limit for rows in gone)


async def _add_session(session: Session, opened: BrowserSession, kept: int) -> None:
    async with session.transaction():
        await session.read("insert_browser_session", **msgspec.structs.asdict(opened))
        await session.read("remove_oldest_browser_sessions", key_id=opened.key_id, kept=kept)


async def _get_session(session: Session, session_hash: str) -> BrowserSession | None:
    row = await first(session, "get_browser_session", session_hash=session_hash)
    if row is None:
        return None
    return BrowserSession(**{field: row[field] for field in BrowserSession.__struct_fields__})


async def _remove_session(session: Session, session_hash: str) -> None:
    await session.write("remove_browser_session", session_hash=session_hash)


class Keys(Sessions):
    """Implements `store.protocol.KeyVerbs`."""

    create_key = verb(Purpose.WRITE, _create)
    find_keys = verb(Purpose.READ, _find)
    list_keys = scan(_list)
    rotate_key = verb(Purpose.WRITE, _rotate)
    revoke_key = verb(Purpose.WRITE, _revoke)
    note_keys_used = verb(Purpose.CHORE, _note_used)
    forget_keys = verb(Purpose.CHORE, _forget)
    add_browser_session = verb(Purpose.WRITE, _add_session)
    get_browser_session = verb(Purpose.READ, _get_session)
    remove_browser_session = verb(Purpose.WRITE, _remove_session)
