"""Everything Kagzi raises, divided by what the caller should do.

KagziError
|-- NonRetryable          raise it in a step: fail now, do not retry
|-- RetryAfter            raise it in a step: retry, but not before this delay (retry_after.py)
|-- StepError             a step failed for good                       (handle it, or let the run fail)
|-- RunError              a run did not complete                       (look at .error)
|   `-- ChildError        ... and it was a child of this one
|-- Diverged              the code does not fit the recorded history   (deploy fitting code)
|-- RequestError          the request was refused; nothing was changed
|   |-- InvalidArgument   fix the argument
|   |-- NotFound          there is no such thing in this namespace
|   |-- AlreadyExists     the id is taken
|   |-- PreconditionFailed  not in this state
|   |-- Unauthenticated   give a key that is good
|   |-- PermissionDenied  use another key
|   |-- ResourceExhausted a limit; wait .retry_after or raise it
|   |-- LeaseLost         another worker holds the run: abandon it
|   |-- DeadlinePassed    the run's deadline has passed: abandon it
|   |-- CancelRequested   the run is to stop: begin nothing more, clean up
|   `-- Unimplemented     this server does not do that yet
|-- SchemaMismatch        the database is of another version: migrate it, or run other code
|-- Unavailable           the server or its store cannot be reached: try again
|   |-- ServerUnavailable ... and the server says so itself
|   |-- Contended         ... because of locks held by others: nothing was changed
|   |-- StoreBroken       ... for this one thing: the store may do others
|   `-- StoreLost         ... until the server is started again
`-- InternalError         a bug in Kagzi
    `-- StatementFailed   ... or in a statement that the store refused
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Self

import msgspec

from .error_details import (
    CHILD_WORKFLOW,
    CHILD_WORKFLOW_ID,
    OWN_CODE,
    Child,
    ErrorCode,
    ErrorDetail,
    ErrorKind,
    child_message,
)
from .public import exported
from .raised.exceptions import qualified_name
from .text.remote_traceback import remote_traceback

REASON = "reason"
"""Metadata key of a refusal that informs a worker of a cancellation: the reason of the cancellation."""


def limit_reached(name: str, maximum: float) -> dict[str, str]:
    """The metadata of a refusal by a limit: its name, and the maximum."""
    return {"limit": name, "maximum": str(int(maximum)) if maximum == int(maximum) else f"{maximum:g}"}


@exported
class KagziError(Exception):
    """Base of everything Kagzi raises."""

    kind: ErrorKind = ErrorKind.PERMANENT  #: what the error means for whoever sees it
    code: ErrorCode = ErrorCode.INTERNAL  #: what went wrong

    def __init__(
        self,
        message: str = "",
        *,
        subject: str = "",
        subject_id: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message  #: what went wrong, in words
        self.subject = subject  #: what it is about: "field", "step", "run" ...
        self.subject_id = subject_id  #: which one
        self.metadata: dict[str, str] = dict(metadata or {})  #: machine-readable details
        self.retry_after = retry_after  #: when to try again at the earliest; None: not known

    @property
    def non_retryable(self) -> bool:
        """Whether doing the same again is pointless."""
        return self.kind is not ErrorKind.TRANSIENT

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by attributes: constructors differ, including those of users' subclasses."""
        return self._unpickled, (self.args,), self.__dict__

    @classmethod
    def _unpickled(cls, args: tuple[Any, ...]) -> Self:
        return cls.__new__(cls, *args)


@exported
class NonRetryable(KagziError):
    """Raise it inside a step: the step fails now and is not tried again. `code` (a word of your own) and `details` (any
    value with a JSON form) are kept in the metadata of the error."""

    kind = ErrorKind.PERMANENT
    code = ErrorCode.USER

    def __init__(self, message: str, *, code: str | None = None, details: Any = None) -> None:
        metadata: dict[str, str] = {}
        if code is not None:
            metadata[OWN_CODE] = code
        if details is not None:
            metadata["details"] = msgspec.json.encode(details).decode()
        super().__init__(message, metadata=metadata)


class FailureError(KagziError):
    """A recorded failure of user code: shared by StepError and RunError. A note has the traceback that was recorded
    with it."""

    def __init__(self, message: str, error: ErrorDetail, *, subject: str, subject_id: str) -> None:
        step = subject_id if subject == "step" else ""
        if error.subject:
            subject, subject_id = error.subject, error.subject_id
        super().__init__(message, subject=subject, subject_id=subject_id, metadata=error.metadata)
        self.error = error  #: the error as it is recorded, with the original type, message and traceback
        self.kind = error.kind  #: the kind of the original error
        self.code = error.code  #: the code of the original error
        if note := remote_traceback(error, step):
            self.add_note(note)

    @property
    def non_retryable(self) -> bool:
        """Whether the error itself forbade another attempt."""
        return self.error.non_retryable

    @property
    def exhausted(self) -> bool:
        """Whether the last allowed attempt failed. `kind` is that of its error."""
        return self.error.exhausted

    def matches(self, *errors: type[BaseException]) -> bool:
        """isinstance() for the original error, which may have happened in another process: any of the classes
        `errors`."""
        names = (self.error.type, *self.error.bases)
        return any(qualified_name(cls) in names for cls in errors)


@exported
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
        text = f"step {step!r} failed after {tries}: {detail.text}"
        super().__init__(text, detail, subject="step", subject_id=step)
        self.step = step  #: the step id
        self.attempts = attempts  #: how many attempts were made

    @classmethod
    def of(cls, step: str, error: ErrorDetail, *, attempts: int) -> Self:
        """The StepError for a recorded `error` of a `step` after so many `attempts`."""
        return cls(step, error.type, error.message, attempts=attempts, kind=error.kind, mro=error.bases, error=error)


@exported
class RunError(FailureError):
    """A run did not complete: raised by `run.result()` and `client.run()`."""

    def __init__(
        self, run_id: str, status: str, message: str, kind: ErrorKind, *, error: ErrorDetail | None = None
    ) -> None:
        detail = error or ErrorDetail(kind=kind, message=message)
        super().__init__(self._text_of(run_id, status, detail), detail, subject="run", subject_id=run_id)
        self.run_id = run_id  #: the run
        self.status = status  #: how it ended: "failed" or "cancelled"

    @classmethod
    def of(cls, run_id: str, status: str, error: ErrorDetail) -> Self:
        """The RunError for a recorded `error` of a run that ended with `status`; `run_id` says which one."""
        return cls(run_id, status, error.message, error.kind, error=error)

    def _text_of(self, run_id: str, status: str, detail: ErrorDetail) -> str:
        return f"run {run_id} {status}: {detail.text}" if detail.text else f"run {run_id} {status}"


@exported
class ChildError(RunError):
    """A child run did not complete: raised by `ctx.child()` and `ChildHandle.result()`."""

    def __init__(
        self,
        run_id: str,
        status: str,
        message: str,
        kind: ErrorKind,
        *,
        error: ErrorDetail | None = None,
        workflow: str = "",
        workflow_id: str = "",
    ) -> None:
        self.workflow = workflow  #: the workflow of the child; empty if an older version recorded the error
        self.workflow_id = workflow_id  #: the workflow id of the child; empty likewise
        super().__init__(run_id, status, message, kind, error=error)

    def _text_of(self, run_id: str, status: str, detail: ErrorDetail) -> str:
        if not self.workflow:
            return super()._text_of(run_id, status, detail)
        return child_message(Child(run_id, self.workflow, self.workflow_id), status, detail)

    @classmethod
    def of_step(cls, recorded: ErrorDetail) -> Self:
        """The ChildError for the `recorded` error of the step that started the child."""
        status = "cancelled" if recorded.code is ErrorCode.CANCELLED else "failed"
        error, about = recorded.cause or recorded, recorded.metadata
        return cls(
            recorded.subject_id,
            status,
            error.message,
            error.kind,
            error=error,
            workflow=about.get(CHILD_WORKFLOW, ""),
            workflow_id=about.get(CHILD_WORKFLOW_ID, ""),
        )


@exported
class Diverged(KagziError):
    """The code does not fit the recorded history."""

    kind = ErrorKind.NONDETERMINISM
    code = ErrorCode.PRECONDITION_FAILED


@exported
class RequestError(KagziError):
    """The request was refused and nothing was changed."""

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
        super().__init__(
            message,
            subject=subject or (self.default_subject if field else ""),
            subject_id=subject_id or field,
            metadata=metadata,
            retry_after=retry_after,
        )
        self.field = field  #: the argument or field to fix; empty if it is not about one


@exported
class InvalidArgument(RequestError, ValueError):
    """An argument cannot be right. The message names it and says what to write instead."""

    code = ErrorCode.INVALID_ARGUMENT


@exported
class NotFound(RequestError, LookupError):
    """There is no such thing in this namespace."""

    code = ErrorCode.NOT_FOUND


@exported
class AlreadyExists(RequestError):
    """The id is taken by something else."""

    code = ErrorCode.CONFLICT


@exported
class PreconditionFailed(RequestError):
    """What was asked for cannot be done in the present state."""

    code = ErrorCode.PRECONDITION_FAILED


@exported
class Unauthenticated(RequestError):
    """The server asks for a key, and none was given, or one that is not good (any more)."""

    code = ErrorCode.UNAUTHENTICATED


@exported
class PermissionDenied(RequestError):
    """The credentials do not allow this."""

    code = ErrorCode.UNAUTHORIZED


@exported
class ResourceExhausted(RequestError):
    """A limit was reached; `metadata["limit"]` names it. Try again after `retry_after`, or raise the limit."""

    kind = ErrorKind.TRANSIENT
    code = ErrorCode.RESOURCE_EXHAUSTED


@exported
class LeaseLost(RequestError):
    """Another worker holds the run now. The SDK handles this itself: workflow code never sees it."""

    kind = ErrorKind.LOST
    code = ErrorCode.LEASE_LOST


class DeadlinePassed(RequestError):
    kind = ErrorKind.TIMEOUT
    code = ErrorCode.TIMEOUT


class CancelRequested(RequestError):
    kind = ErrorKind.CANCELLED
    code = ErrorCode.CANCELLED


@exported
class Unimplemented(RequestError):
    """This server does not do that (yet)."""

    code = ErrorCode.UNIMPLEMENTED


@exported
class Unavailable(KagziError):
    """The server, or its store, cannot be reached. Nothing is known about what became of the request: repeat it."""

    kind = ErrorKind.TRANSIENT
    code = ErrorCode.UNAVAILABLE


class ServerUnavailable(Unavailable):
    """A server reports that it cannot serve: it is stopping, or a run is locked. Its text is for clients; the text of
    any other Unavailable may name hosts and files, and stays in the log."""


class Contended(Unavailable):
    """The store did not get a lock in time, or rolled back in favour of another transaction. Nothing was changed."""


class StoreBroken(Unavailable):
    """The store failed internally: a damaged page, a full cache, a bug of its own. The failure may be temporary, and
    other requests may still work."""


class StoreLost(Unavailable):
    """The files of the store were deleted or replaced under the server: nothing works until it is restarted."""


@exported
class InternalError(KagziError):
    """A bug in Kagzi. A step that raises it is retried, as for any other bug: see ADR 0029."""

    kind = ErrorKind.TRANSIENT
    code = ErrorCode.INTERNAL


class StatementFailed(InternalError):
    """The store refused a statement unexpectedly. The store's message is for the log only."""


DOWN = "down"
"""Metadata key of an Unavailable: what is down, one of the next three."""
DOWN_CONNECTION = "connection"  # nothing listens there, or the network fails
DOWN_SERVER = "server"  # the server is reachable, but does not respond or cannot serve now
DOWN_DATABASE = "database"  # the server responds, its database does not


def not_found(what: str, which: str) -> NotFound:
    return NotFound(f"{what} {which} not found", subject=what, subject_id=which)


@exported
class SchemaMismatch(KagziError):
    """The database is of another schema version than this code. The message says which, and what to run."""

    code = ErrorCode.PRECONDITION_FAILED
