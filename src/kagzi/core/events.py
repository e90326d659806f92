"""What happened to a run, in order: read from its history, where every begin and every result has a number of its
own."""

from enum import IntEnum, StrEnum

import msgspec

from .error_details import ErrorDetail
from .records import Payload, RunKey
from .states import RunStatus, StepKind, StepStatus
from .times import Timestamp


class EventKind(StrEnum):
    RUN_STARTED = "run_started"
    STEP_STARTED = "step_started"
    STEP_COMPLETED = "step_completed"
    STEP_FAILED = "step_failed"
    STEP_RETRYING = "step_retrying"  # an attempt failed, and another one will follow
    STEP_LOST = "step_lost"  # its worker was lost; the attempt begins again
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
