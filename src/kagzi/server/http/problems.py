"""Errors as responses: RFC 9457, `application/problem+json`."""

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus

import msgspec

from ...core.error_details import ErrorCode, ErrorKind
from ...core.errors import InvalidArgument, KagziError, RequestError, ResourceExhausted
from ...core.raised.incidents import INCIDENT
from .views.field_names import field_name, in_words

PROBLEM_JSON = "application/problem+json"
_RETRY_AFTER = timedelta(seconds=1)
_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z`])")

STATUS_OF_CODE = {
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.UNAUTHORIZED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.PRECONDITION_FAILED: 409,
    ErrorCode.LEASE_LOST: 409,
    ErrorCode.CANCELLED: 409,
    ErrorCode.RESOURCE_EXHAUSTED: 429,
    ErrorCode.INTERNAL: 500,
    ErrorCode.USER: 500,
    ErrorCode.UNIMPLEMENTED: 501,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.TIMEOUT: 504,
}


class Unreadable(InvalidArgument):
    """A request that cannot be decoded. Names the field as the caller sent it."""


class MethodNotAllowed(InvalidArgument):
    """The path exists, but not with this method."""


class MediaTypeRefused(InvalidArgument):
    """The media type of the body is not accepted here."""


class BodyTooLarge(ResourceExhausted):
    """Repeating the request would not help."""

    kind = ErrorKind.PERMANENT


_STATUS_OF_KIND: dict[type[KagziError], int] = {
    MethodNotAllowed: 405,
    BodyTooLarge: 413,
    MediaTypeRefused: 415,
}


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error (RFC 9457). `instance` is the incident number, under which the server's log has the cause. `field` is
    the parameter or field to fix, `limit` the limit that was reached."""

    type: str
    title: str
    status: int
    detail: str
    code: ErrorCode
    kind: ErrorKind
    instance: str | None = None
    field: str | None = None
    limit: str | None = None
    remedy: str | None = None
    retry_after_ms: int | None = None
    metadata: Mapping[str, str] = {}


def status_of(error: KagziError) -> int:
    return _STATUS_OF_KIND.get(type(error)) or STATUS_OF_CODE[error.code]


def problem_of(error: KagziError) -> Problem:
    """The problem of an error whose text is for clients."""
    status = status_of(error)
    metadata = dict(error.metadata)
    incident = metadata.get(INCIDENT, "")
    message, field = error.message, error.field if isinstance(error, RequestError) else ""
    if not isinstance(error, Unreadable):
        message, field = in_words(message, field), field_name(field)
    sentences = _SENTENCE_END.split(message, maxsplit=1)
    return Problem(
        type=f"urn:kagzi:error:{error.code.value}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=message,
        code=error.code,
        kind=error.kind,
        instance=f"urn:kagzi:incident:{incident}" if incident else None,
        field=field or None,
        limit=metadata.get("limit"),
        remedy=sentences[1] if len(sentences) > 1 else None,
        retry_after_ms=None if error.retry_after is None else error.retry_after // timedelta(milliseconds=1),
        metadata=metadata,
    )


def headers_of(error: KagziError) -> dict[str, str]:
    status = status_of(error)
    if status in (429, 503):
        wait = _RETRY_AFTER if error.retry_after is None else error.retry_after
        return {"retry-after": str(max(math.ceil(wait.total_seconds()), 1))}
    if status == 401:
        return {"www-authenticate": "Bearer"}
    if isinstance(error, MethodNotAllowed):
        return {"allow": error.metadata["allow"]}
    return {}
