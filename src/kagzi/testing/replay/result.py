"""What a replay came to."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from ...core.error_details import ErrorDetail
from .records import RecordedStep

Outcome: TypeAlias = Literal["completed", "failed", "cancelled", "continued", "open", "until", "diverged"]


@dataclass(frozen=True, kw_only=True)
class ReplayedStep(RecordedStep):
    """A recorded step that the code reached, and where."""

    file: str = ""  #: the file of the call
    line: int = 0  #: the line of the call; 0: not known


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Where code does not fit a history. `str()` is the sentence."""

    step: str  #: the id of the step that it was noticed at
    recorded: str  #: what the history has there, in words
    actual: str  #: what the code does instead, in words
    file: str  #: the file of the code that does so
    line: int  #: its line
    message: str  #: what a worker would say
    remedy: str  #: what to do about it, with the patch
    patch: str  #: what to write: `if ctx.changed("..."):`

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.actual}, but the history has {self.recorded}"


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What became of a run's code when its history was played to it."""

    outcome: Outcome
    """How it ended: `completed`, `failed`, `cancelled`, `continued` (as new); `open`: it came to the end of what is
    recorded, and waits or would go on; `until`: it came to the step that was asked for; `diverged`: it does not fit."""
    output: Any = None  #: what the function returned; if it continued as new, the input of the new run, as plain JSON
    error: ErrorDetail | None = None  #: what the function raised, also if it was left before it should have been
    steps: tuple[ReplayedStep, ...] = ()  #: the recorded steps that fitted, in the order of their calls
    divergence: Divergence | None = None  #: where it does not fit
    waits_for: str = ""  #: of an open one: what it waits for, or would do next
    executed: tuple[str, ...] = ()  #: the steps whose bodies ran; with stubs="recorded" none
    now_values: tuple[datetime, ...] = ()  #: what `ctx.now()` said, in order
    uuid_values: tuple[UUID, ...] = ()  #: what `ctx.uuid()` said, in order
    random_values: tuple[float, ...] = ()  #: what `ctx.random()` said, in order
    as_recorded: bool | None = None
    """Whether the code came to the end that is recorded, with the same output or error; None: none is recorded, or the
    replay was not to come there."""

    @property
    def fits(self) -> bool:
        """Whether the code fits the history, as far as it goes."""
        return self.divergence is None
