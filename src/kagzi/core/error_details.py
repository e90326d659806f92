"""An error as it is stored, sent and shown: what went wrong, and what that means."""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from .public import PACKAGE, exported


@exported
class ErrorKind(StrEnum):
    """What an error means for whoever sees it."""

    TRANSIENT = "transient"  #: may succeed when it is tried again
    PERMANENT = "permanent"  #: trying again would not help
    TIMEOUT = "timeout"  #: it took too long
    CANCELLED = "cancelled"  #: it was asked to stop
    EXHAUSTED = "exhausted"  #: in records of older versions only: `ErrorDetail.exhausted` says it now
    NONDETERMINISM = "nondeterminism"  #: the code does not fit the recorded history
    TERMINATED = "terminated"  #: it was ended from outside, without cleanup
    LOST = "lost"  #: the worker was lost while it ran


@exported
class ErrorCode(StrEnum):
    """What went wrong, as one word that is the same on the wire, in the stores and in Python."""

    NOT_FOUND = "not_found"  #: there is no such thing in this namespace
    INVALID_ARGUMENT = "invalid_argument"  #: an argument cannot be right
    PRECONDITION_FAILED = "precondition_failed"  #: not in this state
    CONFLICT = "conflict"  #: the id is taken
    UNAUTHORIZED = "unauthorized"  #: the credentials do not allow it
    UNAUTHENTICATED = "unauthenticated"  #: no key was given, or one that is not good
    UNAVAILABLE = "unavailable"  #: the server or its store cannot be reached
    INTERNAL = "internal"  #: a bug in Kagzi
    TIMEOUT = "timeout"  #: a deadline or timeout has passed
    LEASE_LOST = "lease_lost"  #: another worker holds the run
    RESOURCE_EXHAUSTED = "resource_exhausted"  #: a limit was reached
    CANCELLED = "cancelled"  #: the run is to stop, or was stopped
    UNIMPLEMENTED = "unimplemented"  #: this server does not do that
    USER = "user"  #: raised by workflow or step code


_OWN = f"{PACKAGE}."


def current_name(name: str) -> str:
    """The name of an error's class in a record or a retry policy. Older versions added the module to the names of
    Kagzi's own classes: it is removed."""
    return _OWN + name.rpartition(".")[2] if name.startswith(_OWN) else name


OWN_CODE = "code"
"""Metadata key of an error: the code that the raising system uses: "404", "INVALID_ARGUMENT",
"card_declined"."""


@exported
class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as it is stored and sent."""

    code: ErrorCode = ErrorCode.USER  #: what went wrong
    kind: ErrorKind = ErrorKind.TRANSIENT  #: what it means for whoever sees it
    message: str = ""  #: the text of the exception
    type: str = ""  #: the exception's class: "kagzi.NotFound", "app.orders.OutOfStock", "ValueError"
    bases: tuple[str, ...] = ()  #: its base classes, named likewise
    traceback: str = ""  #: as Python prints it
    non_retryable: bool = False  #: whether it forbids another attempt
    retry_after_ms: int = 0  #: no attempt before this many milliseconds; 0: as the retry policy says
    subject: str = ""  #: what it is about: "field", "step", "run" ...
    subject_id: str = ""  #: which one
    metadata: dict[str, str] = {}  #: machine-readable details
    cause: "ErrorDetail | None" = None  #: the error that caused it
    exhausted: bool = False  #: whether the last allowed attempt failed; `kind` is that of its error

    def __post_init__(self) -> None:
        """Upgrades records of older versions: there, `exhausted` was a kind (the original kind is lost), and Kagzi's
        own errors were named after their modules."""
        if self.kind is ErrorKind.EXHAUSTED and not self.exhausted:
            msgspec.structs.force_setattr(self, "exhausted", True)
        if any(name.startswith(_OWN) for name in (self.type, *self.bases)):
            msgspec.structs.force_setattr(self, "type", current_name(self.type))
            msgspec.structs.force_setattr(self, "bases", tuple(map(current_name, self.bases)))

    @property
    def text(self) -> str:
        """`Type: message`, as Python would print it."""
        name = self.type.rpartition(".")[2]
        return f"{name}: {self.message}" if name and self.message else name or self.message


CHILD_WORKFLOW, CHILD_WORKFLOW_ID = "workflow", "workflow_id"
"""Metadata keys of the error of a step whose child did not complete."""
_WITHOUT_CLASS = f"{_OWN}NonRetryable"


class Child(NamedTuple):
    """A run, as the error of its parent's step names it."""

    run_id: str
    workflow: str
    workflow_id: str


def child_message(child: Child, how: str, cause: ErrorDetail) -> str:
    """`shipment 'order-4/lead' failed: too heavy`. A generated workflow id says nothing, and neither does the name of
    NonRetryable."""
    name = child.workflow if child.workflow_id == child.run_id else f"{child.workflow} {child.workflow_id!r}"
    text = (cause.message if cause.type == _WITHOUT_CLASS else "") or cause.text
    return f"{name} {how}: {text}" if text else f"{name} {how}"


_detail_encoder = msgspec.json.Encoder()
_detail_decoder = msgspec.json.Decoder(ErrorDetail)


def encode_detail(detail: ErrorDetail) -> bytes:
    return _detail_encoder.encode(detail)


def decode_detail(data: bytes | str) -> ErrorDetail:
    return _detail_decoder.decode(data)
