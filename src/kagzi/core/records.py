"""Records of runs, steps and workers: the values that the layers exchange."""

from collections.abc import Mapping
from typing import Generic, Literal, TypeAlias, TypeVar

import msgspec

from .error_details import ErrorDetail, ErrorKind
from .public import exported
from .retry.policy import RetryPolicy
from .states import RunStatus, StepKind, StepStatus, WaitReason, WorkerStatus
from .times import Timestamp

Row = TypeVar("Row")

DEFAULT_NAMESPACE = "default"
NO_LABELS: Mapping[str, str] = {}


class RunKey(msgspec.Struct, frozen=True, gc=False):
    """Namespace and run id in one value, so that no query can forget the namespace."""

    namespace: str
    run_id: str


class Lease(msgspec.Struct, frozen=True, gc=False):
    """Proof of holding a run. Both parts are compared: a lossy failover may reuse a counter."""

    counter: int
    nonce: int


class RunLease(msgspec.Struct, frozen=True, gc=False):
    run: RunKey
    lease: Lease


class Payload(msgspec.Struct, frozen=True, gc=False):
    """User data. No metadata means JSON."""

    data: bytes
    metadata: Mapping[str, str] | None = None


ENCODING = "encoding"
"""Metadata key: how the data are encoded."""
_JSON_ENCODINGS = frozenset({"", "json", "json/plain"})


def is_encoded(metadata: Mapping[str, str] | None) -> bool:
    """Whether data are encoded otherwise than as JSON. Clients in other languages may name JSON explicitly."""
    return metadata is not None and metadata.get(ENCODING, "") not in _JSON_ENCODINGS


class RunAttributes(msgspec.Struct, frozen=True, kw_only=True):
    """The permanent attributes of a run, set at its start. Starts, records and exports share these fields;
    `store/columns.py` defines what a fork and a continued run take over."""

    workflow_type: str
    priority: int = 0
    labels: Mapping[str, str] = NO_LABELS
    deadline_at: Timestamp | None = None
    retry: RetryPolicy | None = None
    concurrency_key: str = ""
    task_queue: str = ""  # as its start named it, if not like the type; without effect


class HistoryStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step as replay needs it. `seq` is the position of its result in the run's order; 0 if it has none."""

    step_id: str
    kind: StepKind
    status: StepStatus
    begun_seq: int
    attempt: int = 1
    seq: int = 0
    at: Timestamp = 0  # commit time of the result; while there is none, when the step began
    output: Payload | None = None
    error: ErrorDetail | None = None
    retry_at: Timestamp | None = None
    wake_at: Timestamp | None = None
    child_run_id: str | None = None
    details: Payload | None = None


HOLDER_DIED: Timestamp = 0
"""The end of a lease whose holder is known to be dead: it gets no grace period to renew."""


class HistoryPage(msgspec.Struct, frozen=True):
    """Steps in the order in which they were begun. `next_after` is the begun_seq to continue after."""

    steps: tuple[HistoryStep, ...] = ()
    has_more: bool = False
    next_after: int = 0


class ClaimedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its lease and everything that a worker needs to continue it."""

    run: RunKey
    lease: Lease
    worker_id: str
    workflow_id: str
    workflow_type: str
    version: str
    attempt: int
    input: Payload | None
    context: Payload | None = None
    labels: Mapping[str, str] = NO_LABELS
    created_at: Timestamp
    claimed_at: Timestamp
    ready_at: Timestamp | None = None  # since when it could be claimed
    started_at: Timestamp | None = None  # when it was first claimed
    deadline_at: Timestamp | None = None
    last_seq: int = 0
    history: HistoryPage = HistoryPage()
    cancel_requested: bool = False
    cancel_reason: str = ""
    pause_requested: bool = False
    parent_run_id: str | None = None
    own_traces_from: int = 0  # as in RunRecord


class StoredRun(RunAttributes, frozen=True, kw_only=True):
    """What the record and the export of a run have in common."""

    workflow_id: str
    status: RunStatus
    created_at: Timestamp
    last_seq: int
    version: str | None = None
    pinned_build: str | None = None  # the only build whose workers may claim it
    wait_reason: WaitReason | None = None
    attempt: int = 1
    lost_leases: int = 0
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    queued_at: Timestamp | None = None  # when it began to wait for its first claim; None: it has not waited
    queued_us: int = 0  # how long it waited for workers in all, without the wait under way
    wake_at: Timestamp | None = None
    cancel_reason: str = ""
    pause_requested: bool = False
    pause_reason: str = ""
    status_text: str = ""
    progress: float | None = None
    parent_run_id: str | None = None
    parent_step_id: str | None = None
    schedule_id: str | None = None
    blocked_by: str | None = None  # run id: it begins when that run has ended
    forked_from: str | None = None
    continued_as: str | None = None
    handed_on_to: str | None = None  # run id: it has the signals that this one ended without receiving
    error: ErrorDetail | None = None
    problem: ErrorDetail | None = None


class RunRecord(StoredRun, frozen=True, kw_only=True):
    """A run as people see it. Lists omit input, context, output and state."""

    run: RunKey
    worker_id: str | None
    cancel_requested: bool
    ready_at: Timestamp | None = None  # since when it has been waiting for a worker; None unless PENDING
    claims: int = 0  # how often a worker has claimed it
    own_traces_from: int = 0  # the first claim that has its own trace; 0: none
    awaits_signal: int = 0  # how many of its steps wait for a signal; 0 for an ended run
    retrying_steps: int = 0  # how many of its steps failed and are retried; 0 for an ended run
    unread_signals: int = 0  # how many signals it has accepted and no step has
    waits: tuple[str, ...] = ()  # Get only, while SLEEPING: ids of the steps it waits for, nearest first
    input: Payload | None = None
    context: Payload | None = None
    output: Payload | None = None
    state: Payload | None = None
    state_at: Timestamp | None = None  # when it was set


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended: what result() returns."""

    run: RunKey
    status: RunStatus
    output: Payload | None = None
    error: ErrorDetail | None = None
    continued_as: str | None = None
    workflow_type: str = ""  # only where ends are counted by type


class StepAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier attempt that failed or lost its worker. A lost one does not count: the next attempt has the same
    number."""

    attempt: int
    started_at: Timestamp | None
    finished_at: Timestamp
    error: ErrorDetail
    worker_id: str | None = None
    claim: int = 0  # as in StepRecord
    begun_seq: int = 0
    input: Payload | None = None  # its own arguments, if recorded; lists omit them, like those of steps
    before_retry: bool = False  # an explicit retry came later and restarted the count

    @property
    def lost(self) -> bool:
        return self.error.kind is ErrorKind.LOST


class StepOutline(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that every form of a step has: identity, status and times."""

    step_id: str
    name: str
    kind: StepKind
    status: StepStatus
    begun_seq: int
    created_at: Timestamp
    attempt: int = 1
    seq: int = 0
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    retry_at: Timestamp | None = None
    wake_at: Timestamp | None = None
    child_run_id: str | None = None
    parent_step_id: str = ""
    parallel_group_id: str = ""
    worker_id: str | None = None


class StoredStep(StepOutline, frozen=True, kw_only=True):
    """What the record and the export of a step have in common."""

    retry: RetryPolicy | None = None
    timeout_ms: int = 0
    error: ErrorDetail | None = None


class StepRecord(StoredStep, frozen=True, kw_only=True):
    """A step as people see it."""

    run: RunKey
    output: Payload | None = None
    input: Payload | None = None
    attempts: tuple[StepAttempt, ...] = ()
    details: Payload | None = None  # of its last heartbeat
    claim: int = 0  # the claim under which it was last begun, which is the lease counter; 0: not known
    retry_seq: int = 0  # the seq of the retry of the run that discarded it; 0: it is part of the history
    retried_at: Timestamp | None = None  # when that was


class Served(msgspec.Struct, frozen=True, gc=False):
    """A workflow type at a version: what a worker can execute."""

    workflow_type: str
    version: str


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    worker_id: str
    namespace: str
    served: tuple[Served, ...]
    max_concurrent: int
    hostname: str = ""
    pid: int = 0
    sdk_version: str = ""
    build_id: str = ""
    labels: Mapping[str, str] = NO_LABELS
    status: WorkerStatus = WorkerStatus.ONLINE
    active_count: int = 0
    total_completed: int = 0
    total_failed: int = 0
    registered_at: Timestamp = 0
    last_heartbeat_at: Timestamp = 0


class NamespaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant. None means no limit."""

    namespace: str
    enabled: bool = True
    created_at: Timestamp = 0
    open_runs_limit: int | None = None
    running_runs_limit: int | None = None
    starts_per_second_limit: float | None = None
    stored_bytes_limit: int | None = None
    sessions_limit: int | None = None
    schedules_limit: int | None = None
    retention_seconds: Mapping[str, int] = {}  # by the name of the status; for others the server's setting applies
    deleting: bool = False  # its rows are being removed; it accepts nothing new
    next_start_at: Timestamp = 0  # when the next start would be due if starts were evenly spaced
    stored_bytes: int | None = None  # bytes of payloads and errors at the last measurement
    stored_bytes_at: Timestamp | None = None

    @property
    def limits_starts(self) -> bool:
        """Whether a start in this namespace has to lock its row to check limits."""
        limits = (self.open_runs_limit, self.starts_per_second_limit, self.stored_bytes_limit)
        return any(limit is not None for limit in limits)


RunOrder: TypeAlias = Literal["created", "ended"]
"""The sort order of a list of runs, latest first. Sorted by end, it only has runs that have ended."""


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All conditions must hold; an empty one always holds."""

    statuses: tuple[RunStatus, ...] = ()
    workflow_types: tuple[str, ...] = ()
    labels: Mapping[str, str] = NO_LABELS
    created_after: Timestamp | None = None  # inclusive
    created_before: Timestamp | None = None  # exclusive
    workflow_id: str = ""
    version: str = ""
    parent_run_id: str = ""
    schedule_id: str = ""
    concurrency_key: str = ""
    worker_id: str = ""  # the worker that holds it now
    has_problem: bool | None = None
    failing: bool | None = None  # a step failed and is retried, or the engine paused the run with a problem
    waiting: bool | None = None  # a step waits for a signal
    ended_after: Timestamp | None = None  # inclusive
    ended_before: Timestamp | None = None  # exclusive
    run_ids: tuple[str, ...] = ()  # these only
    id_prefix: str = ""  # prefix of its run id or workflow id: a search, which has no second page

    @property
    def by_end(self) -> bool:
        """Whether it filters by the time at which runs ended."""
        return self.ended_after is not None or self.ended_before is not None

    @property
    def order(self) -> RunOrder:
        """The order that an index supports."""
        return "ended" if self.by_end else "created"

    @property
    def ended_statuses(self) -> tuple[RunStatus, ...]:
        """The statuses that a list sorted by end is read from. A run that a worker holds has not ended."""
        if self.worker_id:
            return ()
        return tuple(dict.fromkeys(status for status in self.statuses or RunStatus if status.ended))

    @property
    def has_rare_status(self) -> bool:
        """Whether it only asks for statuses that few runs have: neither completed nor sleeping."""
        return bool(self.statuses) and not {RunStatus.COMPLETED, RunStatus.SLEEPING}.intersection(self.statuses)

    @property
    def reads_sleeping_by_type(self) -> bool:
        """Whether it asks for sleeping runs of some types, perhaps with rare statuses. Neither an index of statuses nor
        one of types finds these: many runs sleep, and many of a type have completed."""
        statuses = self.statuses
        return bool(self.workflow_types) and RunStatus.SLEEPING in statuses and RunStatus.COMPLETED not in statuses

    def split_sleeping(self) -> tuple["RunFilter", "RunFilter | None"]:
        """The filter for sleeping runs alone, and for the other statuses it asks for; None: there are none."""
        others = tuple(status for status in self.statuses if status is not RunStatus.SLEEPING)
        asleep = msgspec.structs.replace(self, statuses=(RunStatus.SLEEPING,))
        return asleep, msgspec.structs.replace(self, statuses=others) if others else None


class Rows(msgspec.Struct, Generic[Row], frozen=True):
    """A page: rows in list order, and whether more rows follow in the direction of the request."""

    rows: tuple[Row, ...]
    has_more: bool


@exported
class Explanation(msgspec.Struct, frozen=True):
    """Why a run is where it is. `str()` is the sentence."""

    sentence: str  #: for people
    reason: str = ""  #: a stable word for programs
    facts: Mapping[str, str] = {}  #: what the sentence is based on
    remedy: str = ""  #: what to do about it; empty if there is nothing to do

    def __str__(self) -> str:
        return self.sentence
