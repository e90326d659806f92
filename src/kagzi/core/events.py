"""The events of a run in order, read from its history, in which every begin and every result has its own sequence
number."""

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import msgspec

from .error_details import ErrorDetail
from .records import Payload, RunKey
from .states import RunStatus, StepKind, StepStatus
from .times import Timestamp, moment_text

LAST_SEQ = 2**63 - 1  # the highest possible sequence number


class EventKind(StrEnum):
    RUN_STARTED = "run_started"
    RUN_WOKEN = "run_woken"  # a user made its delayed start, or the retry of the whole run, due now
    RUN_PAUSED = "run_paused"  # or asked to pause; or paused by the engine because of a problem
    RUN_RESUMED = "run_resumed"
    STEP_STARTED = "step_started"
    STEP_COMPLETED = "step_completed"
    STEP_FAILED = "step_failed"
    STEP_RETRYING = "step_retrying"  # an attempt failed, and another one follows
    STEP_LOST = "step_lost"  # its worker was lost; the attempt begins again
    STEP_WOKEN = "step_woken"  # a user made the retry, or the end of the sleep, due now
    SLEEP_STARTED = "sleep_started"
    SLEEP_COMPLETED = "sleep_completed"
    SIGNAL_AWAITED = "signal_awaited"
    SIGNAL_RECEIVED = "signal_received"
    SIGNAL_TIMED_OUT = "signal_timed_out"
    SIGNAL_REJECTED = "signal_rejected"  # its value was invalid, and was replaced or dropped
    CHILD_STARTED = "child_started"
    CHILD_COMPLETED = "child_completed"
    CHILD_FAILED = "child_failed"
    RACE_DECIDED = "race_decided"
    PATCHED = "patched"
    RUN_COMPLETED = "run_completed"
    RUN_CONTINUED = "run_continued"
    RUN_FAILED = "run_failed"
    RUN_CANCELLED = "run_cancelled"


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event for each sequence number; only the start has none (0)."""

    seq: int
    at: Timestamp
    kind: EventKind
    step_id: str = ""
    name: str = ""
    attempt: int = 0
    output: Payload | None = None
    error: ErrorDetail | None = None
    until: Timestamp | None = None
    child_run_id: str | None = None
    continued_as: str | None = None


class RunMark(msgspec.Struct, frozen=True, kw_only=True):
    """The position and state of a run, including what changes without a sequence number."""

    run: RunKey
    seq: int
    status: RunStatus
    created_at: Timestamp
    finished_at: Timestamp | None
    status_text: str = ""
    progress: float | None = None
    pause_requested: bool = False
    pause_reason: str = ""
    cancel_requested: bool = False
    state_at: Timestamp | None = None


class RunEventPage(msgspec.Struct, frozen=True):
    """Events of steps in order, and the run at the time of the read. `more`: the page does not contain all events."""

    mark: RunMark
    events: tuple[RunEvent, ...]
    more: bool


class Source(IntEnum):
    """Which sequence number of which row an event is derived from."""

    BEGUN = 1
    RESULT = 2
    ATTEMPT_BEGUN = 3
    ATTEMPT_FAILED = 4


_BEGUN = {
    StepKind.FUNCTION: EventKind.STEP_STARTED,
    StepKind.SLEEP: EventKind.SLEEP_STARTED,
    StepKind.SIGNAL: EventKind.SIGNAL_AWAITED,
    StepKind.CHILD: EventKind.CHILD_STARTED,
    StepKind.RACE: EventKind.RACE_DECIDED,
    StepKind.PATCH: EventKind.PATCHED,
}
_COMPLETED = {
    StepKind.FUNCTION: EventKind.STEP_COMPLETED,
    StepKind.SLEEP: EventKind.SLEEP_COMPLETED,
    StepKind.SIGNAL: EventKind.SIGNAL_RECEIVED,
    StepKind.CHILD: EventKind.CHILD_COMPLETED,
    StepKind.RACE: EventKind.RACE_DECIDED,
    StepKind.PATCH: EventKind.PATCHED,
}
_FAILED = {StepKind.SIGNAL: EventKind.SIGNAL_TIMED_OUT, StepKind.CHILD: EventKind.CHILD_FAILED}
_ENDED = {
    RunStatus.COMPLETED: EventKind.RUN_COMPLETED,
    RunStatus.FAILED: EventKind.RUN_FAILED,
    RunStatus.CANCELLED: EventKind.RUN_CANCELLED,
}


LOST_RETRY_AT: Timestamp = 0
"""The retry time in the record of an attempt that was lost with its worker: no failure set one."""


def event_kind(source: Source, kind: StepKind, status: StepStatus, *, lost: bool = False) -> EventKind:
    """The kind of the event of a sequence number. `status`: of a result. `lost`: of an attempt."""
    match source:
        case Source.ATTEMPT_FAILED if lost:
            return EventKind.STEP_LOST
        case Source.ATTEMPT_BEGUN if kind is StepKind.SIGNAL:
            return EventKind.SIGNAL_RECEIVED  # by the run, but not by its code: it was rejected later
        case Source.BEGUN | Source.ATTEMPT_BEGUN:
            return _BEGUN[kind]
        case Source.ATTEMPT_FAILED:
            return EventKind.SIGNAL_REJECTED if kind is StepKind.SIGNAL else EventKind.STEP_RETRYING
        case Source.RESULT if status is StepStatus.FAILED:
            return _FAILED.get(kind, EventKind.STEP_FAILED)
        case Source.RESULT:
            return _COMPLETED[kind]


def end_kind(status: RunStatus, *, continued: bool) -> EventKind:
    return EventKind.RUN_CONTINUED if continued else _ENDED[status]


# --- views for clients ------------------------------------------------------------------------------------------------


def event_view(event: RunEvent, run_id: str, value: Callable[[Payload], Any] | None) -> dict[str, Any]:
    """Plain values only, for JSON, without empty fields. `value` decodes an output; None: leave outputs out."""
    view: dict[str, Any] = {
        "kind": str(event.kind),
        "run_id": run_id,
        "seq": event.seq,
        "at": moment_text(event.at),
    }
    if event.step_id:
        view |= {"step": event.step_id, "name": event.name, "attempt": event.attempt}
    if event.output is not None and value is not None:
        view["output"] = value(event.output)
    if event.error is not None:
        names = ("type", "message", "kind", "exhausted", "text")
        view["error"] = {name: getattr(event.error, name) for name in names} | {"kind": str(event.error.kind)}
    if event.until is not None:
        view["until"] = moment_text(event.until)
    if event.child_run_id is not None:
        view["child_run_id"] = event.child_run_id
    if event.continued_as is not None:
        view["continued_as"] = event.continued_as
    return view


_STANDING = ("status_text", "pause_requested", "cancel_requested", "pause_reason")


def standing_view(
    standing: object, status: RunStatus, progress: float | None, state_at: Timestamp | None
) -> dict[str, Any]:
    """The state of a run as an event without a sequence number, as plain values. `standing` is a RunMark, or has its
    fields."""
    view: dict[str, Any] = {"status": str(status)}
    if progress is not None:
        view["progress"] = progress
    if state_at is not None:
        view["state_at"] = moment_text(state_at)
    return view | {name: value for name in _STANDING if (value := getattr(standing, name))}
