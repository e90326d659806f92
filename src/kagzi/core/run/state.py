"""A run and some of its steps in memory: as read, and as changed by a batch of commands."""

from typing import Final, Protocol

import msgspec

from ..error_details import ErrorDetail
from ..records import HistoryStep, Lease, Payload, RunKey
from ..retry.policy import RetryPolicy
from ..states import STEP_KIND_OF_CODE, STEP_STATUS_OF_CODE, KindCode, RunCode, StepCode, require_transition
from ..times import US_PER_MS, Timestamp
from .commands import BeginStep, ContinueAsNew, DecideRace, FailStep, StartChild, StartRun, WaitSignal
from .outcomes import Refused
from .refusals import namespace_full

OUTPUT_STEP: Final = "$output"
STATE_STEP: Final = "$state"
NEVER: Final = 2**63 - 1
"""The due time of a wait that only an event ends. Every open wait has a due time, by which it is found."""

RETURNS_STEP = (BeginStep, FailStep, WaitSignal, StartChild, DecideRace)
"""Commands that may return the contents of the step that they name."""

_EVENT_KINDS = (KindCode.SIGNAL, KindCode.CHILD)


class StepState(msgspec.Struct, kw_only=True):
    """A row of the history. `lease` is the lease of its last writer."""

    step_id: str
    name: str
    kind: int
    status: int
    begun_seq: int
    lease: Lease
    created_at: Timestamp
    attempt: int = 1
    seq: int = 0
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    retry_at: Timestamp | None = None
    wake_at: Timestamp | None = None
    retry: RetryPolicy | None = None
    timeout_ms: int = 0
    once: bool = False
    worker_id: str | None = None
    parent_step_id: str = ""
    parallel_group_id: str = ""
    input: Payload | None = None
    output: Payload | None = None
    error: ErrorDetail | None = None
    child_run_id: str | None = None
    details: Payload | None = None
    withheld: bool = False  # its payload was not read: the outcomes of this batch are large enough without it
    new: bool = False  # created by this batch
    changed: bool = False
    awaited_signal: bool = False  # at the time of the read
    was_retrying: bool = False

    def __post_init__(self) -> None:
        if not self.new and self.status < StepCode.COMPLETED:
            self.awaited_signal, self.was_retrying = self.awaits_signal, self.is_retrying

    @property
    def awaits_signal(self) -> bool:
        return self.kind == KindCode.SIGNAL and self.status == StepCode.RUNNING

    @property
    def is_retrying(self) -> bool:
        """An attempt has failed and the step has no result yet: another attempt is due or running."""
        return self.attempt > 1 and self.kind == KindCode.FUNCTION and self.status < StepCode.COMPLETED

    @property
    def begun(self) -> bool:
        """False in a fork, and in a run that was retried from an earlier step, until a worker begins the step again."""
        return self.lease.counter > 0

    @property
    def has_result(self) -> bool:
        return self.status >= StepCode.COMPLETED

    @property
    def due_at(self) -> Timestamp | None:
        """The next time at which the clock acts on the step, if any."""
        if self.status == StepCode.PENDING:
            return self.retry_at
        if self.status != StepCode.RUNNING:
            return None
        return NEVER if self.wake_at is None and self.kind in _EVENT_KINDS else self.wake_at

    @property
    def row_due_at(self) -> Timestamp | None:
        """As `due_at`; for a running step with a timeout, the time by which its attempt must be reported."""
        if self.timeout_ms and self.status == StepCode.RUNNING and self.kind == KindCode.FUNCTION:
            return (self.started_at or 0) + self.timeout_ms * US_PER_MS
        return self.due_at

    def as_history(self) -> HistoryStep:
        return HistoryStep(
            step_id=self.step_id,
            kind=STEP_KIND_OF_CODE[self.kind],
            status=STEP_STATUS_OF_CODE[self.status],
            begun_seq=self.begun_seq,
            attempt=self.attempt,
            seq=self.seq,
            at=self.finished_at or self.started_at or 0,
            output=self.output,
            error=self.error,
            retry_at=self.retry_at,
            wake_at=self.wake_at,
            child_run_id=self.child_run_id,
            details=self.details,
        )


class AttemptState(msgspec.Struct, kw_only=True):
    """A failed attempt that was followed by another."""

    step_id: str
    attempt: int
    begun_seq: int
    seq: int
    lease: Lease
    started_at: Timestamp | None
    finished_at: Timestamp
    retry_at: Timestamp
    worker_id: str | None = None
    error: ErrorDetail | None = None  # None: it was read and is not new
    input: Payload | None = None  # its arguments; not read from the store


class SignalState(msgspec.Struct, kw_only=True):
    """A received signal, and the step that it is bound to, if any: now, and when it was read."""

    number: int
    name: str
    payload: Payload | None  # None: withheld, as in StepState, or not read because the store copies it
    step_id: str = ""
    read_step_id: str = ""

    def __post_init__(self) -> None:
        self.read_step_id = self.step_id


class Admission(Protocol):
    """Limits of types that refuse starts, or cancel other runs, when full."""

    def refuse(self, start: StartRun, now: Timestamp) -> Refused | None:
        """None: the start is admitted and counted."""
        ...


class Relative(msgspec.Struct):
    """Another run, with the fields that a parent needs."""

    run_id: str
    workflow_type: str
    status: int


class Relatives(msgspec.Struct, kw_only=True):
    """The runs that a batch of child starts in one namespace refers to, as read, and those to create."""

    recorded: dict[tuple[str, str], Relative] = msgspec.field(default_factory=dict[tuple[str, str], Relative])
    by_request: dict[str, Relative] = msgspec.field(default_factory=dict[str, Relative])
    foreign: set[tuple[str, str]] = msgspec.field(default_factory=set[tuple[str, str]])
    """Steps, with their runs, whose request id belongs to a run that they did not start."""
    created_requests: set[str] = msgspec.field(default_factory=set[str])
    """Request ids of `created`: no other step may use them."""
    active: dict[str, Relative] = msgspec.field(default_factory=dict[str, Relative])  # by workflow id
    limit: int | None = None  # of open runs
    quota: int | None = None  # how many more may be started
    created: list[StartChild] = msgspec.field(default_factory=list[StartChild])
    links: list[tuple[str, str, str, str]] = msgspec.field(default_factory=list[tuple[str, str, str, str]])
    """(child run id, parent run id, step id, namespace) of steps that wait for an existing run."""
    admission: Admission | None = None

    def refuse_start(self, start: StartRun, now: Timestamp) -> Refused | None:
        """None: the start is allowed and counted."""
        if self.admission is not None and (refused := self.admission.refuse(start, now)) is not None:
            return refused
        if self.quota is not None and self.limit is not None:
            if self.quota <= 0:
                return namespace_full(start.run.namespace, self.limit)
            self.quota -= 1
        return None


class RunState(msgspec.Struct, kw_only=True):
    """A run's row, the steps that were read, and what to write. `read_seq` is its seq at the time of the read."""

    run: RunKey
    status: int
    lease: Lease
    read_seq: int
    seq: int
    deadline_at: Timestamp | None
    worker_id: str | None
    result_seq: int = 0
    read_result_seq: int = 0
    step_count: int = 0
    attempt: int = 1
    ready_at: Timestamp | None = None
    due_at: Timestamp | None = None
    wait_reason: int | None = None
    finished_at: Timestamp | None = None
    cancel_requested_at: Timestamp | None = None
    retry: RetryPolicy | None = None
    watched: bool = False
    has_children: bool = False
    cascade_due: bool = False
    children_due: bool = False  # set if a decision of this batch made the cascade due
    unread_signals: int = 0  # when it was read
    pause_requested: bool = False
    diverged: bool = False
    cancel_reason: str = ""
    cancel_unseen: bool = False  # requested while this worker held it; the notice may not have arrived
    continued_as: str | None = None
    status_text: str | None = None
    progress: float | None = None
    tried_build: str | None = None  # to be added to the builds whose code did not match
    unpin_build: bool = False  # no longer pinned to a build
    problem: ErrorDetail | None = None
    error: ErrorDetail | None = None
    relatives: Relatives | None = None  # for commands that start children
    successor: ContinueAsNew | None = None  # the run that continues this one
    successor_paused: bool = False  # the successor takes over the pause request
    reported_alive: bool = False  # a step sent a heartbeat
    begun_again: int = 0  # attempts of steps that were begun before; counts that are kept without reading include them
    signals: list[SignalState] = msgspec.field(default_factory=list[SignalState])  # as far as they were read, in order
    refilled: set[str] = msgspec.field(default_factory=set[str])
    """Waits that were bound to another signal, or to none: the output of each is that of its signal now."""
    steps: dict[str, StepState] = msgspec.field(default_factory=dict[str, StepState])
    attempts: dict[tuple[str, int], AttemptState] = msgspec.field(default_factory=dict[tuple[str, int], AttemptState])
    new_attempts: list[AttemptState] = msgspec.field(default_factory=list[AttemptState])
    changed: bool = False
    answer_bytes: int = 0  # size of the outcomes of its commands
    deferred: bool = False  # one of its commands waits for the next batch, so all later ones do too

    @property
    def ended(self) -> bool:
        return RunCode.COMPLETED <= self.status <= RunCode.CANCELLED

    def count_changes(self) -> tuple[int, int, int]:
        """The changes of the run's counts: waits for signals, steps being retried, and unread signals. Stores keep them
        as `awaits_signal` and `retrying_steps`, with 0 for an ended run, and as `unread_signals`."""
        waits = retries = 0
        for step in self.steps.values():
            if step.changed:
                waits += step.awaits_signal - step.awaited_signal
                retries += step.is_retrying - step.was_retrying
        return waits, retries, sum(bool(signal.read_step_id) - bool(signal.step_id) for signal in self.signals)

    @property
    def ended_with_unread(self) -> bool:
        """Whether it has ended, without a successor, and signals were left."""
        return self.ended and self.successor is None and self.unread_signals + self.count_changes()[2] > 0

    @property
    def progressed(self) -> bool:
        """Whether the run made progress, which resets its count of lost leases."""
        return self.reported_alive or self.result_seq != self.read_result_seq

    def next_seq(self) -> int:
        """Takes the next sequence number, which marks the run as changed."""
        self.changed = True
        self.seq += 1
        return self.seq

    def next_result_seq(self) -> int:
        self.result_seq = self.next_seq()
        return self.result_seq

    def leave(self, status: RunCode) -> None:
        """Ends the worker's hold of the run."""
        require_transition(self.status, status)
        self.changed = True
        self.status = status
        self.pause_requested = False
