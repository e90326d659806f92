"""The parts of a history in their public form."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...core.error_details import ErrorDetail
from ...core.states import StepKind, StepStatus


@dataclass(frozen=True, kw_only=True)
class RecordedStep:
    """A step as it was recorded; or, in a history that a test writes, as it should be."""

    id: str  #: scope, name and occurrence: `charge`, `charge#2`, `parallel[3]/charge`
    value: Any = None  #: its result, as plain JSON: an output, a signal's value, the branch that won
    kind: StepKind = StepKind.FUNCTION  #: the kind of step
    status: StepStatus = StepStatus.COMPLETED  #: its status
    error: ErrorDetail | None = None  #: why it failed
    name: str = ""  #: without scope and occurrence
    attempt: int = 1  #: the number of its last attempt
    failures: tuple[ErrorDetail, ...] = ()  #: why its earlier attempts failed
    started_at: datetime | None = None  #: when its last attempt began
    finished_at: datetime | None = None  #: when its result was recorded: the value of `ctx.now()` at that point
    wake_at: datetime | None = None  #: when a sleep or a wait ends
    retry_at: datetime | None = None  #: when the next attempt may begin
    child_run_id: str = ""  #: the run that it started
    input: Any = None  #: its arguments by name, if they were recorded
    begun_seq: int = 0  #: its position in the order in which steps began
    seq: int = 0  #: the position of its result in the order of results; 0 if it has none


@dataclass(frozen=True, kw_only=True)
class RecordedSignal:
    """A signal that the run received."""

    name: str  #: the name of the signal
    value: Any  #: its value, as plain JSON
    received_at: datetime  #: when it arrived
    step_id: str = ""  #: the wait that received it; empty if none did
