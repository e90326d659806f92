"""Exceptions <-> status codes: the only place that converts errors for the wire.

A status carries, in `grpc-status-details-bin`, a google.rpc.Status with an ErrorInfo (for tools) and a
kagzi.v1.ErrorDetail (for SDKs). Only the texts of Kagzi's own errors are sent; any other error is an incident with a
number.
"""

from datetime import timedelta
from typing import NamedTuple, cast

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from ..core import limits
from ..core.error_details import ErrorCode, ErrorDetail
from ..core.errors import (
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
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from ..core.outages import database_down, database_words
from ..core.raised.exceptions import qualified_name
from ..core.raised.incidents import INCIDENT, incident_error
from ..v1 import common_pb2 as pb
from .common import read_error, write_error

DETAILS_KEY = "grpc-status-details-bin"
DOMAIN = "kagzi"

# Metadata of a response are limited to 8 KiB in total, and they contain a text three times, once percent-encoded.
_TEXT_BYTES = 1_024
_METADATA_ENTRIES = 8

_STATUS_OF_CODE = {
    ErrorCode.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorCode.PRECONDITION_FAILED: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.CONFLICT: grpc.StatusCode.ALREADY_EXISTS,
    ErrorCode.UNAUTHORIZED: grpc.StatusCode.PERMISSION_DENIED,
    ErrorCode.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    ErrorCode.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.INTERNAL: grpc.StatusCode.INTERNAL,
    ErrorCode.TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    ErrorCode.LEASE_LOST: grpc.StatusCode.ABORTED,
    ErrorCode.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.CANCELLED: grpc.StatusCode.FAILED_PRECONDITION,  # the status CANCELLED means that the caller gave up
    ErrorCode.UNIMPLEMENTED: grpc.StatusCode.UNIMPLEMENTED,
    ErrorCode.USER: grpc.StatusCode.UNKNOWN,
}

_ERROR_OF_CODE: dict[ErrorCode, type[KagziError]] = {
    ErrorCode.NOT_FOUND: NotFound,
    ErrorCode.INVALID_ARGUMENT: InvalidArgument,
    ErrorCode.PRECONDITION_FAILED: PreconditionFailed,
    ErrorCode.CONFLICT: AlreadyExists,
    ErrorCode.UNAUTHORIZED: PermissionDenied,
    ErrorCode.UNAUTHENTICATED: Unauthenticated,
    ErrorCode.LEASE_LOST: LeaseLost,
    ErrorCode.TIMEOUT: DeadlinePassed,
    ErrorCode.CANCELLED: CancelRequested,
    ErrorCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    ErrorCode.UNIMPLEMENTED: Unimplemented,
    ErrorCode.UNAVAILABLE: Unavailable,
    ErrorCode.INTERNAL: InternalError,
    ErrorCode.USER: InternalError,
}

# For statuses without our details: they come from the transport, a proxy, or a server that is not Kagzi. Kagzi never
# returns INTERNAL or UNKNOWN without details, so these two also mean a broken connection.
_CODE_OF_BARE_STATUS = {
    grpc.StatusCode.NOT_FOUND: ErrorCode.NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT: ErrorCode.INVALID_ARGUMENT,
    grpc.StatusCode.OUT_OF_RANGE: ErrorCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION: ErrorCode.PRECONDITION_FAILED,
    grpc.StatusCode.ALREADY_EXISTS: ErrorCode.CONFLICT,
    grpc.StatusCode.PERMISSION_DENIED: ErrorCode.UNAUTHORIZED,
    grpc.StatusCode.UNAUTHENTICATED: ErrorCode.UNAUTHENTICATED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ErrorCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNIMPLEMENTED: ErrorCode.UNIMPLEMENTED,
    grpc.StatusCode.DATA_LOSS: ErrorCode.INTERNAL,
}


class RpcStatus(NamedTuple):
    """The status with which a call ends."""

    code: grpc.StatusCode
    details: str
    metadata: tuple[tuple[str, bytes], ...]


def is_incident(error: BaseException) -> bool:
    """Whether the error is a bug, not a response to the caller: its text is only logged."""
    return not isinstance(error, KagziError) or isinstance(error, InternalError)


def to_status(error: BaseException, *, incident: str = "") -> RpcStatus:
    """The status with which an exception ends a call. For an incident it contains only the number."""
    detail = detail_of(public_error(error, incident=incident))
    code = _STATUS_OF_CODE[detail.code]
    info = ErrorInfo(reason=detail.code.name, domain=DOMAIN, metadata=detail.metadata)
    details: list[Any] = [Any(), Any()]
    details[0].Pack(info)
    details[1].Pack(write_error(detail))
    number: int = code.value[0]
    status = Status(code=number, message=detail.message, details=details)
    return RpcStatus(code, detail.message, ((DETAILS_KEY, status.SerializeToString()),))


def is_outage(error: BaseException) -> bool:
    """Whether the store, or something else that the server needs, is unreachable: its address is only logged."""
    return isinstance(error, Unavailable) and not isinstance(error, ServerUnavailable)


def public_error(error: BaseException, *, incident: str = "") -> KagziError:
    """The error that clients get in place of one whose text they must not see; any other error unchanged."""
    if is_incident(error):
        number = error.metadata.get(INCIDENT, "") if isinstance(error, KagziError) else ""
        return incident_error(incident or number or "unknown")
    if is_outage(error):
        return database_down(database_words(error))
    return cast("KagziError", error)


def detail_of(error: KagziError) -> ErrorDetail:
    """The error as a value, truncated to fit into the metadata of a response."""
    retry_after_ms = 0 if error.retry_after is None else error.retry_after // timedelta(milliseconds=1)
    metadata = list(error.metadata.items())[:_METADATA_ENTRIES]
    return ErrorDetail(
        code=error.code,
        kind=error.kind,
        message=clip(error.message, _TEXT_BYTES),
        type=qualified_name(type(error)),
        retry_after_ms=retry_after_ms,
        subject=clip(error.subject, limits.NAME_BYTES),
        subject_id=clip(error.subject_id, limits.NAME_BYTES),
        metadata={clip(key, limits.NAME_BYTES): clip(value, limits.NAME_BYTES) for key, value in metadata},
        non_retryable=error.non_retryable,
    )


def error_of(detail: ErrorDetail) -> KagziError:
    """The exception for a detail: the inverse of `detail_of`."""
    kind = _ERROR_OF_CODE[detail.code]
    field = {"field": detail.subject_id if detail.subject == "field" else ""} if issubclass(kind, RequestError) else {}
    return kind(
        detail.message,
        subject=detail.subject,
        subject_id=detail.subject_id,
        metadata=detail.metadata,
        retry_after=timedelta(milliseconds=detail.retry_after_ms) if detail.retry_after_ms else None,
        **field,
    )


def from_rpc_error(error: grpc.RpcError) -> KagziError:
    """The exception that a failed call raises in the SDK. Without details it follows from the status code; if that is
    unclear, it is Unavailable."""
    call = cast("grpc.Call", error)
    detail = _detail_in(call)
    if detail is not None:
        return error_of(detail)
    status = call.code()
    text = call.details() or status.name
    code = _CODE_OF_BARE_STATUS.get(status, ErrorCode.UNAVAILABLE)
    return error_of(ErrorDetail(code=code, message=f"{text} ({status.name})", metadata={"grpc_status": status.name}))


def _detail_in(call: grpc.Call) -> ErrorDetail | None:
    for key, value in call.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            return _read_details(value)
    return None


def _read_details(data: bytes) -> ErrorDetail | None:
    message = pb.ErrorDetail()
    try:
        for part in Status.FromString(data).details:
            if part.Unpack(message):
                return read_error(message)
    except DecodeError:
        return None
    return None


def clip(text: str, limit_bytes: int) -> str:
    """The beginning of `text`, at most `limit_bytes` of UTF-8."""
    if len(text) * 4 <= limit_bytes:
        return text
    return text.encode(errors="replace")[:limit_bytes].decode(errors="ignore")
