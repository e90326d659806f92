"""The exceptions that refusals are raised as: for unary calls, and for calls of a workflow that were recorded as
refused."""

from datetime import timedelta

from ..error_details import ErrorCode, ErrorDetail
from ..errors import (
    AlreadyExists,
    CancelRequested,
    DeadlinePassed,
    InternalError,
    InvalidArgument,
    KagziError,
    LeaseLost,
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    RequestError,
    ResourceExhausted,
    ServerUnavailable,
    Unimplemented,
)
from ..raised.exceptions import qualified_name

_CLASSES: dict[ErrorCode, type[RequestError]] = {
    ErrorCode.NOT_FOUND: NotFound,
    ErrorCode.INVALID_ARGUMENT: InvalidArgument,
    ErrorCode.PRECONDITION_FAILED: PreconditionFailed,
    ErrorCode.CONFLICT: AlreadyExists,
    ErrorCode.UNAUTHORIZED: PermissionDenied,
    ErrorCode.LEASE_LOST: LeaseLost,
    ErrorCode.TIMEOUT: DeadlinePassed,
    ErrorCode.CANCELLED: CancelRequested,
    ErrorCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    ErrorCode.UNIMPLEMENTED: Unimplemented,
}


def error_of(detail: ErrorDetail) -> KagziError:
    """The exception for a refusal."""
    retry_after = timedelta(milliseconds=detail.retry_after_ms) if detail.retry_after_ms else None
    refusal = _CLASSES.get(detail.code)
    if refusal is not None:
        return refusal(
            detail.message,
            field=detail.subject_id if detail.subject == "field" else "",
            subject=detail.subject,
            subject_id=detail.subject_id,
            metadata=detail.metadata,
            retry_after=retry_after,
        )
    broad = ServerUnavailable if detail.code is ErrorCode.UNAVAILABLE else InternalError
    return broad(detail.message, metadata=detail.metadata, retry_after=retry_after)


def type_of_refusal(code: ErrorCode) -> str:
    """The name of the class that a refusal with this code is raised as."""
    return qualified_name(_CLASSES.get(code, RequestError))
