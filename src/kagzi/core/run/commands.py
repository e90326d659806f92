"""Commands: one value per operation that changes a run. Frozen, validated on arrival, without behaviour.

A worker's command carries the lease of its claim and is refused unless that is the run's current lease. Every command
is idempotent: a repeat returns what the first one recorded.
"""

from typing import Literal, TypeAlias

import msgspec

from ..conversion import copier
from ..error_details import ErrorDetail
from ..records import Lease, Payload, RunAttributes, RunKey
from ..retry.policy import RetryPolicy
from ..times import Timestamp

OnConflict: TypeAlias = Literal["existing", "existing_or_completed", "fail", "replace"]
"""What a start does if its workflow_id is taken by a run that has not ended. See `Kagzi.start`."""


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """Sync match: the run is created with a lease of this worker, as lease number 1."""

    worker_id: str
    version: str
    nonce: int
    lease_until: Timestamp


class StartRequest(RunAttributes, frozen=True, kw_only=True, omit_defaults=True):
    """A start as requested. The engine checks it, generates missing ids and makes it a StartRun."""

    namespace: str
    workflow_id: str = ""
    request_id: str = ""
    input: Payload | None = None
    context: Payload | None = None
    version: str = ""
    start_at: Timestamp | None = None
    delay_us: int | None = None
    timeout_us: int | None = None
    on_conflict: OnConflict = "existing"


def start_time(request: StartRequest, now: Timestamp) -> Timestamp | None:
    """When the run is to begin; None: at once."""
    at = now + request.delay_us if request.delay_us is not None else request.start_at
    return None if at is None or at <= now else at


def deadline(request: StartRequest, now: Timestamp) -> Timestamp | None:
    """The earlier of the deadline and the end of the timeout, which counts from the run's creation."""
    if request.timeout_us is None:
        return request.deadline_at
    timeout_at = now + request.timeout_us
    return timeout_at if request.deadline_at is None else min(timeout_at, request.deadline_at)


class StartRun(RunAttributes, frozen=True, kw_only=True):
    """Create a run, or return the one that has its workflow_id (per `on_conflict`) or its request_id (always)."""

    run: RunKey
    workflow_id: str
    request_id: str
    input: Payload | None = None
    context: Payload | None = None
    version: str | None = None
    start_at: Timestamp | None = None
    on_conflict: OnConflict = "existing"
    schedule_id: str = ""
    blocked_by: str = ""  # run id of an open run: created SLEEPING, begins when that run has ended
    assignment: Assignment | None = None
    signal: "SendSignal | None" = None  # signal-with-start: for the run that this returns, in the same transaction


def start_run(
    request: StartRequest,
    run: RunKey,
    now: Timestamp,
    *,
    assignment: Assignment | None = None,
    signal: "SendSignal | None" = None,
) -> StartRun:
    """The command that creates `run`, with times relative to `now`. Ids missing in the request default to the run
    id."""
    return _start_run(
        request,
        run=run,
        workflow_id=request.workflow_id or run.run_id,
        request_id=request.request_id or run.run_id,
        version=request.version or None,
        start_at=start_time(request, now),
        deadline_at=deadline(request, now),
        assignment=assignment,
        signal=signal,
    )


class SendSignal(msgspec.Struct, frozen=True, kw_only=True):
    """A signal as sent. The same request_id to the same run is the same signal. `start`: of signal-with-start, kept
    beside the signal of an open run, which may end without having received it."""

    name: str
    payload: Payload
    request_id: str
    start: StartRequest | None = None


_COPIED = {*RunAttributes.__struct_fields__, "input", "context", "on_conflict"} - {"deadline_at"}
_start_run = copier(StartRun, sorted(_COPIED))  # below SendSignal, because a field's type refers to it


class SignalReplacement(msgspec.Struct, frozen=True, kw_only=True):
    """A replacement for a signal value that no code has received yet; None: drop the value and keep waiting."""

    name: str
    payload: Payload | None
    request_id: str


class WorkerCommand(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of the commands that a worker sends for a run that it has leased."""

    run: RunKey
    lease: Lease


class OpenStep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Base of the commands that record a new step."""

    step_id: str
    parent_step_id: str = ""
    parallel_group_id: str = ""
    cleanup: bool = False  # after a cancellation only these are accepted; others are Refused(CANCELLED)


class OpenAttempt(OpenStep, frozen=True, kw_only=True, gc=False):
    """Base of the commands that begin an attempt of a step. The retry policy is recorded with the first begin and
    remains in effect; in a retried run and in a fork, the first begin there. The timeout is that of the attempt.
    attempt 0: the next one."""

    name: str
    attempt: int = 1
    retry: RetryPolicy | None = None
    timeout_ms: int = 0
    input: Payload | None = None


class BeginStep(OpenAttempt, frozen=True, kw_only=True, gc=False):
    """An attempt of a step begins. Returns Begun; or Known if the step has a result, or (attempt 0 only) waits for its
    retry."""

    once: bool = False


class RecordStep(OpenAttempt, frozen=True, kw_only=True, gc=False):
    """An attempt of a step began and completed before it was reported: does what BeginStep and then CompleteStep do,
    with the same rows and sequence numbers. Returns Recorded, as CompleteStep does; or the refusal of one of the two.

    Not for a step that may run only once: its begin must be recorded before its body runs.
    """

    output: Payload


class CompleteStep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Record an attempt's output. attempt 0: the current one."""

    step_id: str
    attempt: int
    output: Payload


class FailStep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Record that an attempt failed. Returns RetryScheduled or StepFailed: the server decides."""

    step_id: str
    attempt: int
    error: ErrorDetail
    input: Payload | None = None  # the arguments, for people


class BeginSleep(OpenStep, frozen=True, kw_only=True, gc=False):
    """Set a timer: `duration_us` from now, or `until`. The wake time is fixed the first time this is recorded.

    Returns TimerSet; or Recorded if the time has come already (the sleep is then complete).
    """

    name: str
    duration_us: int | None = None
    until: Timestamp | None = None


class FinishSleep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """The worker has waited in place. Returns Recorded; or TimerSet with the remaining time if it came early."""

    step_id: str


class ResultsCommand(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Completes those of the named waits (none named: all waits of the run) that are due, and returns the results after
    `known_seq`."""

    waits: tuple[str, ...]
    known_seq: int


class FetchResults(ResultsCommand, frozen=True, kw_only=True, gc=False):
    """Reads new results for a run that keeps running. Returns Fetched."""


class Park(ResultsCommand, frozen=True, kw_only=True, gc=False):
    """The run can only wait. Returns Parked (lease and slot are released), or NotParked with the new results."""


class EndRun(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Base of the commands with which the code of a run ends. `open_waits`: steps that wait for signals, and whose
    value, if there is one, the code has not received."""

    open_waits: tuple[str, ...] = ()


class CompleteRun(EndRun, frozen=True, kw_only=True, gc=False):
    """`after_step`: the run's end depends on the result of this step, which was sent with it. If the run is being
    cancelled, refused unless the step has a result: the step was not allowed to begin."""

    output: Payload
    after_step: str = ""


class FailRun(EndRun, frozen=True, kw_only=True, gc=False):
    """The function raised. Returns RunClosed: FAILED, or PENDING / SLEEPING if the run's retry policy allows another
    attempt. `after_step` as in CompleteRun."""

    error: ErrorDetail
    after_step: str = ""


class CancelRun(EndRun, frozen=True, kw_only=True, gc=False):
    """The worker acknowledges a cancellation: the run is CANCELLED. Refused unless one was requested."""

    error: ErrorDetail


class ReleaseRun(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Hand the run back: it becomes PENDING at once, without counting as a lost lease."""

    reason: str = ""


class WaitSignal(OpenStep, frozen=True, kw_only=True, gc=False):
    """Wait for the next signal of that name. A buffered one is bound at once, oldest first: SignalBound. Otherwise
    TimerSet, with the time at which the wait fails (kind TIMEOUT), None for never.

    A wait under way takes the timeout of the command, which counts from when the wait began."""

    signal_name: str
    timeout_us: int | None = None
    input: Payload | None = None  # the schema of the value, for people


class StartChild(OpenStep, frozen=True, kw_only=True, gc=False):
    """Start a run as a step of this one. Unique by (run, step_id): a repeat returns the same child.

    Returns ChildStarted; or StepFailed if the start is refused: because of a limit or a taken id, or because the server
    had refused the request before (`refusal`; then `start` has only its ids). A refusal is the result of the step.
    """

    name: str
    start: StartRun
    refusal: ErrorDetail | None = None
    on_close: Literal["cancel", "abandon"] = "cancel"
    attach: bool = False


def child_request_id(parent: RunKey, step_id: str) -> str:
    """Unique by run and step: a repeat of the start, on this or another server, finds the same child."""
    return f"{parent.run_id}/{step_id}"


def refused_child_start(parent: RunKey, step_id: str) -> StartRun:
    """The start of a child that is refused before it is looked at: only what finds a child of an earlier start."""
    run, request_id = RunKey(parent.namespace, ""), child_request_id(parent, step_id)
    return StartRun(run=run, workflow_id="", workflow_type="", request_id=request_id, on_conflict="fail")


class DecideRace(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Record the winner and, in the same transaction, close the losers: open steps become ABANDONED, their waits and
    timers are removed, and children that they started (not attached ones) are cancelled. A loser that is a wait with a
    value becomes ABANDONED too: its code has not received the value, and another wait gets it. With an empty winner
    this is the record of a wait that the code gave up."""

    step_id: str
    name: str
    winner: str
    losers: tuple[str, ...]  # step ids
    parent_step_id: str = ""


class RecordPatch(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """`changed(id)` returned True here."""

    step_id: str
    name: str


class SetStatus(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Text and progress for people. The last value wins; it has no seq."""

    text: str
    progress: float | None = None


class SetState(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """The state that the workflow shows. The last value wins; it is not part of the history and has no seq."""

    state: Payload


class BeatStep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """A long step reports that it is alive, and its progress."""

    step_id: str
    attempt: int
    details: Payload


class ContinueAsNew(EndRun, frozen=True, kw_only=True, gc=False):
    """End this run as COMPLETED and start its successor in one transaction. The successor takes over workflow_id,
    labels, parent, signals that no code has received, priority and the remaining deadline. Returns RunClosed with
    continued_as. `context`: None to keep that of this run."""

    new_run_id: str
    input: Payload
    version: str | None = None
    context: Payload | None = None


class PauseDiverged(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """The code does not match the history, a signal's value does not match the code, or the store fails on a command of
    the run: PAUSED with this problem; offered again to builds that have not tried it."""

    problem: ErrorDetail
    build_id: str = ""


StepCommand: TypeAlias = (
    BeginStep
    | RecordStep
    | CompleteStep
    | FailStep
    | BeginSleep
    | FinishSleep
    | WaitSignal
    | StartChild
    | DecideRace
    | RecordPatch
    | SetStatus
    | SetState
    | BeatStep
    | FetchResults
)
ClosingCommand: TypeAlias = Park | CompleteRun | FailRun | CancelRun | ReleaseRun | ContinueAsNew | PauseDiverged
Command: TypeAlias = StartRun | StepCommand | ClosingCommand
