"""What a history consists of, as people read and write it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...core.error_details import ErrorDetail
from ...core.states import StepKind, StepStatus


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """A step as it was recorded; or, in a history that a test writes, as it is to be."""

    id: str  #: scope, name and occurrence: `charge`, `charge#2`, `parallel[3]/charge`
    value: Any = None  #: its result, as plain JSON: an output, a signal's value, the branch that won
    kind: StepKind = StepKind.FUNCTION  #: what it is
    status: StepStatus = StepStatus.COMPLETED  #: how it stands
    error: ErrorDetail | None = None  #: why it failed
    name: str = ""  #: without scope and occurrence
    attempt: int = 1  #: which attempt this is
    failures: tuple[ErrorDetail, ...] = ()  #: why the attempts before it failed
    started_at: datetime | None = None  #: when its last attempt began
    finished_at: datetime | None = None  #: when its result was recorded: what `ctx.now()` says then
    wake_at: datetime | None = None  #: until when a sleep or a wait lasts
    retry_at: datetime | None = None  #: when the next attempt may begin
    child_run_id: str = ""  #: the run that it started
    input: Any = None  #: its arguments by name, if they were recorded
    begun_seq: int = 0  #: its place in the order of what was begun
    seq: int = 0  #: the place of its result in the order of results; 0: it has none


@dataclass(frozen=True, kw_only=True)
class RecordedSignal:
    """A signal that came."""

    name: str  #: of the signal
    value: Any  #: as plain JSON
    received_at: datetime  #: when it came
    step_id: str = ""  #: the wait that got it; empty: none did
