"""What happened to a run, in order: read from its history, where every begin and every result has a number of its
own."""

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import msgspec

from .error_details import ErrorDetail
from .records import Payload, RunKey
from .states import RunStatus, StepKind, StepStatus
from .times import Timestamp, moment_text

LAST_SEQ = 2**63 - 1  # no event has a higher number


class EventKind(StrEnum):
    RUN_STARTED = "run_started"
    RUN_WOKEN = "run_woken"  # likewise: its start, or its next try as a whole, is due now
    RUN_PAUSED = "run_paused"  # or asked to pause; or the engine paused it because of a problem
    RUN_RESUMED = "run_resumed"
    STEP_STARTED = "step_started"
    STEP_COMPLETED = "step_completed"
    STEP_FAILED = "step_failed"
    STEP_RETRYING = "step_retrying"  # an attempt failed, and another one will follow
    STEP_LOST = "step_lost"  # its worker was lost; the attempt begins again
    STEP_WOKEN = "step_woken"  # somebody did not want to wait: the retry, or the end of the sleep, is due now
    SLEEP_STARTED = "sleep_started"
    SLEEP_COMPLETED = "sleep_completed"
    SIGNAL_AWAITED = "signal_awaited"
    SIGNAL_RECEIVED = "signal_received"
    SIGNAL_TIMED_OUT = "signal_timed_out"
    SIGNAL_REJECTED = "signal_rejected"  # its value did not fit, and was replaced or dropped
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
    """One number, one event; only the start has none (0)."""

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
    """How far a run is, and how it stands: what changes without a number, too."""

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
    """Events of steps in their order, and the run as it was at that moment. `more`: these were not all."""

    mark: RunMark
    events: tuple[RunEvent, ...]
    more: bool


class Source(IntEnum):
    """Which number of which row an event is made of."""

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
"""The time of the retry in the record of an attempt that was lost with its worker: no failure set one."""


def event_kind(source: Source, kind: StepKind, status: StepStatus, *, lost: bool = False) -> EventKind:
    """What a number of a step's row says. `status`: of a result. `lost`: of an attempt."""
    match source:
        case Source.ATTEMPT_FAILED if lost:
            return EventKind.STEP_LOST
        case Source.ATTEMPT_BEGUN if kind is StepKind.SIGNAL:
            return EventKind.SIGNAL_RECEIVED  # by the run, but by no code: it was rejected later
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


# --- as they are sent on ----------------------------------------------------------------------------------------------


def event_view(event: RunEvent, run_id: str, value: Callable[[Payload], Any] | None) -> dict[str, Any]:
    """Plain values only, for JSON; what an event does not have is not in it. `value`: of an output; None: without."""
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
    """How a run stands, as an event without a number of its own; likewise. `standing` is a RunMark, or has its
    fields."""
    view: dict[str, Any] = {"status": str(status)}
    if progress is not None:
        view["progress"] = progress
    if state_at is not None:
        view["state_at"] = moment_text(state_at)
    return view | {name: value for name in _STANDING if (value := getattr(standing, name))}
