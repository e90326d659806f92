"""Exceptions of user code as error details: what is stored, sent and shown."""

import asyncio
import concurrent.futures
from collections.abc import Iterator
from typing import Any

import msgspec

from ..core import limits
from ..core.errors import (
    ChildError,
    ErrorCode,
    ErrorDetail,
    ErrorKind,
    FailureError,
    KagziError,
    NonRetryable,
    StepError,
    qualified_name,
)
from ..core.times import US_PER_MS, us_from_timedelta
from .retry import Retry
from .tracebacks import folded_traceback

STEP_ATTRIBUTE = "kagzi_step_id"  # of an error that is a step's result: which step
_PERMANENT = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    NameError,
    AssertionError,
    NotImplementedError,
    ImportError,
)
_BY_STATUS = ErrorKind.EXHAUSTED  # a mark: the HTTP status decides
_LIBRARIES: dict[str, dict[str, ErrorKind]] = {
    "httpx": {
        "TimeoutException": ErrorKind.TIMEOUT,
        "HTTPStatusError": _BY_STATUS,
        "InvalidURL": ErrorKind.PERMANENT,
        "UnsupportedProtocol": ErrorKind.PERMANENT,
        "DecodingError": ErrorKind.PERMANENT,
        "TooManyRedirects": ErrorKind.PERMANENT,
        "TransportError": ErrorKind.TRANSIENT,
    },
    "requests": {
        "Timeout": ErrorKind.TIMEOUT,
        "HTTPError": _BY_STATUS,
        "InvalidURL": ErrorKind.PERMANENT,
        "MissingSchema": ErrorKind.PERMANENT,
        "InvalidSchema": ErrorKind.PERMANENT,
        "TooManyRedirects": ErrorKind.PERMANENT,
        "JSONDecodeError": ErrorKind.PERMANENT,
        "ConnectionError": ErrorKind.TRANSIENT,
        "ChunkedEncodingError": ErrorKind.TRANSIENT,
    },
    "aiohttp": {
        "ServerTimeoutError": ErrorKind.TIMEOUT,
        "ClientResponseError": _BY_STATUS,
        "InvalidURL": ErrorKind.PERMANENT,
        "ClientConnectionError": ErrorKind.TRANSIENT,
        "ClientPayloadError": ErrorKind.TRANSIENT,
    },
    "asyncpg": {
        "IntegrityConstraintViolationError": ErrorKind.PERMANENT,
        "DataError": ErrorKind.PERMANENT,
        "SyntaxOrAccessError": ErrorKind.PERMANENT,
        "InvalidAuthorizationSpecificationError": ErrorKind.PERMANENT,
        "QueryCanceledError": ErrorKind.TIMEOUT,
        "PostgresConnectionError": ErrorKind.TRANSIENT,
        "TransactionRollbackError": ErrorKind.TRANSIENT,
        "InterfaceError": ErrorKind.TRANSIENT,
    },
    "psycopg": {
        "IntegrityError": ErrorKind.PERMANENT,
        "DataError": ErrorKind.PERMANENT,
        "ProgrammingError": ErrorKind.PERMANENT,
        "NotSupportedError": ErrorKind.PERMANENT,
        "QueryCanceled": ErrorKind.TIMEOUT,
        "OperationalError": ErrorKind.TRANSIENT,
        "InterfaceError": ErrorKind.TRANSIENT,
    },
}
_LIBRARIES["psycopg2"] = _LIBRARIES["psycopg"]
_BASES_LEFT_OUT = frozenset({"object", "BaseException", "Exception"})


def describe(error: BaseException, *, retry: Retry | None = None) -> ErrorDetail:
    """The error as it is recorded. `retry` says which errors are final besides NonRetryable.

    The kind only informs (whoever reads it, or catches it): errors are retried unless they are final.
    """
    return _describe(error, retry, limits.ERROR_CAUSES, set())


def _describe(error: BaseException, retry: Retry | None, causes: int, seen: set[int]) -> ErrorDetail:
    seen.add(id(error))
    cause = _cause_of(error)
    if causes == 0 or cause is None or id(cause) in seen:
        # What a recorded failure is about is its cause: whoever raises another error from a StepError shows the step's own.
        cause_detail = _cut(error.error, causes) if isinstance(error, FailureError) else None
    else:
        cause_detail = _describe(cause, None, causes - 1, seen)
    own = error if isinstance(error, KagziError) else None
    return ErrorDetail(
        code=own.code if own else ErrorCode.USER,
        kind=kind_of(error),
        message=_text(_message(error), limits.ERROR_MESSAGE_BYTES),
        type=qualified_name(type(error)),
        bases=tuple(_base_names(type(error))),
        traceback=_text(folded_traceback(error.__traceback__), limits.ERROR_TRACEBACK_BYTES, keep_end=True),
        non_retryable=(retry.is_final(error) if retry is not None else isinstance(error, NonRetryable)),
        retry_after_ms=_retry_after_ms(own),
        metadata=dict(own.metadata) if own else {},
        cause=cause_detail,
    )


def _cause_of(error: BaseException) -> BaseException | None:
    """What led to it. The first error in a group, if nothing else did: the frames of the group itself tell little."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        return cause
    first = next(leaves_of(error))
    return None if first is error else first


def _cut(detail: ErrorDetail, causes: int) -> ErrorDetail | None:
    """With so many errors in the chain, itself included."""
    if causes == 0:
        return None
    cause = None if detail.cause is None else _cut(detail.cause, causes - 1)
    return detail if cause is detail.cause else msgspec.structs.replace(detail, cause=cause)


def describe_step_error(error: StepError, *, step_id: str) -> ErrorDetail:
    """The detail of a run that fails because a step did: the step's error, and which step it was. No retry of the run helps."""
    return msgspec.structs.replace(error.error, subject="step", subject_id=step_id, non_retryable=True)


def describe_end(error: BaseException) -> ErrorDetail:
    """The error that left a workflow function. A failed step stays failed in every further try: then the run is not retried."""
    if isinstance(error, StepError):
        return describe_step_error(error, step_id=error.step)
    step_id = getattr(error, STEP_ATTRIBUTE, "")
    if step_id:  # a child that failed, a signal that did not come: recorded results as well
        own = describe(error)
        cause = error.error if isinstance(error, ChildError) else own.cause
        return msgspec.structs.replace(own, subject="step", subject_id=step_id, non_retryable=True, cause=cause)
    leaves = list(leaves_of(error))
    steps = [leaf for leaf in leaves if isinstance(leaf, StepError)]
    detail = describe(error)
    if not steps or leaves == [error]:
        return detail
    first = describe_step_error(steps[0], step_id=steps[0].step)
    final = all(isinstance(leaf, (StepError, ChildError, NonRetryable)) for leaf in leaves)
    texts = "; ".join(describe(leaf).text for leaf in leaves[:5])
    return msgspec.structs.replace(
        detail,
        message=_text(f"{detail.message}: {texts}", limits.ERROR_MESSAGE_BYTES),
        kind=first.kind,
        subject=first.subject,
        subject_id=first.subject_id,
        non_retryable=final,
        cause=first,
    )


def kind_of(error: BaseException) -> ErrorKind:
    """What an error means. Errors of libraries are known by name: nothing is imported for them."""
    if isinstance(error, KagziError):
        return error.kind
    if isinstance(error, (TimeoutError, concurrent.futures.TimeoutError)):
        return ErrorKind.TIMEOUT
    if isinstance(error, (asyncio.CancelledError, concurrent.futures.CancelledError)):
        return ErrorKind.CANCELLED
    if isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)):
        return ErrorKind.PERMANENT
    known = _kind_of_library_error(error)
    if known is not None:
        return known
    if isinstance(error, OSError):
        return ErrorKind.TRANSIENT
    return ErrorKind.PERMANENT if isinstance(error, _PERMANENT) else ErrorKind.TRANSIENT


def _kind_of_library_error(error: BaseException) -> ErrorKind | None:
    for base in type(error).__mro__:
        library = _LIBRARIES.get(base.__module__.partition(".")[0])
        if library is not None and (kind := library.get(base.__name__)) is not None:
            return kind if kind is not _BY_STATUS else _kind_of_status(error)
    return None


def _kind_of_status(error: BaseException) -> ErrorKind:
    """An answer with an HTTP error: too many requests and the server's own failures pass, others do not."""
    response: Any = getattr(error, "response", None)
    status: Any = getattr(response, "status_code", None) or getattr(error, "status", None)
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 425, 429):
        return ErrorKind.PERMANENT
    return ErrorKind.TIMEOUT if status in (408, 504) else ErrorKind.TRANSIENT


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, and of groups in it; any other error is its own only leaf."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  a group of anything
            yield from leaves_of(inner)  # pyright: ignore[reportUnknownArgumentType]  a group of anything
    else:
        yield error


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  __str__ is user code; its failure must not hide the error
        return f"<{type(error).__name__}.__str__ raised {type(broken).__name__}>"


def _base_names(cls: type[BaseException]) -> Iterator[str]:
    for base in cls.__mro__[1:]:
        if issubclass(base, BaseException) and (name := qualified_name(base)) not in _BASES_LEFT_OUT:
            yield name


def _retry_after_ms(error: KagziError | None) -> int:
    if error is None or error.retry_after is None:
        return 0
    return -(-us_from_timedelta(error.retry_after) // US_PER_MS)


def _text(text: str, limit_bytes: int, *, keep_end: bool = False) -> str:
    """Text that every store takes: no NUL, no lone surrogates, not too long."""
    data = text.replace("\0", "\\0").encode("utf-8", "backslashreplace")
    if len(data) > limit_bytes:
        data = data[-limit_bytes:] if keep_end else data[:limit_bytes]
    return data.decode("utf-8", "ignore")
