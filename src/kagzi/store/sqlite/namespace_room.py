"""Whether one more run may be started in a namespace, as far as its row tells."""

from ...core import limits
from ...core.errors import ErrorCode, ErrorDetail, ErrorKind
from ...core.outcomes import Refused
from ...core.queues import Rate
from ...core.records import NamespaceRecord
from ...core.times import US_PER_MS, Timestamp
from .connection import Database
from .plain_text import refused
from .wave import Writer


def refuse_start(namespace: NamespaceRecord, now: Timestamp) -> Refused | None:
    stored, limit = namespace.stored_bytes, namespace.stored_bytes_limit
    if stored is not None and limit is not None and stored > limit:
        return _exhausted(
            namespace,
            "stored_bytes_limit",
            f"keeps {stored} bytes; its limit (stored_bytes_limit) is {limit}. Delete runs, shorten its retention, or raise "
            "the limit; it is measured once a minute.",
            limits.MEASURE_INTERVAL_MS,
        )
    rate = _rate(namespace)
    if rate is None or rate.allows(now):
        return None
    return _exhausted(
        namespace,
        "starts_per_second_limit",
        f"starts {rate.per_second:g} runs a second, its limit (starts_per_second_limit). Start fewer, or raise the limit.",
        max(1, -(-(rate.allows_at() - now) // US_PER_MS)),
    )


def refuse_session(database: Database, namespace: NamespaceRecord, worker_id: str, now: Timestamp) -> Refused | None:
    """Whether one more worker may register: in a namespace that limits them only if there are fewer, and in one that is being
    deleted never."""
    if namespace.deleting:
        return namespace_gone(namespace)
    limit = namespace.sessions_limit
    if limit is None:
        return None
    heard_since = now - limits.SESSION_COUNTS_MS * US_PER_MS
    counted = database.row("count_sessions", (namespace.namespace, worker_id, heard_since, limit))
    if counted is None or counted[0] < limit:
        return None
    return _exhausted(
        namespace,
        "sessions_limit",
        f"has {limit} workers, its limit (sessions_limit). Stop one, or raise the limit.",
        0,
    )


def namespace_gone(namespace: NamespaceRecord) -> Refused:
    """One that is being deleted: like one that does not exist."""
    return refused(
        ErrorCode.NOT_FOUND,
        f"namespace {namespace.namespace} not found",
        subject="namespace",
        subject_id=namespace.namespace,
    )


def note_start(writer: Writer, namespace: NamespaceRecord, now: Timestamp) -> None:
    rate = _rate(namespace)
    if rate is not None:
        writer.namespaces.note_start(namespace, rate.after_start(now).due_at)


def _rate(namespace: NamespaceRecord) -> Rate | None:
    per_second = namespace.starts_per_second_limit
    return None if per_second is None else Rate(per_second, namespace.next_start_at)


def _exhausted(namespace: NamespaceRecord, limit: str, message: str, retry_after_ms: int) -> Refused:
    detail = ErrorDetail(
        code=ErrorCode.RESOURCE_EXHAUSTED,
        kind=ErrorKind.TRANSIENT,
        message=f"namespace {namespace.namespace!r} {message}",
        subject="namespace",
        subject_id=namespace.namespace,
        metadata={"limit": limit},
        retry_after_ms=retry_after_ms,
    )
    return Refused(detail)
