"""The whole storage contract. Each verb is one atomic act of the domain; hot verbs take a batch and answer in order.

Rules that hold for every verb:
- `now` comes from the caller; no verb reads a clock (except `look`, which reports the store's own).
- Durable when it returns. A cancelled or failed call may or may not have taken effect: every verb can be repeated.
- Run rows are locked in the order of their ids, steps only after their run.
- Namespaces see nothing of each other: a foreign run id is RunNotFound / None.
- Connection loss raises `errors.Unavailable`; nothing driver-specific leaves the store.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from ..core.commands import Command, SignalGiven
from ..core.cursor import Cursor
from ..core.errors import ErrorDetail
from ..core.outcomes import Existing, Outcome, Refused, Started, Stirred
from ..core.records import (
    ClaimedRun,
    Held,
    HistoryPage,
    Lease,
    NamespaceRecord,
    Payload,
    Rows,
    RunEnd,
    RunFilter,
    RunKey,
    RunRecord,
    Served,
    StepRecord,
    WorkerRecord,
)
from ..core.states import RunStatus, WorkerStatus
from ..core.times import Timestamp


class LeaseTerms(msgspec.Struct, frozen=True, gc=False):
    """An accepted write sets the lease to `until` if it ends before `renew_before`; it never adds to it."""

    until: Timestamp
    renew_before: Timestamp


class Want(msgspec.Struct, frozen=True, gc=False):
    """A worker's free slots for one type. `versions` are what it serves, best first; an unpinned run is pinned to the first."""

    namespace: str
    workflow_type: str
    versions: tuple[str, ...]
    worker_id: str
    limit: int


class TypeKey(NamedTuple):
    namespace: str
    workflow_type: str


class Renewal(msgspec.Struct, frozen=True):
    lost: tuple[Held, ...]
    cancel_requested: tuple[tuple[RunKey, str], ...]  # with the reason


class Fired(msgspec.Struct, frozen=True):
    """What the clock did: types with runs that are PENDING now, and runs that ended."""

    woken: tuple[TypeKey, ...] = ()
    ended: tuple[RunEnd, ...] = ()
    lost: tuple[Held, ...] = ()  # leases that ran out
    more: bool = False  # the limit was reached: call again
    stirred: tuple[Stirred, ...] = ()  # parents of runs that ended
    has_children: bool = False  # of a run that ended


class Horizon(msgspec.Struct, frozen=True):
    """What is ahead. `next_due_at`: the earliest sleep, deadline, cancel limit or lease end of an open run."""

    store_now: Timestamp  # the store's own clock
    next_due_at: Timestamp | None
    pending: tuple[TypeKey, ...]  # types with runs to claim, at most 1,000
    cascade: bool = False  # ended or cancelled runs have children to be cancelled


class Cancelled(msgspec.Struct, frozen=True):
    """`ended`: the run was CANCELLED at once (it had never been claimed). `holder`: who must be told otherwise."""

    status: RunStatus
    ended: bool = False
    holder: Held | None = None
    worker_id: str | None = None
    woken: TypeKey | None = None  # it slept and is PENDING now, so that a worker can clean up
    stirred: tuple[Stirred, ...] = ()
    has_children: bool = False
    run: RunKey | None = None  # which one: said by `cascade`


class Signalled(msgspec.Struct, frozen=True):
    """`delivered`: a step was waiting. `stirred`: the run, if it has to be told."""

    run: RunKey
    delivered: bool
    stirred: tuple[Stirred, ...] = ()


class Changed(msgspec.Struct, frozen=True):
    """What pause, resume, terminate and retry came to: the state, and who has to be told."""

    status: RunStatus
    workflow_type: str
    changed: bool  # False: it was so already, or the run has ended
    holder: Held | None = None
    worker_id: str | None = None
    stirred: tuple[Stirred, ...] = ()
    has_children: bool = False
    error: ErrorDetail | None = None  # of a run that this ended


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """A new run with the results that `source` had before `from_step` was begun; `outputs` replace recorded ones by step id."""

    source: RunKey
    from_step: str
    new_run_id: str
    workflow_id: str
    request_id: str
    version: str | None = None
    outputs: Mapping[str, Payload] = {}


class Cascaded(msgspec.Struct, frozen=True):
    cancelled: tuple[Cancelled, ...] = ()
    more: bool = False


class WorkerBeat(msgspec.Struct, frozen=True, gc=False):
    worker_id: str
    active_count: int
    completed_delta: int
    failed_delta: int
    at: Timestamp


class Store(Protocol):
    """PostgreSQL and SQLite keep it alike; one conformance suite says whether they do."""

    name: str
    """"postgresql" or "sqlite"."""

    @property
    def statements(self) -> int:
        """SQL statements (round trips) issued so far. For tests and metrics."""
        ...

    @property
    def transactions(self) -> int:
        """Commits so far."""
        ...

    async def open(self) -> None:
        """Connect and check the schema version. Raises SchemaMismatch if it is not exactly the one this code knows."""
        ...

    async def close(self) -> None: ...

    # --- hot -------------------------------------------------------------------------------------------------------

    async def write(self, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms) -> Sequence[Outcome]:
        """Apply commands; one outcome each, in order.

        Commands of one run take effect in the order given. A refused command leaves its neighbours untouched. Each command
        of a run takes the next seq of that run, in order (seqs of refused and repeated ones may be burnt: gaps are legal).
        Durable when it returns; the whole batch costs at most 3 transactions when no run appears in it with steps that repeat.
        """
        ...

    async def claim(self, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp) -> Sequence[ClaimedRun]:
        """Lease PENDING runs to the workers that want them, highest priority first, then longest ready.

        A run pinned to a version goes only to a want that has it; an unpinned one is pinned to the want's first. Raises the
        lease counter; never takes a run that is locked, past its deadline, or beyond its namespace's running_runs_limit.
        Input and first history page are read after the locks are held.
        """
        ...

    async def history(self, run: RunKey, lease: Lease, after: int) -> HistoryPage | None:
        """The page of steps begun after `after`; None unless `lease` is the run's current one."""
        ...

    async def renew(self, held: Sequence[Held], now: Timestamp, until: Timestamp) -> Renewal:
        """Set these leases to `until`. Those that are no longer current are reported lost."""
        ...

    async def cut(self, held: Sequence[Held], until: Timestamp) -> None:
        """Their session closed: these leases end at `until` at the latest."""
        ...

    async def release(self, held: Sequence[Held], now: Timestamp) -> Sequence[TypeKey]:
        """Hand these runs back: PENDING at once, uncounted. Stale ones are passed over. Answers the types woken."""
        ...

    async def fire(self, now: Timestamp, *, end_leases: bool, limit: int, claim_cap: int = 10) -> Fired:
        """Do what is due: wake sleepers (their due sleeps complete), fail runs past their deadline, cancel runs past their
        cancel limit, and, if `end_leases`, take runs from holders whose lease ended (PENDING, lost_leases + 1; PAUSED with a
        problem of kind LOST if that makes `claim_cap`)."""
        ...

    async def look(self, beats: Sequence[WorkerBeat], now: Timestamp) -> Horizon:
        """One statement when there are no beats and at most one more when there are: what is ahead, and note the beats."""
        ...

    # --- runs ------------------------------------------------------------------------------------------------------

    async def get_run(self, namespace: str, *, run_id: str = "", workflow_id: str = "") -> RunRecord | None:
        """By run id, or the latest run with that workflow_id; with payloads."""
        ...

    async def list_runs(self, namespace: str, where: RunFilter, cursor: Cursor | None, limit: int) -> Rows[RunRecord]:
        """Newest first by (created_at, run_id); without payloads. A "prev" cursor reads towards the newer, answers newest first."""
        ...

    async def count_runs(self, namespace: str, where: RunFilter, cap: int) -> int:
        """At most `cap`."""
        ...

    async def ends_of(self, runs: Sequence[RunKey], /) -> Sequence[RunEnd | RunStatus | None]:
        """For each: how it ended, its status if it has not, None if there is no such run."""
        ...

    async def cancel_run(self, run: RunKey, reason: str, now: Timestamp, cancel_by: Timestamp) -> Cancelled | None:
        """Ask for the run to stop. Never claimed: CANCELLED at once. Ended: nothing changes. None: no such run."""
        ...

    async def signal_run(
        self, namespace: str, *, run_id: str = "", workflow_id: str = "", signal: SignalGiven, now: Timestamp
    ) -> Signalled | Refused | None:
        """Give a run a signal, under its row lock: bound to the oldest step that waits for that name (recorded with a seq; a
        SLEEPING run becomes PENDING), else buffered in order. Refused if the run has ended or its buffer is full. None: no such
        run. By workflow_id: the run that has not ended."""
        ...

    async def terminate_run(self, run: RunKey, reason: str, now: Timestamp) -> Changed | None:
        """CANCELLED with kind TERMINATED, without cleanup, whoever holds it."""
        ...

    async def pause_run(self, run: RunKey, reason: str, now: Timestamp) -> Changed | None:
        """PENDING and SLEEPING become PAUSED; a RUNNING run is asked to (pause_requested) and is PAUSED when it is released or
        parked."""
        ...

    async def resume_run(self, run: RunKey, now: Timestamp) -> Changed | None:
        """PAUSED becomes PENDING, its problem is forgotten and its lost leases are 0 again; takes a pause request back."""
        ...

    async def retry_run(self, run: RunKey, from_step: str, request_id: str, now: Timestamp) -> Changed | Refused | None:
        """FAILED becomes PENDING: forgets `from_step` (empty: error.subject_id if that names a step) and every result with a
        higher seq than it, keeps the rest and the first failure (as an earlier attempt of that step). Refused if the run has not
        failed, the step does not exist, or the workflow_id is active again."""
        ...

    async def fork_run(self, fork: Fork, now: Timestamp) -> Started | Existing | Refused | None:
        """None: no such run."""
        ...

    async def resume_diverged(
        self, namespace: str, served: Sequence[Served], build_id: str, now: Timestamp
    ) -> Sequence[TypeKey]:
        """Runs of these types and versions that were paused because other code did not fit, and that this build has not tried,
        become PENDING. Answers the types woken."""
        ...

    async def cascade(self, now: Timestamp, cancel_by: Timestamp, limit: int) -> Cascaded:
        """Ask children to stop whose parent has ended or is to be cancelled (close policy "cancel", not attached), or whose step
        was abandoned; like cancel_run, at most `limit` at a time."""
        ...

    # --- steps -----------------------------------------------------------------------------------------------------

    async def list_steps(
        self, run: RunKey, *, name: str | None, after_begun_seq: int, limit: int, payloads: bool
    ) -> Rows[StepRecord] | None:
        """In the order in which they were begun, with earlier attempts. None: no such run."""
        ...

    async def get_step(self, run: RunKey, step_id: str) -> StepRecord | None: ...

    # --- workers and namespaces ------------------------------------------------------------------------------------

    async def register_worker(self, worker: WorkerRecord, now: Timestamp) -> None:
        """Insert or refresh; also notes each (type, version) it serves, and its namespace."""
        ...

    async def set_worker_status(self, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool: ...

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> Sequence[TypeKey] | None:
        """The worker is OFFLINE (`hand_back`: every run it holds is PENDING at once) or, if not, DRAINING. None: unknown."""
        ...

    async def get_worker(self, namespace: str, worker_id: str) -> WorkerRecord | None: ...

    async def list_workers(
        self,
        namespace: str,
        *,
        workflow_type: str | None,
        status: WorkerStatus | None,
        cursor: Cursor | None,
        limit: int,
    ) -> Rows[WorkerRecord]:
        """Newest registration first."""
        ...

    async def get_namespace(self, namespace: str) -> NamespaceRecord | None: ...

    async def put_namespace(self, record: NamespaceRecord, now: Timestamp) -> None:
        """Insert or replace, limits and all."""
        ...


class Bus(Protocol):
    """How servers on one store wake each other. Everything works, more slowly, without it."""

    async def open(self, on_wake: "Callable[[Wake], None]") -> None:
        """Subscribe. After a lost connection `on_wake(LOOK_AGAIN)` is called once it is back."""
        ...

    async def publish(self, wake: "Wake") -> None:
        """Tell the other servers. The caller coalesces; nothing but names is in it."""
        ...

    async def close(self) -> None: ...


class Poke(NamedTuple):
    """A held run whose worker should hear of it: something has come, it is to be cancelled, or paused."""

    worker_id: str
    namespace: str
    run_id: str
    kind: str  # "result", "cancel", "pause"


class Wake(msgspec.Struct, frozen=True):
    pending: frozenset[TypeKey] = frozenset()  # types with new work
    ended: frozenset[str] = frozenset()  # namespaces in which runs ended
    look_again: bool = False
    pokes: frozenset[Poke] = frozenset()


LOOK_AGAIN = Wake(look_again=True)


class SchemaStatus(msgspec.Struct, frozen=True):
    current: int  # 0: empty database
    latest: int  # what this code knows
    pending: tuple[str, ...] = ()  # names of migrations to apply


class Migrator(Protocol):
    """Applies `migrations/NNNN_name.sql` in order, under a lock, remembering each one's checksum."""

    async def status(self) -> SchemaStatus:
        """Raises SchemaMismatch for a newer schema or a changed checksum."""
        ...

    async def migrate(self) -> SchemaStatus: ...


class NullBus:
    """For a store with one server."""

    async def open(self, on_wake: Callable[[Wake], None]) -> None: ...

    async def publish(self, wake: Wake) -> None: ...

    async def close(self) -> None: ...
