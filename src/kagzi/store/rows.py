"""Maps rows to the records of core by column name, and values to columns and back.

Both stores use the same column names, so a row is anything that is read by name: a record of asyncpg, or a dictionary
made from a row of SQLite. JSON is text in both. A field of a record is read from the column of its name according to
its type; only the exceptions are written out.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from inspect import signature
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, Protocol, get_args, get_origin

import msgspec

from ..core.bulk import BulkOperation
from ..core.conversion import Field, compiled, converter, fields_of
from ..core.error_details import ErrorDetail, decode_detail, encode_detail
from ..core.errors import InvalidArgument
from ..core.pages.cursor import Cursor
from ..core.records import (
    NO_LABELS,
    HistoryStep,
    NamespaceRecord,
    Payload,
    RunAttributes,
    RunFilter,
    RunKey,
    RunRecord,
    Served,
    StepAttempt,
    StepRecord,
    WorkerRecord,
)
from ..core.retry.policy import RetryPolicy
from ..core.run.commands import StartRun
from ..core.run.refusals import unstorable
from ..core.schedules.schedule import Fire, ScheduleRecord
from ..core.states import (
    RUN_STATUS_OF_CODE,
    STEP_KIND_OF_CODE,
    STEP_STATUS_OF_CODE,
    WAIT_REASON_OF_CODE,
    RunCode,
    RunStatus,
    StepKind,
    StepStatus,
    WaitCode,
    WaitReason,
    WorkerStatus,
)
from ..core.text.storable import is_storable
from ..core.times import Timestamp
from ..core.workers import WorkerEvent
from ..core.workflow_types.queues import TypeLimits
from .columns import Use, columns
from .protocol import Fork


class Row(Protocol):
    def keys(self) -> Iterable[str]: ...
    def __getitem__(self, column: str, /) -> Any: ...


_BESIDE_INPUT_BYTES = 4_096  # a large one is read by itself

_encode = msgspec.json.Encoder().encode
_decode_policy = msgspec.json.Decoder(RetryPolicy).decode
_decode_strings = msgspec.json.Decoder(dict[str, str]).decode
_decode_filter = msgspec.json.Decoder(RunFilter).decode
_decode_seconds = msgspec.json.Decoder(dict[str, int]).decode

_policies: dict[RetryPolicy, str] = {}
_POLICIES_KEPT = 1_000


def write_json(value: object) -> str:
    return _encode(value).decode()


def write_policy(policy: RetryPolicy | None) -> str | None:
    """A program has few policies and sends them with every step, so their encoded text is cached."""
    if policy is None:
        return None
    text = _policies.get(policy)
    if text is None:
        if len(_policies) >= _POLICIES_KEPT:
            _policies.clear()
        text = _policies[policy] = _encode(policy).decode()
    return text


def read_policy(text: str | None) -> RetryPolicy | None:
    return None if text is None else _decode_policy(text)


def write_error(error: ErrorDetail | None) -> str | None:
    return None if error is None else encode_detail(error).decode()


def read_error(text: str | None) -> ErrorDetail | None:
    return None if text is None else decode_detail(text)


def write_strings(strings: Mapping[str, str] | None) -> str | None:
    """Encodes labels and payload metadata; an empty mapping is NULL."""
    return _encode(strings).decode() if strings else None


def read_labels(text: str | None) -> Mapping[str, str]:
    return _decode_strings(text) if text else NO_LABELS


def read_payload(data: bytes | None, metadata: str | None) -> Payload | None:
    return None if data is None else require_payload(data, metadata)


def require_payload(data: bytes, metadata: str | None) -> Payload:
    """The payload of a column that is never NULL."""
    return Payload(data, _decode_strings(metadata) if metadata else None)


def _history_step(  # noqa: PLR0917  the parameters are its column names
    step_id: str,
    kind: int,
    status: int,
    begun_seq: int,
    attempt: int,
    seq: int,
    at: Timestamp | None,
    output: bytes | None,
    output_meta: str | None,
    error: str | None,
    retry_at: Timestamp | None,
    wake_at: Timestamp | None,
    child_run_id: str | None,
    details: bytes | None,
    details_meta: str | None,
) -> HistoryStep:
    return HistoryStep(
        step_id=step_id,
        kind=STEP_KIND_OF_CODE[kind],
        status=STEP_STATUS_OF_CODE[status],
        begun_seq=begun_seq,
        attempt=attempt,
        seq=seq,
        at=at or 0,
        output=None if output is None else require_payload(output, output_meta),
        error=None if error is None else decode_detail(error),
        retry_at=retry_at,
        wake_at=wake_at,
        child_run_id=child_run_id,
        details=None if details is None else require_payload(details, details_meta),
    )


HISTORY_COLUMNS = tuple(signature(_history_step).parameters)


def history_reader(place: Callable[[str], Any] = str) -> Callable[[Any], HistoryStep]:
    """Reads steps for replay. Every claim uses it, so the positions of the columns are looked up once and not for each
    row."""
    values = itemgetter(*map(place, HISTORY_COLUMNS))
    return lambda row: _history_step(*values(row))


# --- by the names of the columns -------------------------------------------------------------------------------------

CODES: Mapping[Any, Mapping[int, Any]] = {
    RunStatus: RUN_STATUS_OF_CODE,
    WaitReason: WAIT_REASON_OF_CODE,
    StepKind: STEP_KIND_OF_CODE,
    StepStatus: STEP_STATUS_OF_CODE,
}
"""Enums that are stored as numbers."""


def type_of(field: Field) -> Any:
    """The type of a field, without None."""
    kinds = [kind for kind in get_args(field.type) if kind is not NoneType]
    return kinds[0] if isinstance(field.type, UnionType) and len(kinds) == 1 else field.type


def by_column(field: Field) -> Callable[[Row], Any]:
    """Reads a field from the column of its name. A struct is JSON; the metadata of a payload is in a column of its own;
    NULL is read as "" if that is the field's default."""
    column, kind = field.name, type_of(field)
    if kind is Payload:
        metadata = f"{column}_meta"
        return lambda row: read_payload(row[column], row[metadata])
    if kind is str and field.default == "":
        return lambda row: row[column] or ""
    read = _value_reader(kind)
    return itemgetter(column) if read is None else lambda row: read(row[column])


def _value_reader(kind: Any) -> Callable[[Any], Any] | None:
    """How to convert the value of a column; None: no conversion."""
    if kind in CODES:
        values: dict[Any, Any] = {None: None, **CODES[kind]}
        return values.__getitem__
    if kind is ErrorDetail:
        return read_error
    if get_origin(kind) is Mapping:
        return read_labels
    if not isinstance(kind, type):
        return None
    if kind is bool or issubclass(kind, Enum):
        return kind
    return _json_reader(kind) if issubclass(kind, msgspec.Struct) else None


def value_writer(field: Field) -> Callable[[Any], Any] | None:
    """How to convert the value of a field to that of its column; None: no conversion. Text that may be empty is stored
    as NULL."""
    kind = type_of(field)
    if kind in CODES:
        codes: dict[Any, int | None] = {None: None, **{value: code for code, value in CODES[kind].items()}}
        return codes.__getitem__
    if kind is str and field.default == "":
        return _text_or_null
    if get_origin(kind) is tuple:
        return _json_or_null
    return write_strings if get_origin(kind) is Mapping else _WRITERS.get(kind)


def _text_or_null(text: str) -> str | None:
    return text or None


def _json_or_null(values: tuple[object, ...]) -> str | None:
    return write_json(values) if values else None


_WRITERS: Mapping[Any, Callable[[Any], Any]] = {RetryPolicy: write_policy, ErrorDetail: write_error}


def _json_reader(kind: type[msgspec.Struct]) -> Callable[[str | None], Any]:
    decode = msgspec.json.Decoder(kind).decode
    return lambda text: None if text is None else decode(text)


def _nothing(_: Row) -> None:
    return None


read_run = converter(
    RunRecord,
    by_column,
    run=lambda row: RunKey(row["namespace"], row["run_id"]),
    wake_at=itemgetter("due_at"),
    worker_id=lambda row: row["worker_id"] if row["status"] == RunCode.RUNNING else None,
    last_seq=itemgetter("seq"),
    claims=itemgetter("lease"),
    cancel_requested=lambda row: row["cancel_requested_at"] is not None,
    waits=lambda _: (),
    input=_nothing,
    context=_nothing,
    output=_nothing,
    state=_nothing,
    state_at=_nothing,
)
"""A run as lists show it: without payloads and without what it waits for."""

read_attempt = converter(StepAttempt, by_column, before_retry=lambda _: False)  # `shown_step` sets it
read_worker_event = converter(WorkerEvent, by_column)
read_schedule = converter(ScheduleRecord, by_column)
read_fire = converter(Fire, by_column)
read_limits = converter(TypeLimits, by_column)
read_namespace = converter(
    NamespaceRecord,
    by_column,
    retention_seconds=lambda row: _decode_seconds(row["retention"]) if row["retention"] else {},
    deleting=lambda row: row["deleting_at"] is not None,
)
read_bulk = converter(
    BulkOperation,
    by_column,
    operation_id=itemgetter("id"),
    where=lambda row: _decode_filter(row["filter"]),
    cursor=lambda row: None if row["cursor_at"] is None else Cursor(row["cursor_at"], row["cursor_run"]),
)
_of_step = {"run": itemgetter("run"), "attempts": itemgetter("attempts")}
_read_step = converter(StepRecord, by_column, **_of_step, retry_seq=lambda _: 0, retried_at=_nothing)
_read_forgotten_step = converter(StepRecord, by_column, **_of_step)
_read_worker = converter(WorkerRecord, by_column, served=itemgetter("served"), status=itemgetter("status"))


def read_step(row: Row, run: RunKey, attempts: tuple[StepAttempt, ...]) -> StepRecord:
    return _read_step({**row, "run": run, "attempts": attempts})


def read_forgotten_step(row: Row, run: RunKey, attempts: tuple[StepAttempt, ...]) -> StepRecord:
    """A step that a retry of its run has discarded."""
    return _read_forgotten_step({**row, "run": run, "attempts": attempts})


def read_worker(row: Row, served: tuple[Served, ...], status: WorkerStatus) -> WorkerRecord:
    return _read_worker({**row, "served": served, "status": status})


# --- new runs --------------------------------------------------------------------------------------------------------

_fields = {field.name: field for field in fields_of(RunAttributes)}
_attribute_writers = {column.name: value_writer(_fields[column.name]) for column in columns(Use.ATTRIBUTES)}
_fork_readers = [(column.name, by_column(_fields[column.name])) for column in columns(Use.FORKED)]


def _attributes_writer() -> Callable[[StartRun], dict[str, Any]]:
    writers = {f"write_{name}": write for name, write in _attribute_writers.items() if write is not None}
    items = (
        f"'{name}': " + (f"command.{name}" if write is None else f"write_{name}(command.{name})")
        for name, write in _attribute_writers.items()
    )
    return compiled("command", f"{{{', '.join(items)}}}", **writers)


_write_attributes = _attributes_writer()
_NO_VALUES = {column.name: None for column in columns(Use.NEW)} | {"lease": 0, "nonce": 0}


def new_status(command: StartRun, now: Timestamp, *, leased: bool) -> RunCode:
    if command.blocked_by or (command.start_at is not None and command.start_at > now):
        return RunCode.SLEEPING
    return RunCode.RUNNING if leased and command.assignment is not None else RunCode.PENDING


def context_beside_input(command: StartRun) -> Payload | None:
    """The context of a new run, if it is stored in the row of the input, in the columns `input` and `input_meta`: a run
    has one row less. Otherwise it has its own row. Readers accept both. See docs/adr/0077."""
    context = command.context
    if command.input is None or context is None or len(context.data) > _BESIDE_INPUT_BYTES:
        return None
    return context


def new_run_row(command: StartRun, now: Timestamp, *, leased: bool) -> dict[str, Any]:
    """The columns `{run.new}`. The run sleeps until its start time, or until the run that it waits for has ended.
    Otherwise it is leased to its assigned worker if `leased` allows that, or waits for a worker."""
    status, run = new_status(command, now, leased=leased), command.run
    row = _NO_VALUES | _write_attributes(command)
    row["run_id"] = run.run_id
    row["namespace"] = run.namespace
    row["workflow_id"] = command.workflow_id
    row["request_id"] = command.request_id
    row["version"] = command.version or None
    row["concurrency_key"] = command.concurrency_key or None
    row["schedule_id"] = command.schedule_id or None
    row["blocked_by"] = command.blocked_by or None
    row["status"] = int(status)
    if status is RunCode.PENDING:
        row["ready_at"] = now
    elif command.blocked_by:
        row["wait_reason"] = int(WaitCode.CHILD)
    elif status is RunCode.SLEEPING:
        row["wait_reason"] = int(WaitCode.TIME)
        row["due_at"] = command.start_at
    elif (assignment := command.assignment) is not None:
        row["version"] = command.version or assignment.version
        row["lease"] = 1
        row["nonce"] = assignment.nonce
        row["worker_id"] = assignment.worker_id
        row["lease_until"] = assignment.lease_until
    return row


def fork_start(fork: Fork, row: Row) -> StartRun:
    """The start of a fork, with the attributes and input of its source: a row of `fork_source`."""
    return StartRun(
        **{name: read(row) for name, read in _fork_readers},
        run=RunKey(fork.source.namespace, fork.new_run_id),
        workflow_id=fork.workflow_id,
        request_id=fork.request_id,
        input=read_payload(row["input"], row["input_meta"]),
        context=read_payload(row["context"], row["context_meta"]),
        version=fork.version or row["version"],
        on_conflict="fail",
    )


def require_storable(**texts: str) -> None:
    """Raises InvalidArgument for the first of these texts that cannot be stored. Commands with such text are refused,
    too."""
    for field, text in texts.items():
        if not is_storable(text):
            raise InvalidArgument(unstorable(field).error.message, field=field)
