"""Outcomes of commands. One per command, in order. Refusals change nothing."""

from typing import TypeAlias

import msgspec

from ..error_details import ErrorDetail
from ..records import HistoryStep, Payload
from ..states import RunStatus
from ..times import Timestamp


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """Durable, as number `seq` of its run; new, or recorded earlier under this lease: the caller need not distinguish.
    0: it is not part of the history (a status, a heartbeat), so it has no number."""

    seq: int
    at: Timestamp


class Begun(msgspec.Struct, frozen=True, gc=False):
    """Attempt number `attempt` is to be executed."""

    seq: int
    at: Timestamp
    attempt: int


class Known(msgspec.Struct, frozen=True):
    """The step must not be executed (now): it has a result, or waits for a retry."""

    step: HistoryStep


class RetryScheduled(msgspec.Struct, frozen=True, gc=False):
    seq: int
    at: Timestamp
    next_attempt: int
    retry_at: Timestamp


class StepFailed(msgspec.Struct, frozen=True):
    """No retries are left: the failure is the step's result."""

    seq: int
    at: Timestamp
    attempts: int
    error: ErrorDetail


class TimerSet(msgspec.Struct, frozen=True, gc=False):
    """wake_at None: only a signal ends this wait."""

    seq: int
    at: Timestamp
    wake_at: Timestamp | None


class SignalBound(msgspec.Struct, frozen=True):
    seq: int
    at: Timestamp
    payload: Payload


class ChildStarted(msgspec.Struct, frozen=True, gc=False):
    """`created` False: attached, or started before. `status` of the child: RUNNING if the start carried an
    assignment."""

    seq: int
    at: Timestamp
    child_run_id: str
    created: bool
    status: RunStatus


class Parked(msgspec.Struct, frozen=True, gc=False):
    at: Timestamp
    wake_at: Timestamp | None


class DueRetry(msgspec.Struct, frozen=True, gc=False):
    """Attempt number `attempt` of a step may begin now."""

    step_id: str
    attempt: int


class Fetched(msgspec.Struct, frozen=True):
    """`results`, in order of seq, were recorded now (due sleeps) or earlier, after known_seq. `more`: the page is full;
    repeat with known_seq set to its last seq. `retries` are due: their time has come, or a wake made them due."""

    at: Timestamp
    results: tuple[HistoryStep, ...]
    more: bool = False
    retries: tuple[DueRetry, ...] = ()


class NotParked(msgspec.Struct, frozen=True):
    """The lease is kept. Otherwise as Fetched; `results` may be empty if only a retry is due."""

    at: Timestamp
    results: tuple[HistoryStep, ...]
    more: bool = False
    retries: tuple[DueRetry, ...] = ()


class RunClosed(msgspec.Struct, frozen=True, gc=False):
    """The worker no longer holds the run. `retry_at` is set if the run's own policy allows another attempt."""

    seq: int
    at: Timestamp
    status: RunStatus
    retry_at: Timestamp | None = None
    continued_as: str | None = None


class Started(msgspec.Struct, frozen=True, gc=False):
    """Created now. Already leased if the command had an assignment and the type and namespace have no limits."""

    run_id: str
    workflow_id: str
    status: RunStatus
    at: Timestamp


class Existing(msgspec.Struct, frozen=True, gc=False):
    """Nothing was created: this run has the workflow_id or the request_id. `repeated`: the request_id, so the same
    request created it."""

    run_id: str
    workflow_id: str
    status: RunStatus
    repeated: bool = False


class LeaseLost(msgspec.Struct, frozen=True, gc=False):
    """Another worker holds the run, or it has ended or been parked. Abandon it."""


class RunNotFound(msgspec.Struct, frozen=True, gc=False):
    """No such run in this namespace."""


class DeadlinePassed(msgspec.Struct, frozen=True, gc=False):
    """The run's deadline has passed: nothing more is recorded; a timer fails it."""


class Busy(msgspec.Struct, frozen=True, gc=False):
    """The run's row is locked. Nothing was changed; try again in a later batch."""


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The store failed unexpectedly on this command, or on an earlier one of the same run. Nothing was changed; try
    again in a later batch. `reason` is for the log only."""

    reason: str


class Deferred(msgspec.Struct, frozen=True, gc=False):
    """The responses of this batch are large enough already. Nothing was changed; it comes first in the next batch."""


class Refused(msgspec.Struct, frozen=True):
    """Not possible in this state, or not valid. The detail says why and what to do."""

    error: ErrorDetail


Outcome: TypeAlias = (
    Recorded
    | Begun
    | Known
    | RetryScheduled
    | StepFailed
    | TimerSet
    | SignalBound
    | ChildStarted
    | Fetched
    | Parked
    | NotParked
    | RunClosed
    | Started
    | Existing
    | LeaseLost
    | RunNotFound
    | DeadlinePassed
    | Busy
    | Failed
    | Deferred
    | Refused
)
