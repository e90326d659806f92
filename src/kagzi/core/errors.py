"""Everything Kagzi raises, divided by what the caller should do.

KagziError
|-- NonRetryable          raise it in a step: fail now, do not retry
|-- RetryAfter            raise it in a step: retry, but not before this delay
|-- StepError             a step failed for good                       (handle it, or let the run fail)
|-- RunError              a run did not complete                       (look at .error)
|   `-- ChildError        ... and it was a child of this one
|-- Diverged              the code does not fit the recorded history   (deploy fitting code)
|-- RequestError          the request was refused; nothing was changed
|   |-- InvalidArgument   fix the argument
|   |-- NotFound          there is no such thing in this namespace
|   |-- AlreadyExists     the id is taken
|   |-- PreconditionFailed  not in this state
|   |-- PermissionDenied  use another key
|   |-- ResourceExhausted a limit; wait .retry_after or raise it
|   |-- LeaseLost         somebody else holds the run: abandon it
|   |-- DeadlinePassed    the run's deadline has passed: abandon it
|   |-- CancelRequested   the run is to stop: begin nothing more, clean up
|   `-- Unimplemented     this server does not do that yet
|-- SchemaMismatch        the database is of another version: migrate it, or run other code
|-- Unavailable           the server or its store cannot be reached: try again
|   |-- ServerUnavailable ... and the server says so itself
|   |-- Contended         ... because somebody else holds locks: nothing was changed
|   |-- StoreBroken       ... for this one thing: the store may do others
|   `-- StoreLost         ... until the server is started again
`-- InternalError         a bug in Kagzi
    `-- StatementFailed   ... or in a statement that the store refused
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, Self

import msgspec

from .duration import Duration, parse_duration
from .remote_traceback import remote_traceback


class ErrorKind(StrEnum):
    """What an error means for whoever sees it."""

    TRANSIENT = "transient"
    PERMANENT = "permanent"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    EXHAUSTED = "exhausted"
    NONDETERMINISM = "nondeterminism"
    TERMINATED = "terminated"
    LOST = "lost"


REASON = "reason"
"""In the metadata of a refusal that tells a worker of a cancellation: why the run is to be cancelled."""


def limit_reached(name: str, maximum: float) -> dict[str, str]:
    """The metadata of a refusal by a limit: what it is called, and how much it allows."""
    return {"limit": name, "maximum": str(int(maximum)) if maximum == int(maximum) else f"{maximum:g}"}


class ErrorCode(StrEnum):
    NOT_FOUND = "not_found"
    INVALID_ARGUMENT = "invalid_argument"
    PRECONDITION_FAILED = "precondition_failed"
    CONFLICT = "conflict"
    UNAUTHORIZED = "unauthorized"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"
    TIMEOUT = "timeout"
    LEASE_LOST = "lease_lost"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    CANCELLED = "cancelled"
    UNIMPLEMENTED = "unimplemented"
    USER = "user"


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as it is stored and sent. Both stores keep it as JSON."""

    code: ErrorCode = ErrorCode.USER
    kind: ErrorKind = ErrorKind.TRANSIENT
    message: str = ""
    type: str = ""
    bases: tuple[str, ...] = ()
    traceback: str = ""
    non_retryable: bool = False
    retry_after_ms: int = 0
    subject: str = ""
    subject_id: str = ""
    metadata: dict[str, str] = {}
    cause: "ErrorDetail | None" = None

    @property
    def text(self) -> str:
        """`Type: message`, as Python would print it."""
        name = self.type.rpartition(".")[2]
        return f"{name}: {self.message}" if name and self.message else name or self.message

    def names(self) -> frozenset[str]:
        """Every name the error answers to: its class and bases, qualified and plain."""
        qualified = (self.type, *self.bases)
        return frozenset(name for full in qualified if full for name in (full, full.rpartition(".")[2]))


_detail_encoder = msgspec.json.Encoder()
_detail_decoder = msgspec.json.Decoder(ErrorDetail)


def encode_detail(detail: ErrorDetail) -> bytes:
    return _detail_encoder.encode(detail)


def decode_detail(data: bytes | str) -> ErrorDetail:
    return _detail_decoder.decode(data)


class KagziError(Exception):
    """Base of everything Kagzi raises."""

    kind: ErrorKind = ErrorKind.PERMANENT
    code: ErrorCode = ErrorCode.INTERNAL

    def __init__(
        self,
        message: str = "",
        *,
        metadata: Mapping[str, str] | None = None,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by what it holds: constructors differ, and those of users, too."""
        return _unpickled, (type(self), self.args), self.__dict__


def _unpickled(cls: type[KagziError], args: tuple[Any, ...]) -> KagziError:
    return cls.__new__(cls, *args)


class NonRetryable(KagziError):
    """Raise inside a step: fail now, do not retry."""

    kind = ErrorKind.PERMANENT
    code = ErrorCode.USER

    def __init__(self, message: str, *, code: str | None = None, details: Any = None) -> None:
        metadata: dict[str, str] = {}
        if code is not None:
            metadata["code"] = code
        if details is not None:
            metadata["details"] = msgspec.json.encode(details).decode()
        super().__init__(message, metadata=metadata)


class RetryAfter(KagziError):
    """Raise inside a step: retry, but not before this delay (HTTP 429/503)."""

    kind = ErrorKind.TRANSIENT
    code = ErrorCode.USER

    def __init__(self, message: str, after: Duration) -> None:
        self.after = parse_duration(after, what="after")
        super().__init__(message, retry_after=self.after)


class FailureError(KagziError):
    """A recorded failure of user code: shared by StepError and RunError. A note has the traceback that was recorded with it."""

    def __init__(self, message: str, error: ErrorDetail, *, step: str = "") -> None:
        super().__init__(message, metadata=error.metadata)
        self.error = error
        self.kind = error.kind
        self.code = error.code
        if note := remote_traceback(error, step):
            self.add_note(note)

    def matches(self, *errors: type[BaseException]) -> bool:
        """isinstance() for the original error, which may have happened in another process."""
        names = (self.error.type, *self.error.bases)
        return any(qualified_name(cls) in names for cls in errors)


class StepError(FailureError):
    """A step failed for good. Always this type, live and on replay, so `except` is deterministic."""

    def __init__(
        self,
        step: str,
        error_type: str,
        message: str,
        *,
        attempts: int,
        kind: ErrorKind,
        mro: tuple[str, ...] = (),
        error: ErrorDetail | None = None,
    ) -> None:
        detail = error or ErrorDetail(kind=kind, type=error_type, message=message, bases=mro)
        tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        super().__init__(f"step {step!r} failed after {tries}: {detail.text}", detail, step=step)
        self.step = step
        self.attempts = attempts

    @classmethod
    def of(cls, step: str, error: ErrorDetail, *, attempts: int) -> Self:
        return cls(step, error.type, error.message, attempts=attempts, kind=error.kind, mro=error.bases, error=error)


class RunError(FailureError):
    """Raised by run.result(): the workflow did not complete."""

    def __init__(
        self, run_id: str, status: str, message: str, kind: ErrorKind, *, error: ErrorDetail | None = None
    ) -> None:
        detail = error or ErrorDetail(kind=kind, message=message)
        super().__init__(f"run {run_id} {status}: {detail.text}" if detail.text else f"run {run_id} {status}", detail)
        self.run_id = run_id
        self.status = status

    @classmethod
    def of(cls, run_id: str, status: str, error: ErrorDetail) -> Self:
        return cls(run_id, status, error.message, error.kind, error=error)


class ChildError(RunError):
    """A child run did not complete."""


class Diverged(KagziError):
    """The code does not fit the recorded history."""

    kind = ErrorKind.NONDETERMINISM
    code = ErrorCode.PRECONDITION_FAILED


class RequestError(KagziError):
    """The request was refused and nothing was changed. `field` names what to fix."""

    code: ErrorCode = ErrorCode.INVALID_ARGUMENT
    default_subject: ClassVar[str] = "field"

    def __init__(
        self,
        message: str = "",
        *,
        field: str = "",
        subject: str = "",
        subject_id: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message, metadata=metadata, retry_after=retry_after)
        self.field = field
        self.subject = subject or (self.default_subject if field else "")
        self.subject_id = subject_id or field


class InvalidArgument(RequestError, ValueError):
    code = ErrorCode.INVALID_ARGUMENT


class NotFound(RequestError, LookupError):
    code = ErrorCode.NOT_FOUND


class AlreadyExists(RequestError):
    code = ErrorCode.CONFLICT


class PreconditionFailed(RequestError):
    code = ErrorCode.PRECONDITION_FAILED


class PermissionDenied(RequestError):
    code = ErrorCode.UNAUTHORIZED


class ResourceExhausted(RequestError):
    kind = ErrorKind.TRANSIENT
    code = ErrorCode.RESOURCE_EXHAUSTED


class LeaseLost(RequestError):
    kind = ErrorKind.LOST
    code = ErrorCode.LEASE_LOST


class DeadlinePassed(RequestError):
    kind = ErrorKind.TIMEOUT
    code = ErrorCode.TIMEOUT


class CancelRequested(RequestError):
    kind = ErrorKind.CANCELLED
    code = ErrorCode.CANCELLED


class Unimplemented(RequestError):
    code = ErrorCode.UNIMPLEMENTED


class Unavailable(KagziError):
    """The server, or its store, cannot be reached. Nothing is known about what became of the request: repeat it."""

    kind = ErrorKind.TRANSIENT
    code = ErrorCode.UNAVAILABLE


class ServerUnavailable(Unavailable):
    """Said by a server about itself: it stops, a run is locked. Its text is for clients, while that of any other Unavailable may
    name hosts and files, and stays in the log."""


class Contended(Unavailable):
    """The store did not get a lock in time, or gave way to somebody else. Nothing was changed: try again."""


class StoreBroken(Unavailable):
    """The store failed inside on what it was asked: a damaged page, a full cache, a bug of its own. It may pass, and something else
    may work meanwhile."""


class StoreLost(Unavailable):
    """The files of the store were taken away under the server: nothing works until it is started again."""


class InternalError(KagziError):
    """A bug in Kagzi."""

    code = ErrorCode.INTERNAL


class StatementFailed(InternalError):
    """The store refused a statement in a way that nobody foresaw. Its words are for the log only."""


INCIDENT = "incident"
"""In the metadata of an InternalError whose cause is in the log: the number under which it is found there."""


def incident_error(number: str) -> InternalError:
    """What clients are told of something that was logged under this number."""
    return InternalError(
        f"internal error, incident {number}. The server's log says more under this number.",
        metadata={INCIDENT: number},
    )


def qualified_name(cls: type[BaseException]) -> str:
    """`module.Class`; builtins without their module, as people write them."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def not_found(what: str, which: str) -> NotFound:
    return NotFound(f"{what} {which} not found", subject=what, subject_id=which)


class SchemaMismatch(KagziError):
    """The database is of another schema version than this code. The message says which, and what to run."""

    code = ErrorCode.PRECONDITION_FAILED
