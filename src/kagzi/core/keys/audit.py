"""The audit log of administrators: one row for each change, written in the transaction of the change."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from ..times import Timestamp


class Action(StrEnum):
    """The audited action, as noun and verb."""

    KEY_CREATE = "key.create"
    KEY_ROTATE = "key.rotate"
    KEY_REVOKE = "key.revoke"
    NAMESPACE_CREATE = "namespace.create"
    NAMESPACE_UPDATE = "namespace.update"
    NAMESPACE_DELETE = "namespace.delete"
    TYPE_LIMITS = "type.limits"
    TYPE_PAUSE = "type.pause"
    TYPE_RESUME = "type.resume"
    VERSION_DEFAULT = "version.default"
    VERSION_NO_DEFAULT = "version.no_default"
    VERSION_DEPRECATE = "version.deprecate"
    VERSION_RESTORE = "version.restore"
    WORKER_DRAIN = "worker.drain"
    RUN_ADOPT = "run.adopt"
    BULK_START = "bulk.start"
    BULK_STOP = "bulk.stop"


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`key_id` and `key_name` are empty if the server does not require keys. `subject`: what was changed."""

    audit_id: str
    at: Timestamp
    key_id: str
    key_name: str
    action: str
    namespace: str
    subject: str
    details: Mapping[str, str]
