"""Classifies errors of user code as transient or not, which decides whether they are retried by default (ADR 0029).

Errors of libraries are recognised by the names of their classes and by their attributes (an HTTP status, a gRPC code):
no library is imported for them.
"""

import asyncio
import concurrent.futures
import json
from typing import Any, cast

from ...core.error_details import ErrorKind
from ...core.errors import KagziError
from ...core.retry.reasons import PROGRAMMING_ERRORS

_OF_DATA = (
    json.JSONDecodeError,
    UnicodeDecodeError,
)  # ValueErrors about received data, which may be complete the next time
_OF_FILES = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)

_DB_API = {
    "IntegrityError": ErrorKind.PERMANENT,
    "DataError": ErrorKind.PERMANENT,
    "ProgrammingError": ErrorKind.PERMANENT,
    "NotSupportedError": ErrorKind.PERMANENT,
    "OperationalError": ErrorKind.TRANSIENT,
    "InterfaceError": ErrorKind.TRANSIENT,
}
_LIBRARIES: dict[str, dict[str, ErrorKind]] = {
    "httpx": {
        "TimeoutException": ErrorKind.TIMEOUT,
        "InvalidURL": ErrorKind.PERMANENT,
        "UnsupportedProtocol": ErrorKind.PERMANENT,
        "TooManyRedirects": ErrorKind.PERMANENT,
        "TransportError": ErrorKind.TRANSIENT,
    },
    "requests": {
        "Timeout": ErrorKind.TIMEOUT,
        "InvalidURL": ErrorKind.PERMANENT,
        "MissingSchema": ErrorKind.PERMANENT,
        "InvalidSchema": ErrorKind.PERMANENT,
        "TooManyRedirects": ErrorKind.PERMANENT,
        "ConnectionError": ErrorKind.TRANSIENT,
        "ChunkedEncodingError": ErrorKind.TRANSIENT,
    },
    "aiohttp": {
        "ServerTimeoutError": ErrorKind.TIMEOUT,
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
    "psycopg": {"QueryCanceled": ErrorKind.TIMEOUT, **_DB_API},
    "psycopg2": {"QueryCanceled": ErrorKind.TIMEOUT, **_DB_API},
    "sqlite3": _DB_API,
    "sqlalchemy": _DB_API,
}
_GRPC_PERMANENT = frozenset({
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "FAILED_PRECONDITION",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
})  # fmt: skip
_MAY_PASS = (408, 425, 429)  # HTTP statuses from 400 to 499 that are worth a retry


def kind_of(error: BaseException) -> ErrorKind:
    """PERMANENT if a retry would fail the same way, TIMEOUT, CANCELLED, or TRANSIENT, also for unknown errors."""
    if isinstance(error, KagziError):
        return error.kind
    if isinstance(error, (TimeoutError, concurrent.futures.TimeoutError)):
        return ErrorKind.TIMEOUT
    if isinstance(error, (asyncio.CancelledError, concurrent.futures.CancelledError)):
        return ErrorKind.CANCELLED
    if isinstance(error, BaseExceptionGroup):
        return _kind_of_group(error)  # pyright: ignore[reportUnknownArgumentType]  a group may contain any errors
    known = _kind_of_answer(error) or _kind_of_library_error(error)
    if known is not None:
        return known
    if isinstance(error, OSError):
        return ErrorKind.PERMANENT if isinstance(error, _OF_FILES) else ErrorKind.TRANSIENT
    if isinstance(error, _OF_DATA):
        return ErrorKind.TRANSIENT
    return ErrorKind.PERMANENT if isinstance(error, PROGRAMMING_ERRORS) else ErrorKind.TRANSIENT


def own_code(error: BaseException) -> str:
    """The error's own code: "404" of an HTTP error, "NOT_FOUND" of a gRPC error; empty if it has none."""
    status = _http_status(error)
    return str(status) if status is not None else _grpc_code(error)


def _kind_of_group(group: "BaseExceptionGroup[BaseException]") -> ErrorKind:
    kinds = {kind_of(each) for each in group.exceptions}
    return kinds.pop() if len(kinds) == 1 else ErrorKind.TRANSIENT


def _kind_of_answer(error: BaseException) -> ErrorKind | None:
    """The kind of an error response of another service: it refused the request, or it failed itself."""
    status = _http_status(error)
    if status is not None:
        if status < 500 and status not in _MAY_PASS:
            return ErrorKind.PERMANENT
        return ErrorKind.TIMEOUT if status in (408, 504) else ErrorKind.TRANSIENT
    code = _grpc_code(error)
    if code in _GRPC_PERMANENT:
        return ErrorKind.PERMANENT
    return ErrorKind.TIMEOUT if code == "DEADLINE_EXCEEDED" else None


def _http_status(error: BaseException) -> int | None:
    """The status of an HTTP error: `.response.status_code` (httpx, requests), `.status_code`, `.status` (aiohttp,
    urllib)."""
    response = _attribute(error, "response")
    for owner, name in ((response, "status_code"), (response, "status"), (error, "status_code"), (error, "status")):
        status = _attribute(owner, name)
        if isinstance(status, int) and 400 <= status < 600:
            return int(status)
    return None


def _grpc_code(error: BaseException) -> str:
    if not any(base.__module__.partition(".")[0] == "grpc" for base in type(error).__mro__):
        return ""
    try:
        name = cast("Any", error).code().name
    except Exception:  # noqa: BLE001  another version of it may have no code
        return ""
    return name if isinstance(name, str) else ""


def _attribute(owner: object, name: str) -> Any:
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001  a property of a library; its failure must not hide the error
        return None


def _kind_of_library_error(error: BaseException) -> ErrorKind | None:
    for base in type(error).__mro__:
        library = _LIBRARIES.get(base.__module__.partition(".")[0])
        if library is not None and (kind := library.get(base.__name__)) is not None:
            return kind
    return None
