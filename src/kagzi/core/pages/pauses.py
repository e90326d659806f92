"""The pauses of a run, read from its history: since when, until when, and why.

Each is recorded as two rows among the attempts, like a wake (ADR 0045): this needs no table of its own, and retention,
export and import handle the rows already. For a leased run, the pause is recorded when it is requested.
"""

from collections.abc import Iterable

import msgspec

from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..events import EventKind, RunEvent
from ..states import RunCode
from ..times import Timestamp

PAUSED = "$paused"
RESUMED = "$resumed"
"""Used as the step id of such rows. No step of a workflow has such an id."""
PAUSE_NOTES = 200
"""How many pause notes of a run, the latest ones, are read for its timeline."""
_KINDS = {PAUSED: EventKind.RUN_PAUSED, RESUMED: EventKind.RUN_RESUMED}


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """`finished_at` None: still paused. `reason`: given by the user, or the problem of the run."""

    started_at: Timestamp
    finished_at: Timestamp | None
    reason: str = ""


class PauseNote(msgspec.Struct, frozen=True):
    kind: str  # PAUSED or RESUMED
    at: Timestamp
    reason: str


class PausedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a run that determine how its last pause ends."""

    status: int
    created_at: Timestamp
    finished_at: Timestamp | None
    cancel_requested_at: Timestamp | None
    pause_requested: bool
    pause_reason: str
    claimed: bool  # a worker has claimed it at least once


def pause_note(run_id: str, reason: str = "") -> ErrorDetail:
    """The note of a user who pauses or resumes; the engine records the problem itself."""
    return ErrorDetail(
        code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message=reason, subject="run", subject_id=run_id
    )


def is_pause_note(step_id: str) -> bool:
    return step_id in _KINDS


def pause_event(step_id: str, seq: int, at: Timestamp) -> RunEvent:
    """The event of such a row."""
    return RunEvent(seq=seq, at=at, kind=_KINDS[step_id])


def pauses_of(run: PausedRun, notes: Iterable[PauseNote]) -> tuple[Pause, ...]:
    """`notes` in order. A run that was paused when it was cancelled or ended was paused until then."""
    pauses: list[Pause] = []
    since: PauseNote | None = None
    for note in notes:
        if note.kind == PAUSED:
            since = since or note  # asked to pause, then paused by the engine: one pause
        elif since is not None:
            pauses.append(Pause(started_at=since.at, finished_at=note.at, reason=since.reason))
            since = None
    is_paused = run.status == RunCode.PAUSED or run.pause_requested
    if since is not None:
        until = None if is_paused else run.cancel_requested_at or run.finished_at
        if is_paused or until is not None:  # else it ended before it was paused, and was retried
            pauses.append(Pause(started_at=since.at, finished_at=until, reason=since.reason))
    elif is_paused and not run.claimed:
        # the pause was requested of the run that it continues
        pauses.append(Pause(started_at=run.created_at, finished_at=None, reason=run.pause_reason))
    return tuple(pauses)
