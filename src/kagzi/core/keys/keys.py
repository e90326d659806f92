"""API keys: what is stored of a key, its format, and when it is valid.

A key is `kgz_<id>_<secret>`. Only the hash of a secret is stored, so that a reader of the database cannot use a key. A
key may have several secrets for a while: older ones after a rotation, and those of repeated responses.
"""

import hashlib
import hmac
import re

import msgspec

from ..access import Caller, Scope
from ..errors import AlreadyExists, PreconditionFailed, Unauthenticated, limit_reached
from ..text.plurals import counted
from ..times import Timestamp

KEY_ID_DIGITS = 16
_FORM = re.compile(r"kgz_([0-9a-f]{16})_([0-9a-f]{64})")


class KeySecret(msgspec.Struct, frozen=True):
    """`valid_until` None: as long as the key. `request_id`: of the request that created it."""

    secret_hash: str
    request_id: str
    created_at: Timestamp
    valid_until: Timestamp | None = None


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`namespace` EVERY_NAMESPACE: for the whole server. `last_used_at` is coarse."""

    key_id: str
    namespace: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: Timestamp
    request_id: str = ""
    expires_at: Timestamp | None = None
    revoked_at: Timestamp | None = None
    rotated_at: Timestamp | None = None
    last_used_at: Timestamp | None = None

    @property
    def caller(self) -> Caller:
        return Caller(self.key_id, self.name, self.namespace, frozenset(self.scopes))


class KeyWithSecrets(msgspec.Struct, frozen=True):
    key: KeyRecord
    secrets: tuple[KeySecret, ...]


class BrowserSession(msgspec.Struct, frozen=True, kw_only=True):
    """Valid as long as the secret it was opened with, and at most until `expires_at`."""

    session_hash: str
    key_id: str
    secret_hash: str
    created_at: Timestamp
    expires_at: Timestamp


class Credential(msgspec.Struct, frozen=True):
    """A key as it was sent, with the hash of the secret instead of the secret."""

    key_id: str
    secret_hash: str


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def key_text(key_id: str, secret: str) -> str:
    return f"kgz_{key_id}_{secret}"


def read_key(text: str) -> Credential:
    """Raises Unauthenticated, whose text does not repeat the input."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise Unauthenticated("this is not an API key. A key looks like kgz_<id>_<secret>.")
    return Credential(match[1], hash_secret(match[2]))


def valid_until(stored: KeyWithSecrets | None, secret_hash: str, now: Timestamp) -> Timestamp | None:
    """Until when a secret of this key is valid, if the key is not changed; None: forever.

    Raises Unauthenticated, with the same text for an unknown key and a wrong secret, so as not to reveal whether a key
    exists. A caller with the right secret is told why the key is not valid."""
    secret = None
    for one in () if stored is None else stored.secrets:
        if hmac.compare_digest(one.secret_hash, secret_hash):
            secret = one
    if stored is None or secret is None:
        raise Unauthenticated("this API key is not known here. Check KAGZI_API_KEY, or ask for a new key.")
    key = stored.key
    if key.revoked_at is not None:
        raise Unauthenticated(f"the API key {key.key_id} ({key.name}) was revoked. Ask for a new key.")
    if key.expires_at is not None and key.expires_at <= now:
        raise Unauthenticated(f"the API key {key.key_id} ({key.name}) has expired. Ask for a new key.")
    if secret.valid_until is not None and secret.valid_until <= now:
        raise Unauthenticated(
            f"the API key {key.key_id} ({key.name}) has a new secret since it was rotated. Use that one."
        )
    endings = [end for end in (key.expires_at, secret.valid_until) if end is not None]
    return min(endings, default=None)


def check_repeat(kept: KeyRecord, request: KeyRecord) -> None:
    """Raises AlreadyExists if a request id is reused for another request, and PreconditionFailed if the key that it
    created is gone."""
    if (kept.name, kept.scopes, kept.expires_at) != (request.name, request.scopes, request.expires_at):
        raise AlreadyExists(
            f"request_id={request.request_id!r} made the key {kept.key_id} ({kept.name}), with other values. "
            "Use another request id.",
            field="request_id",
        )
    check_alive(kept)


def check_alive(key: KeyRecord) -> None:
    if key.revoked_at is not None:
        raise PreconditionFailed(
            f"the key {key.key_id} ({key.name}) was revoked. Create another one.", subject="key", subject_id=key.key_id
        )


def check_secret_limit(secrets: int, most: int, key: KeyRecord) -> None:
    """Raises PreconditionFailed if a key has the maximum number of secrets."""
    if secrets >= most:
        raise PreconditionFailed(
            f"the key {key.key_id} has {counted(secrets, 'secret')} that are good at the same time; the limit is "
            f"{most}. Rotate it without --grace, or revoke it.",
            subject="key",
            subject_id=key.key_id,
            metadata=limit_reached("key_secrets", most),
        )
