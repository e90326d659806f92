"""Steps for the timeline: columns only, without payloads."""

import msgspec

from ..records import RunKey, StepOutline
from ..states import CODE_OF_STEP_STATUS, StepKind, StepStatus
from ..times import Timestamp
from .pauses import Pause

TIMELINE_STEPS = 2_000
"""The maximum number of steps in one response."""
TIMELINE_ATTEMPTS = 20
"""The maximum number of earlier attempts of each step, the latest ones."""
_LINE_CHARS = 256
_NO_STATUS = 0
_OPEN = (StepStatus.RUNNING, StepStatus.PENDING)


class TimelineStep(StepOutline, frozen=True, kw_only=True):
    """`attempts`: when earlier attempts began and ended, and on which worker, oldest first, at most the latest
    TIMELINE_ATTEMPTS. `error`: the type, and the first line of the message."""

    attempts: tuple[tuple[Timestamp | None, Timestamp, str | None], ...] = ()
    error: str = ""


class TimelineQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which steps: the newest; those begun `after` or `before` a begun_seq; or those `around` a step, with it in the
    middle. Then filtered by name, states and kinds; an empty filter matches all."""

    after: int | None = None
    before: int | None = None
    around: str = ""
    name: str = ""
    statuses: tuple[StepStatus, ...] = ()
    kinds: tuple[StepKind, ...] = ()
    size: int = TIMELINE_STEPS


class TimelineRetry(msgspec.Struct, frozen=True, kw_only=True):
    """A retry of the run that discarded steps, of which so many are kept."""

    retry_seq: int
    retried_at: Timestamp
    steps: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first; with `after`, oldest first. `older` and `newer`: there are more steps with a lower, or higher,
    begun_seq. `pauses`: of the run, oldest first. `retries`: those that discarded steps, latest first."""

    run: RunKey
    steps: tuple[TimelineStep, ...]
    older: bool = False
    newer: bool = False
    pauses: tuple[Pause, ...] = ()
    retries: tuple[TimelineRetry, ...] = ()
    knows_around: bool = True  # False: the run has no such step


def first_line(type: str | None, message: str | None) -> str:
    """The first line of an error, truncated: the beginning of `ErrorDetail.text`."""
    lines = (message or "").splitlines()
    line = lines[0] if lines else ""
    name = (type or "").rpartition(".")[2]
    text = f"{name}: {line}" if name and line else name or line
    return text if len(text) <= _LINE_CHARS else f"{text[: _LINE_CHARS - 1]}…"


def stored_statuses(statuses: tuple[StepStatus, ...], *, run_ended: bool) -> list[int]:
    """The codes of stored rows that are shown with one of these statuses; an empty list for all. Steps that were open
    when their run ended are shown as abandoned."""
    wanted = set(statuses)
    if run_ended and wanted:
        abandoned = StepStatus.ABANDONED in wanted
        wanted = wanted.union(_OPEN) if abandoned else wanted.difference(_OPEN)
    codes = sorted(CODE_OF_STEP_STATUS[status] for status in wanted)
    return codes or ([_NO_STATUS] if statuses else [])


def as_shown(step: TimelineStep, run_finished_at: Timestamp | None) -> TimelineStep:
    """Does what `shown_step` of core/records.py does."""
    if run_finished_at is None or step.status not in _OPEN:
        return step
    return msgspec.structs.replace(step, status=StepStatus.ABANDONED, finished_at=run_finished_at, retry_at=None)
