"""Refusals, in words that say what to do."""

from ...core.errors import ErrorCode, ErrorDetail, ErrorKind
from ...core.outcomes import Refused
from ...core.states import KindCode


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


def cancelled(run_id: str) -> Refused:
    """What is new to a run that is to stop."""
    message = f"run {run_id} is to be cancelled: only steps of a cleanup scope begin now"
    detail = ErrorDetail(
        code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message=message, subject="run", subject_id=run_id
    )
    return Refused(detail)


def internal(message: str) -> Refused:
    return _refused(ErrorCode.INTERNAL, message, "", "")


def kind_name(kind: int) -> str:
    return KindCode(kind).name.lower()


def _refused(code: ErrorCode, message: str, subject: str, subject_id: str) -> Refused:
    return Refused(
        ErrorDetail(code=code, kind=ErrorKind.PERMANENT, message=message, subject=subject, subject_id=subject_id)
    )
