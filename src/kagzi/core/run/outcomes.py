"""What a command came to. One per command, in order. Refusals change nothing."""

from typing import TypeAlias

import msgspec

from ..error_details import ErrorDetail
from ..records import HistoryStep, Lease, Payload, RunKey
from ..states import RunStatus
from ..times import Timestamp


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """Durable, as number `seq` of its run; new, or recorded before under this lease: the caller cannot tell, and need not.
    0: it is no part of the history (a status, a heartbeat), so it has no number."""

    seq: int
    at: Timestamp


class Begun(msgspec.Struct, frozen=True, gc=False):
    """Attempt number `attempt` is to be executed."""

    seq: int
    at: Timestamp
    attempt: int


class Known(msgspec.Struct, frozen=True):
    """The step is not to be executed (now): it has a result, or waits for a retry."""

    step: HistoryStep


class RetryScheduled(msgspec.Struct, frozen=True, gc=False):
    seq: int
    at: Timestamp
    next_attempt: int
    retry_at: Timestamp


class StepFailed(msgspec.Struct, frozen=True):
    """Out of retries: the failure is the step's result."""

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
    """`created` False: attached, or started before. `status` of the child: leased already if the start carried an assignment."""

    seq: int
    at: Timestamp
    child_run_id: str
    created: bool
    status: RunStatus
    ousted: "tuple[Ousted, ...]" = ()


class Stirred(msgspec.Struct, frozen=True, gc=False):
    """Something came for this run while it was not looking: it is PENDING now (`woken`), or its holder should ask (`holder`)."""

    run: RunKey
    workflow_type: str
    woken: bool
    holder: Lease | None = None
    worker_id: str | None = None


class Parked(msgspec.Struct, frozen=True, gc=False):
    at: Timestamp
    wake_at: Timestamp | None


class Fetched(msgspec.Struct, frozen=True):
    """`results` were recorded now (due sleeps) or had been recorded beyond known_seq, in the order of their seqs. `more`: the page is
    full; ask again with known_seq set to the last one of it."""

    at: Timestamp
    results: tuple[HistoryStep, ...]
    more: bool = False


class NotParked(msgspec.Struct, frozen=True):
    """The lease stays. `results` and `more` as in Fetched; there may be none when only a retry has come due."""

    at: Timestamp
    results: tuple[HistoryStep, ...]
    more: bool = False


class RunClosed(msgspec.Struct, frozen=True, gc=False):
    """The worker no longer holds the run. `retry_at` is set when its own policy lets it try again."""

    seq: int
    at: Timestamp
    status: RunStatus
    retry_at: Timestamp | None = None
    continued_as: str | None = None
    stirred: tuple[Stirred, ...] = ()  # parents whose step got this run's end
    has_children: bool = False  # some of them may have to be cancelled: see Store.cascade


class Ousted(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A run that was asked to stop because another one came into its full type (when_full: cancel-oldest)."""

    run: RunKey
    status: RunStatus
    ended: bool  # it had never been claimed, so that was all
    reason: str
    cancel_by: Timestamp
    holder: Lease | None = None
    worker_id: str | None = None
    stirred: tuple[Stirred, ...] = ()
    has_children: bool = False


class Started(msgspec.Struct, frozen=True, gc=False):
    """Created now. Leased already if the command carried an assignment and nothing limits the type or the namespace."""

    run_id: str
    workflow_id: str
    status: RunStatus
    at: Timestamp
    stirred: tuple[Stirred, ...] = ()  # by `replace`: parents of the run that was ended
    ousted: tuple[Ousted, ...] = ()
    replaced: str = ""  # by `replace`: the run that was ended


class Existing(msgspec.Struct, frozen=True, gc=False):
    """Nothing was created: this run has the workflow_id, or the request_id."""

    run_id: str
    workflow_id: str
    status: RunStatus
    stirred: tuple[Stirred, ...] = ()  # signal-with-start: the run, if the signal was for a waiting step


class LeaseLost(msgspec.Struct, frozen=True, gc=False):
    """Somebody else holds the run, or it has ended or been parked. Abandon it."""


class RunNotFound(msgspec.Struct, frozen=True, gc=False):
    """No such run in this namespace."""


class DeadlinePassed(msgspec.Struct, frozen=True, gc=False):
    """The run's deadline has passed: nothing more is recorded; a timer fails it."""


class Busy(msgspec.Struct, frozen=True, gc=False):
    """The run's row is locked by somebody else. Nothing was changed; try again in a later batch."""


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The store failed on this command in a way that nobody foresaw, or on one before it of the same run. Nothing was changed;
    try again in a later batch. `reason` is for the log only."""

    reason: str


class Deferred(msgspec.Struct, frozen=True, gc=False):
    """The answers of this batch are large enough without it. Nothing was changed; it comes first in the next batch."""


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
