"""Pauses of a run, as its history tells them: since when, until when, and why.

Each is noted by two rows among the attempts, as a wake is (ADR 0045): they need no table of their own, and retention,
export and import know them already. A run that somebody holds is noted when it is asked to pause.
"""

from collections.abc import Iterable

import msgspec

from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..events import EventKind, RunEvent
from ..states import RunCode
from ..times import Timestamp

PAUSED = "$paused"
RESUMED = "$resumed"
"""In the place of the step whose earlier attempt a row is. No step of a workflow has such an id."""
PAUSE_NOTES = 200
"""So many notes of a run are read for its timeline, the latest."""
_KINDS = {PAUSED: EventKind.RUN_PAUSED, RESUMED: EventKind.RUN_RESUMED}


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """`finished_at` None: it goes on. `reason`: what the person said, or what is wrong with the run."""

    started_at: Timestamp
    finished_at: Timestamp | None
    reason: str = ""


class PauseNote(msgspec.Struct, frozen=True):
    kind: str  # PAUSED or RESUMED
    at: Timestamp
    reason: str


class PausedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as far as it matters for how its last pause ends."""

    status: int
    created_at: Timestamp
    finished_at: Timestamp | None
    cancel_requested_at: Timestamp | None
    pause_requested: bool
    pause_reason: str
    claimed: bool  # a worker had it


def pause_note(run_id: str, reason: str = "") -> ErrorDetail:
    """Of a person who pauses or resumes; the engine notes the problem itself."""
    return ErrorDetail(
        code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message=reason, subject="run", subject_id=run_id
    )


def is_pause_note(step_id: str) -> bool:
    return step_id in _KINDS


def pause_event(step_id: str, seq: int, at: Timestamp) -> RunEvent:
    """What the row of such a note tells."""
    return RunEvent(seq=seq, at=at, kind=_KINDS[step_id])


def pauses_of(run: PausedRun, notes: Iterable[PauseNote]) -> tuple[Pause, ...]:
    """`notes` in their order. What was paused when it was cancelled, or ended, was so until then."""
    pauses: list[Pause] = []
    since: PauseNote | None = None
    for note in notes:
        if note.kind == PAUSED:
            since = since or note  # asked to pause, and then paused by the engine: that is one
        elif since is not None:
            pauses.append(Pause(started_at=since.at, finished_at=note.at, reason=since.reason))
            since = None
    is_paused = run.status == RunCode.PAUSED or run.pause_requested
    if since is not None:
        until = None if is_paused else run.cancel_requested_at or run.finished_at
        if is_paused or until is not None:  # else it ended before it was paused, and was tried again
            pauses.append(Pause(started_at=since.at, finished_at=until, reason=since.reason))
    elif is_paused and not run.claimed:
        # the run that it continues was asked to pause
        pauses.append(Pause(started_at=run.created_at, finished_at=None, reason=run.pause_reason))
    return tuple(pauses)
