"""API keys, browser sessions and the audit log."""

from collections.abc import Mapping
from typing import Any

from ....core.access import Caller, Scope
from ....core.keys.audit import AuditEntry
from ....core.keys.keys import KeyRecord
from ....core.times import moment_text
from ....engine import NewKey
from ..route import Input
from .common import DurationIn, Moment, MomentIn, PageQuery, View, moment


class KeyView(View, frozen=True, kw_only=True):
    """A key, without its secret. `namespace` "*": every namespace. `last_used_at` is accurate to about a minute."""

    key_id: str
    namespace: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    rotated_at: Moment | None
    last_used_at: Moment | None


class MadeKey(KeyView, frozen=True, kw_only=True):
    """`secret`: the whole key; it is never shown again."""

    secret: str


class NewKeyBody(Input, frozen=True, kw_only=True):
    name: str
    scopes: tuple[Scope, ...]
    expires_at: MomentIn | None = None


class Rotation(Input, frozen=True, kw_only=True):
    """`grace`: how long older secrets stay valid; left out: not at all."""

    grace: DurationIn | None = None


class AuditView(View, frozen=True, kw_only=True):
    """A change. `key_id` and `key_name` are empty if no keys were required."""

    audit_id: str
    at: Moment
    key_id: str
    key_name: str
    action: str
    namespace: str
    subject: str
    details: Mapping[str, str]


class AuditQuery(PageQuery, frozen=True, kw_only=True):
    """`since` is inclusive, `until` exclusive."""

    since: MomentIn | None = None
    until: MomentIn | None = None


class LogIn(Input, frozen=True, kw_only=True):
    key: str


class SessionView(View, frozen=True, kw_only=True):
    """Who is logged in, and with which scopes. `auth` "off": no keys are required, and everybody may do everything."""

    auth: str
    key_id: str
    name: str
    namespace: str
    scopes: tuple[Scope, ...]
    expires_at: Moment | None


def key_view(key: KeyRecord) -> KeyView:
    return KeyView(**_fields(key))


def made_key(made: NewKey) -> MadeKey:
    return MadeKey(**_fields(made.key), secret=made.text)


def _fields(key: KeyRecord) -> dict[str, Any]:
    times = ("expires_at", "revoked_at", "rotated_at", "last_used_at")
    return {
        "key_id": key.key_id,
        "namespace": key.namespace,
        "name": key.name,
        "scopes": key.scopes,
        "created_at": moment_text(key.created_at),
        **{name: moment(getattr(key, name)) for name in times},
    }


def audit_view(entry: AuditEntry) -> AuditView:
    return AuditView(
        audit_id=entry.audit_id,
        at=moment_text(entry.at),
        key_id=entry.key_id,
        key_name=entry.key_name,
        action=entry.action,
        namespace=entry.namespace,
        subject=entry.subject,
        details=entry.details,
    )


def session_view(caller: Caller, *, auth: str, expires_at: int | None = None) -> SessionView:
    return SessionView(
        auth=auth,
        key_id=caller.key_id,
        name=caller.name,
        namespace=caller.namespace,
        scopes=tuple(scope for scope in Scope if scope in caller.scopes),
        expires_at=moment(expires_at),
    )
