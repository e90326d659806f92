"""One value per verb that changes a run. Frozen, validated at the door, without behaviour.

A worker's command carries the lease of its claim and is refused unless that is the run's current one. Every command can be
repeated: the second time it answers what the first one recorded.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from .errors import ErrorDetail
from .records import NO_LABELS, Lease, Payload, RunKey
from .retry import RetryPolicy
from .times import Timestamp

OnConflict: TypeAlias = Literal["existing", "existing_or_completed", "fail", "replace"]


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """Sync match: the run is born leased to this worker, as lease number 1."""

    worker_id: str
    version: str
    nonce: int
    lease_until: Timestamp


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A start as it was asked for. The engine checks it, draws what is missing and makes it a StartRun."""

    namespace: str
    workflow_type: str
    workflow_id: str = ""
    request_id: str = ""
    task_queue: str = ""
    input: Payload | None = None
    context: Payload | None = None
    version: str = ""
    labels: Mapping[str, str] = NO_LABELS
    priority: int = 0
    start_at: Timestamp | None = None
    delay_us: int | None = None
    deadline_at: Timestamp | None = None
    retry: RetryPolicy | None = None
    on_conflict: OnConflict = "existing"


class StartRun(msgspec.Struct, frozen=True, kw_only=True):
    """Create a run, or answer the one that has its workflow_id (per `on_conflict`) or its request_id (always)."""

    run: RunKey
    workflow_id: str
    workflow_type: str
    request_id: str
    input: Payload | None = None
    context: Payload | None = None
    version: str | None = None
    labels: Mapping[str, str] = NO_LABELS
    priority: int = 0
    start_at: Timestamp | None = None
    deadline_at: Timestamp | None = None
    retry: RetryPolicy | None = None
    on_conflict: OnConflict = "existing"
    assignment: Assignment | None = None


class WorkerCommand(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of what a worker says about a run it holds."""

    run: RunKey
    lease: Lease


class BeginStep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """An attempt of a step begins. The retry policy is recorded with the first begin and decides from then on.

    attempt 0: the next one. Answers Begun; or Known if the step has a result, or (attempt 0 only) waits for its retry.
    """

    step_id: str
    name: str
    attempt: int = 1
    retry: RetryPolicy | None = None
    timeout_ms: int = 0
    input: Payload | None = None
    parent_step_id: str = ""
    parallel_group_id: str = ""
    once: bool = False


class CompleteStep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Record an attempt's output. attempt 0: the current one."""

    step_id: str
    attempt: int
    output: Payload


class FailStep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Record that an attempt failed. Answers RetryScheduled or StepFailed: the server decides."""

    step_id: str
    attempt: int
    error: ErrorDetail


class BeginSleep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Set a timer: `duration_us` from now, or `until`. The wake time is fixed the first time this is recorded.

    Answers TimerSet; or Recorded if the time has come already (the sleep is then complete).
    """

    step_id: str
    name: str
    duration_us: int | None = None
    until: Timestamp | None = None
    parent_step_id: str = ""
    parallel_group_id: str = ""


class FinishSleep(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """The worker has waited in place. Answers Recorded; or TimerSet with the rest if it came early."""

    step_id: str


class Park(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """The run can only wait. Answers Parked (lease and slot are gone) or NotParked with what has come meanwhile."""

    waits: tuple[str, ...]
    known_seq: int


class CompleteRun(WorkerCommand, frozen=True, kw_only=True, gc=False):
    output: Payload


class FailRun(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """The function raised. Answers RunClosed: FAILED, or PENDING / SLEEPING if the run's own policy allows another try."""

    error: ErrorDetail


class CancelRun(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """The worker acknowledges a cancellation: the run is CANCELLED. Refused unless one was requested."""

    error: ErrorDetail


class ReleaseRun(WorkerCommand, frozen=True, kw_only=True, gc=False):
    """Hand the run back: PENDING at once, not counted against it."""

    reason: str = ""


StepCommand: TypeAlias = BeginStep | CompleteStep | FailStep | BeginSleep | FinishSleep
ClosingCommand: TypeAlias = Park | CompleteRun | FailRun | CancelRun | ReleaseRun
Command: TypeAlias = StartRun | StepCommand | ClosingCommand
