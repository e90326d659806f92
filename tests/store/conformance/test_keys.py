"""Keys, browser sessions and the audit: hashes only, repeats make no second key, and an entry is written with its
change or not at all."""

import msgspec
import pytest

from kagzi.core import limits
from kagzi.core.access import EVERY_NAMESPACE, Scope
from kagzi.core.errors import AlreadyExists, PreconditionFailed, ResourceExhausted, Unauthenticated
from kagzi.core.keys.audit import Action, AuditEntry
from kagzi.core.keys.keys import BrowserSession, KeyRecord, KeyWithSecrets, hash_secret, valid_until
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import NamespaceRecord, WorkerRecord
from kagzi.core.times import LAST_TIME, US_PER_S
from kagzi.core.workflow_types.queues import TypeLimits

from .verbs import StoreHarness

FIRST, SECOND, THIRD = (hash_secret(secret) for secret in ("first", "second", "third"))
A_DAY = 86_400 * US_PER_S


def entry(harness: StoreHarness, action: str = Action.KEY_CREATE, namespace: str = "tenant") -> AuditEntry:
    return AuditEntry(
        audit_id=harness.ids.run_id(harness.now),
        at=harness.now,
        key_id="0123456789abcdef",
        key_name="ops",
        action=action,
        namespace=namespace,
        subject="what",
        details={"why": "β"},
    )


def a_key(harness: StoreHarness, **options: object) -> KeyRecord:
    key = KeyRecord(
        key_id=harness.ids.secret()[-16:],
        namespace="tenant",
        name="deploy",
        scopes=(Scope.CLIENT, Scope.WORKER),
        created_at=harness.now,
        request_id=harness.ids.token(),
        expires_at=harness.now + A_DAY,
    )
    return msgspec.structs.replace(key, **options)


async def create(harness: StoreHarness, secret_hash: str = FIRST, **options: object) -> KeyRecord:
    return await harness.store.create_key(a_key(harness, **options), secret_hash, entry(harness))


async def stored(harness: StoreHarness, key: KeyRecord) -> KeyWithSecrets:
    [one] = await harness.store.find_keys(["ffffffffffffffff", key.key_id])
    return one


async def good(harness: StoreHarness, key: KeyRecord) -> set[str]:
    one = await stored(harness, key)
    hashes: set[str] = set()
    for secret_hash in (FIRST, SECOND, THIRD):
        try:
            valid_until(one, secret_hash, harness.now)
        except Unauthenticated:
            continue
        hashes.add(secret_hash)
    return hashes


async def audited(harness: StoreHarness, namespace: str = "tenant") -> list[str]:
    rows = await harness.store.list_audit(namespace, since=0, until=LAST_TIME, cursor=None, limit=100)
    return [one.action for one in reversed(rows.rows)]


async def test_a_key_is_found_with_the_hash_of_its_secret(harness: StoreHarness) -> None:
    key = await create(harness)
    one = await stored(harness, key)
    assert one.key == key
    assert [secret.secret_hash for secret in one.secrets] == [FIRST]
    assert valid_until(one, FIRST, harness.now) == key.expires_at
    with pytest.raises(Unauthenticated, match="expired"):
        valid_until(one, FIRST, harness.now + A_DAY)
    with pytest.raises(Unauthenticated, match="not known"):
        valid_until(one, SECOND, harness.now)
    assert await harness.store.find_keys([]) == []


async def test_a_repeated_request_adds_a_secret_and_no_key(harness: StoreHarness) -> None:
    key = await create(harness, request_id="once")
    again = await create(harness, SECOND, request_id="once", expires_at=key.expires_at)
    assert again == key
    assert await good(harness, key) == {FIRST, SECOND}
    assert await audited(harness) == [Action.KEY_CREATE]
    with pytest.raises(AlreadyExists, match="request_id"):
        await create(harness, THIRD, request_id="once", name="another")
    other = await create(harness, request_id="once", namespace="elsewhere")
    assert other.key_id != key.key_id


async def test_a_rotation_ends_older_secrets_after_the_grace(harness: StoreHarness) -> None:
    key = await create(harness)

    async def rotate(secret_hash: str, request_id: str, grace_s: int = 0) -> KeyRecord | None:
        return await harness.store.rotate_key(
            "tenant",
            key.key_id,
            secret_hash,
            request_id=request_id,
            keep_until=harness.now + grace_s * US_PER_S,
            now=harness.now,
            audit=entry(harness, Action.KEY_ROTATE),
        )

    rotated = await rotate(SECOND, "a", grace_s=60)
    assert rotated is not None
    assert rotated.rotated_at == harness.now
    assert await good(harness, key) == {FIRST, SECOND}
    await rotate(THIRD, "a", grace_s=60)
    assert await good(harness, key) == {FIRST, SECOND, THIRD}, "a repeat ends nothing"
    harness.clock.advance(s=61)
    assert await good(harness, key) == {SECOND, THIRD}
    await rotate(FIRST, "b")
    assert await good(harness, key) == {FIRST}
    assert await audited(harness) == [Action.KEY_CREATE, Action.KEY_ROTATE, Action.KEY_ROTATE]


async def test_a_key_has_so_many_secrets_and_a_refusal_changes_nothing(harness: StoreHarness) -> None:
    key = await create(harness)
    for n in range(limits.KEY_SECRETS - 1):
        await create(harness, hash_secret(str(n)), request_id=key.request_id, expires_at=key.expires_at)
    before = await stored(harness, key)
    with pytest.raises(PreconditionFailed, match="8 secrets"):
        await create(harness, SECOND, request_id=key.request_id, expires_at=key.expires_at)
    with pytest.raises(PreconditionFailed, match="8 secrets"):
        await harness.store.rotate_key(
            "tenant",
            key.key_id,
            SECOND,
            request_id="r",
            keep_until=harness.now + A_DAY,
            now=harness.now,
            audit=entry(harness, Action.KEY_ROTATE),
        )
    assert await stored(harness, key) == before
    assert await audited(harness) == [Action.KEY_CREATE]


async def test_a_revoked_key_is_revoked_once_and_not_rotated(harness: StoreHarness) -> None:
    key = await create(harness)
    for namespace in ("elsewhere", "default"):
        assert await harness.store.revoke_key(namespace, key.key_id, harness.now, entry(harness)) is None
    at = harness.now
    revoked = await harness.store.revoke_key("tenant", key.key_id, at, entry(harness, Action.KEY_REVOKE))
    harness.clock.advance(ms=5)
    again = await harness.store.revoke_key(EVERY_NAMESPACE, key.key_id, harness.now, entry(harness, Action.KEY_REVOKE))
    assert revoked == again == msgspec.structs.replace(key, revoked_at=at)
    assert await good(harness, key) == set()
    with pytest.raises(PreconditionFailed, match="revoked"):
        await harness.store.rotate_key(
            "tenant", key.key_id, SECOND, request_id="r", keep_until=0, now=harness.now, audit=entry(harness)
        )
    assert await audited(harness) == [Action.KEY_CREATE, Action.KEY_REVOKE]


async def test_lists_are_of_a_namespace_or_of_all(harness: StoreHarness) -> None:
    keys: list[KeyRecord] = []
    for namespace in ("tenant", "elsewhere", "tenant", EVERY_NAMESPACE):
        keys.append(await create(harness, namespace=namespace))
        harness.clock.advance(ms=1)
    mine = await harness.store.list_keys("tenant", None, 10)
    assert mine.rows == (keys[2], keys[0])
    everywhere = await harness.store.list_keys(EVERY_NAMESPACE, None, 3)
    assert everywhere.rows == (keys[3], keys[2], keys[1])
    assert everywhere.has_more
    rest = await harness.store.list_keys(EVERY_NAMESPACE, Cursor(keys[1].created_at, keys[1].key_id), 3)
    assert rest.rows == (keys[0],)
    back = Cursor(keys[0].created_at, keys[0].key_id, "prev")
    assert (await harness.store.list_keys(EVERY_NAMESPACE, back, 2)).rows == (keys[2], keys[1])


async def test_a_namespace_has_so_many_good_keys(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEYS", 2)
    first = await create(harness)
    await create(harness)
    with pytest.raises(ResourceExhausted, match="2 keys"):
        await create(harness)
    await harness.store.revoke_key("tenant", first.key_id, harness.now, entry(harness))
    await create(harness)


async def test_use_is_noted_and_what_is_over_is_forgotten(harness: StoreHarness) -> None:
    kept, expired = await create(harness, expires_at=None), await create(harness, expires_at=harness.now + 1)
    await harness.store.note_keys_used([kept.key_id, "nobody"], harness.now)
    assert (await stored(harness, kept)).key.last_used_at == harness.now
    for n, key in enumerate((kept, expired)):
        await harness.store.add_browser_session(a_session(harness, f"s{n}", key), 100)
    harness.clock.advance(ms=1_000)
    assert not await harness.store.forget_keys(harness.now, harness.now, 10)
    assert await harness.store.find_keys([kept.key_id, expired.key_id]) == [await stored(harness, kept)]
    assert await harness.store.get_browser_session("s0") is not None
    harness.clock.advance(ms=60_000)
    await harness.store.forget_keys(0, harness.now, 10)
    assert await harness.store.get_browser_session("s0") is None


def a_session(harness: StoreHarness, session_hash: str, key: KeyRecord) -> BrowserSession:
    return BrowserSession(
        session_hash=session_hash,
        key_id=key.key_id,
        secret_hash=FIRST,
        created_at=harness.now,
        expires_at=harness.now + 60 * US_PER_S,
    )


async def test_browser_sessions_of_a_key_are_few_and_end(harness: StoreHarness) -> None:
    key = await create(harness)
    for n in range(4):
        await harness.store.add_browser_session(a_session(harness, f"s{n}", key), 2)
        harness.clock.advance(ms=1)
    kept = [await harness.store.get_browser_session(f"s{n}") is not None for n in range(4)]
    assert kept == [False, False, True, True]
    await harness.store.remove_browser_session("s3")
    assert await harness.store.get_browser_session("s3") is None


async def test_keys_go_with_their_namespace(harness: StoreHarness) -> None:
    key = await create(harness)
    await harness.store.put_namespace(NamespaceRecord(namespace="tenant"), harness.now)
    assert (await harness.store.delete_namespace("tenant", harness.now, 10)) is not None
    while await harness.store.purge_namespace("tenant", 10):
        pass
    assert await harness.store.find_keys([key.key_id]) == []


async def test_every_change_writes_its_entry_once(harness: StoreHarness) -> None:
    """And a call that changes nothing writes none."""
    store, now = harness.store, harness.now
    ours = NamespaceRecord(namespace="tenant")
    for _ in range(2):
        await store.put_namespace(ours, now, new=True, audit=entry(harness, Action.NAMESPACE_CREATE))
    await store.update_namespace(ours, ["enabled"], audit=entry(harness, Action.NAMESPACE_UPDATE))
    nobody = NamespaceRecord(namespace="nobody")
    assert await store.update_namespace(nobody, ["enabled"], audit=entry(harness, Action.NAMESPACE_UPDATE)) is None
    await store.put_type_limits("tenant", "t", TypeLimits(paused=True), now, audit=entry(harness, Action.TYPE_PAUSE))
    worker = WorkerRecord(
        namespace="tenant", worker_id="w", served=(), max_concurrent=1, registered_at=now, last_heartbeat_at=now
    )
    await store.register_worker(worker, now)
    for name in ("w", "w", "nobody"):
        await store.drain_worker("tenant", name, "", now, audit=entry(harness, Action.WORKER_DRAIN))
    for _ in range(2):
        await store.delete_namespace("tenant", now, 10, audit=entry(harness, Action.NAMESPACE_DELETE))
    assert await audited(harness) == [
        Action.NAMESPACE_CREATE,
        Action.NAMESPACE_UPDATE,
        Action.TYPE_PAUSE,
        Action.WORKER_DRAIN,
        Action.NAMESPACE_DELETE,
    ]


async def test_the_audit_is_read_by_time_and_page_and_forgotten(harness: StoreHarness) -> None:
    began = harness.now
    for n in range(5):
        namespace = "elsewhere" if n == 4 else "tenant"
        await harness.store.put_type_limits(
            namespace, "t", TypeLimits(), harness.now, audit=entry(harness, f"type.{n}", namespace)
        )
        harness.clock.advance(ms=1)

    async def actions(namespace: str, since: int = 0, until: int = LAST_TIME) -> list[str]:
        rows = await harness.store.list_audit(namespace, since=since, until=until, cursor=None, limit=3)
        return [one.action for one in rows.rows]

    assert await actions(EVERY_NAMESPACE) == ["type.4", "type.3", "type.2"]
    assert await actions("tenant") == ["type.3", "type.2", "type.1"]
    assert await actions("tenant", since=began + 1_000, until=began + 3_000) == ["type.2", "type.1"]
    [last] = (await harness.store.list_audit("elsewhere", since=0, until=LAST_TIME, cursor=None, limit=3)).rows
    assert (last.key_name, last.details, last.at) == ("ops", {"why": "β"}, began + 4_000)
    assert await harness.store.forget_audit(began + 3_000, 2)
    assert not await harness.store.forget_audit(began + 3_000, 2)
    assert await actions(EVERY_NAMESPACE) == ["type.4", "type.3"]
