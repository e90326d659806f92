"""The result of a replay."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias
from uuid import UUID

from ...core.error_details import ErrorDetail
from .records import RecordedStep

Outcome: TypeAlias = Literal["completed", "failed", "cancelled", "continued", "open", "until", "diverged"]


@dataclass(frozen=True, kw_only=True)
class ReplayedStep(RecordedStep):
    """A recorded step that the code reached, and where."""

    file: str = ""  #: the file of the call
    line: int = 0  #: the line of the call; 0 if not known


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Where code does not match a history. `str()` is the message."""

    step: str  #: the id of the step at which it was noticed
    recorded: str  #: a description of the recorded call
    actual: str  #: a description of what the code does instead
    file: str  #: the file of that code
    line: int  #: its line
    message: str  #: the message that a worker would report
    remedy: str  #: how to repair it, with the patch
    patch: str  #: what to write: `if ctx.changed("..."):`

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.actual}, but the history has {self.recorded}"


@dataclass(frozen=True, kw_only=True)
class NewTimeout:
    """A wait for a signal that is under way, and has another timeout in the code than in the history. With this code
    the run takes the new one, counted from when the wait began."""

    step: str  #: the id of the step
    before: timedelta | None  #: the recorded timeout; None: it has none
    after: timedelta | None  #: the timeout in the code
    file: str = ""  #: the file of the call
    line: int = 0  #: the line of the call; 0 if not known


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The result of replaying a history against the code."""

    outcome: Outcome
    """How it ended: `completed`, `failed`, `cancelled`, `continued` (as new); `open`: it reached the end of the
    history, and waits or would continue; `until`: it reached that step; `diverged`: it does not match the history."""
    output: Any = None  #: what the function returned; if it continued as new, the input of the new run, as plain JSON
    error: ErrorDetail | None = None  #: what the function raised, also if it ended too early
    steps: tuple[ReplayedStep, ...] = ()  #: the recorded steps that matched, in the order of their calls
    divergence: Divergence | None = None  #: where it does not match
    waits_for: str = ""  #: if it is open: what it waits for, or would do next
    new_timeouts: tuple[NewTimeout, ...] = ()  #: the waits under way that have another timeout in the code
    executed: tuple[str, ...] = ()  #: the steps whose bodies ran; none with stubs="recorded"
    now_values: tuple[datetime, ...] = ()  #: the values of `ctx.now()`, in order
    uuid_values: tuple[UUID, ...] = ()  #: the values of `ctx.uuid()`, in order
    random_values: tuple[float, ...] = ()  #: the values of `ctx.random()`, in order
    as_recorded: bool | None = None
    """Whether the code reached the recorded end, with the same output or error; None if none is recorded, or if the
    replay was to stop earlier."""

    @property
    def fits(self) -> bool:
        """Whether the code matches the history, as far as the history goes."""
        return self.divergence is None
