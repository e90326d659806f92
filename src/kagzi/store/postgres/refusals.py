"""Refusals, in words that say what to do."""

from ...core import limits
from ...core.errors import REASON, ErrorCode, ErrorDetail, ErrorKind
from ...core.outcomes import Refused
from ...core.states import KindCode
from ...core.times import US_PER_MS


def precondition_failed(message: str, *, subject: str = "step", subject_id: str = "") -> Refused:
    return _refused(ErrorCode.PRECONDITION_FAILED, message, subject, subject_id)


def conflict(message: str, *, subject_id: str) -> Refused:
    return _refused(ErrorCode.CONFLICT, message, "workflow_id", subject_id)


def invalid_argument(message: str, *, field: str) -> Refused:
    return _refused(ErrorCode.INVALID_ARGUMENT, message, "field", field)


def resource_exhausted(message: str, *, limit: str, subject: str, subject_id: str) -> Refused:
    detail = ErrorDetail(
        code=ErrorCode.RESOURCE_EXHAUSTED,
        kind=ErrorKind.TRANSIENT,
        message=message,
        subject=subject,
        subject_id=subject_id,
        metadata={"limit": limit},
    )
    return Refused(detail)


def namespace_disabled(namespace: str) -> Refused:
    message = f"namespace {namespace!r} is disabled: enable it to start runs in it"
    return precondition_failed(message, subject="namespace", subject_id=namespace)


def namespace_full(namespace: str, limit: int) -> Refused:
    return resource_exhausted(
        f"namespace {namespace!r} has {limit} open runs, its limit (open_runs_limit). "
        "Wait until some have ended, or raise the limit.",
        limit="open_runs_limit",
        subject="namespace",
        subject_id=namespace,
    )


def namespace_gone(namespace: str) -> Refused:
    """One that is being deleted: like one that does not exist."""
    return _refused(ErrorCode.NOT_FOUND, f"namespace {namespace} not found", "namespace", namespace)


def starts_too_fast(namespace: str, per_second: float, wait_us: int) -> Refused:
    detail = ErrorDetail(
        code=ErrorCode.RESOURCE_EXHAUSTED,
        kind=ErrorKind.TRANSIENT,
        message=f"namespace {namespace!r} starts {per_second:g} runs a second, its limit (starts_per_second_limit). "
        "Start fewer, or raise the limit.",
        subject="namespace",
        subject_id=namespace,
        metadata={"limit": "starts_per_second_limit"},
        retry_after_ms=max(1, -(-wait_us // US_PER_MS)),
    )
    return Refused(detail)


def too_many_sessions(namespace: str, limit: int) -> Refused:
    return resource_exhausted(
        f"namespace {namespace!r} has {limit} workers, its limit (sessions_limit). Stop one, or raise the limit.",
        limit="sessions_limit",
        subject="namespace",
        subject_id=namespace,
    )


def too_much_stored(namespace: str, stored: int, limit: int) -> Refused:
    detail = ErrorDetail(
        code=ErrorCode.RESOURCE_EXHAUSTED,
        kind=ErrorKind.TRANSIENT,
        message=f"namespace {namespace!r} keeps {stored} bytes; its limit (stored_bytes_limit) is {limit}. "
        "Delete runs, shorten its retention, or raise the limit; it is measured once a minute.",
        subject="namespace",
        subject_id=namespace,
        metadata={"limit": "stored_bytes_limit"},
        retry_after_ms=limits.MEASURE_INTERVAL_MS,
    )
    return Refused(detail)


def cancelled(run_id: str, reason: str) -> Refused:
    """What is new to a run that is to stop. Its worker may hear of the cancellation here first: the reason is told with it."""
    message = f"run {run_id} is to be cancelled: only steps of a cleanup scope begin now"
    detail = ErrorDetail(
        code=ErrorCode.CANCELLED,
        kind=ErrorKind.CANCELLED,
        message=message,
        subject="run",
        subject_id=run_id,
        metadata={REASON: reason},
    )
    return Refused(detail)


def kind_name(kind: int) -> str:
    return KindCode(kind).name.lower()


def _refused(code: ErrorCode, message: str, subject: str, subject_id: str) -> Refused:
    return Refused(
        ErrorDetail(code=code, kind=ErrorKind.PERMANENT, message=message, subject=subject, subject_id=subject_id)
    )
