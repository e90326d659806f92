"""Export format: runs as lines of JSON, to be kept in a file or imported into another store.

A run is one `run` line, which comes first, then its `step`, `attempt`, `signal`, `link` and `forgotten` lines in this
order, then one `end` line with their counts, which reveals a truncated file. Times are microseconds since 1970 UTC.
JSON data are embedded unchanged, byte for byte, so that people can read them; other data are in base64.
"""

import base64
import hashlib
from typing import Literal, TypeAlias

import msgspec

from ..error_details import ErrorDetail, ErrorKind
from ..errors import InvalidArgument
from ..records import Payload, StoredRun, StoredStep
from ..run.misfits import misfit_of
from ..states import RunStatus
from ..times import Timestamp

FORMAT = 1
RUNNING_NOTE = (
    "the run was running when it was exported and is imported as pending: "
    "stop its workers first, or steps may run in both places"
)


class _Image(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Omitted fields have their default values; unknown fields are refused."""


class Data(_Image, frozen=True):
    """A payload: its bytes as JSON or in base64, never both, and its metadata."""

    json: msgspec.Raw = msgspec.Raw()
    base64: str | None = None
    metadata: dict[str, str] | None = None


class RunImage(_Image, StoredRun, frozen=True):
    run_id: str
    request_id: str
    lease: int = 0
    on_close: Literal["cancel", "abandon"] | None = None
    watched: bool = False
    has_children: bool = False
    cascade_due: bool = False
    ready_at: Timestamp | None = None
    paused_wake_at: Timestamp | None = None
    cancel_requested_at: Timestamp | None = None
    cancel_by: Timestamp | None = None
    tried_builds: tuple[str, ...] = ()
    retry_request_id: str | None = None
    input: Data | None = None
    context: Data | None = None
    output: Data | None = None
    state: Data | None = None
    state_at: Timestamp | None = None


class StepImage(_Image, StoredStep, frozen=True):
    once: bool = False
    input: Data | None = None
    output: Data | None = None
    details: Data | None = None


class AttemptImage(_Image, frozen=True):
    """An earlier attempt that failed. `forgotten`: made before an explicit retry; a higher number is more recent."""

    step_id: str
    attempt: int
    begun_seq: int
    seq: int
    finished_at: Timestamp
    retry_at: Timestamp
    error: ErrorDetail
    started_at: Timestamp | None = None
    worker_id: str | None = None
    forgotten: int = 0
    input: Data | None = None


class SignalImage(_Image, frozen=True):
    number: int
    name: str
    request_id: str
    received_at: Timestamp
    payload: Data
    step_id: str | None = None
    start_request: Data | None = None


class LinkImage(_Image, frozen=True):
    """A step that waits for a run that it did not start."""

    step_id: str
    child_run_id: str


class ForgottenImage(_Image, StoredStep, frozen=True):
    """A step that a retry of the run has discarded, which is not part of the history. `retry_seq`: the seq of the
    retry."""

    retry_seq: int
    retried_at: Timestamp
    input: Data | None = None
    output: Data | None = None
    details: Data | None = None


Part: TypeAlias = StepImage | AttemptImage | SignalImage | LinkImage | ForgottenImage


class End(_Image, frozen=True):
    """The number of lines of each kind."""

    steps: int
    attempts: int
    signals: int
    links: int
    forgotten: int = 0


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Exactly one of the kinds is set; `kagzi`, the version of the format, and `note` accompany a run."""

    kagzi: int = 0
    note: str = ""
    run: RunImage | None = None
    step: StepImage | None = None
    attempt: AttemptImage | None = None
    signal: SignalImage | None = None
    link: LinkImage | None = None
    forgotten: ForgottenImage | None = None
    end: End | None = None


_NAMES = {
    StepImage: "step",
    AttemptImage: "attempt",
    SignalImage: "signal",
    LinkImage: "link",
    ForgottenImage: "forgotten",
}
_KINDS = ("run", *_NAMES.values(), "end")
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Line).decode
_decode_any = msgspec.json.Decoder().decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


# --- data ------------------------------------------------------------------------------------------------------------


def write_data(payload: Payload | None) -> Data | None:
    if payload is None:
        return None
    metadata = dict(payload.metadata) if payload.metadata else None
    if _stands_alone(payload.data):
        return Data(json=msgspec.Raw(payload.data), metadata=metadata)
    return Data(base64=base64.b64encode(payload.data).decode(), metadata=metadata)


def _stands_alone(data: bytes) -> bool:
    """Whether it is JSON that is unchanged when it is embedded in a line."""
    if b"\n" in data or b"\r" in data or data != data.strip():
        return False
    try:
        _decode_any(data)
    except _UNREADABLE:
        return False
    return True


def read_data(data: Data | None, field: str) -> Payload | None:
    """Raises InvalidArgument."""
    return None if data is None else require_data(data, field)


def require_data(data: Data, field: str) -> Payload:
    """As `read_data`, for required data."""
    raw = bytes(data.json)
    if (data.base64 is None) == (not raw):
        raise InvalidArgument(f"{field} has neither json nor base64, or both. Give one of them.", field=field)
    if data.base64 is None:
        return Payload(raw, data.metadata)
    try:
        return Payload(base64.b64decode(data.base64, validate=True), data.metadata)
    except ValueError:
        raise InvalidArgument(f"{field}.base64 is not valid base64.", field=f"{field}.base64") from None


# --- lines -----------------------------------------------------------------------------------------------------------


def write_run_line(image: RunImage) -> bytes:
    note = RUNNING_NOTE if image.status is RunStatus.RUNNING else ""
    return _encode(Line(kagzi=FORMAT, note=note, run=image)) + b"\n"


def write_part_line(part: Part) -> bytes:
    return _encode({_NAMES[type(part)]: part}) + b"\n"


def write_end_line(end: End) -> bytes:
    return _encode(Line(end=end)) + b"\n"


def read_line(data: bytes, number: int) -> RunImage | Part | End:
    """Raises InvalidArgument, which names the line and the field."""
    try:
        line = _decode(data)
    except _UNREADABLE as error:
        _refuse_format(_head(data).kagzi, number)
        raise InvalidArgument(f"line {number}: {_reason(error)}", field=f"line {number}") from None
    each = (line.run, line.step, line.attempt, line.signal, line.link, line.forgotten, line.end)
    items = [item for item in each if item is not None]
    if len(items) != 1:
        raise InvalidArgument(
            f"line {number} holds {len(items)} of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}. Each line holds one.",
            field=f"line {number}",
        )
    if line.run is not None:
        _refuse_format(line.kagzi, number)
    return items[0]


def _refuse_format(version: int, number: int) -> None:
    if version != FORMAT:
        raise InvalidArgument(
            f"line {number}: kagzi={version} is a format that this server does not know; it knows {FORMAT}. "
            "Import it with the version that exported it, or a newer one.",
            field=f"line {number}: kagzi",
        )


def begins_run(data: bytes) -> bool:
    """Whether this line is the first one of a run; False if it cannot be read."""
    return bool(bytes(_head(data).run))


class _Head(msgspec.Struct):
    kagzi: int = FORMAT
    run: msgspec.Raw = msgspec.Raw()


def _head(data: bytes) -> _Head:
    try:
        return _decode_head(data)
    except _UNREADABLE:
        return _Head()


_decode_head = msgspec.json.Decoder(_Head).decode


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply."
    return f"{error}."


# --- import -----------------------------------------------------------------------------------------------------------


def as_imported(image: RunImage) -> RunImage:
    """The imported run has no worker: a running one becomes pending, or paused if a pause was requested."""
    if image.status is not RunStatus.RUNNING:
        return image
    status = RunStatus.PAUSED if image.pause_requested else RunStatus.PENDING
    return msgspec.structs.replace(image, status=status, lease=image.lease + 1, pause_requested=False, ready_at=None)


def has_diverged(image: RunImage) -> bool:
    """Whether it was paused because the code did not match."""
    problem = image.problem
    if image.status is not RunStatus.PAUSED or problem is None:
        return False
    return problem.kind is ErrorKind.NONDETERMINISM or misfit_of(problem) is not None


class Digest:
    """Compares runs: a digest of the relevant parts of their lines, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, item: RunImage | Part) -> None:
        if isinstance(item, RunImage):
            item = msgspec.structs.replace(as_imported(item), lease=0, ready_at=None)
        elif isinstance(item, AttemptImage):
            item = msgspec.structs.replace(item, forgotten=int(item.forgotten > 0))
        self._hash.update(_encode(item))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and self._hash.digest() == other._hash.digest()

    def __hash__(self) -> int:
        return hash(self._hash.digest())
