"""The most frequent verbs: batches of commands, claims, leases, timers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from ...core.effects import Effects
from ...core.error_details import ErrorDetail
from ...core.records import DEFAULT_NAMESPACE, ClaimedRun, HistoryPage, Lease, RunKey, RunLease
from ...core.run.commands import Command
from ...core.run.outcomes import Outcome
from ...core.times import Timestamp
from ...core.workflow_types.type_key import TypeKey


class LeaseTerms(msgspec.Struct, frozen=True, gc=False):
    """An accepted write extends the lease to `until` if it ends before `renew_before`, and never further."""

    until: Timestamp
    renew_before: Timestamp


class Want(msgspec.Struct, frozen=True, gc=False):
    """A worker's free slots for one type. `versions`: what it serves, preferred first; unpinned runs are pinned to the
    first. `build_id`: the build of its code, for runs pinned to a build."""

    namespace: str
    workflow_type: str
    versions: tuple[str, ...]
    worker_id: str
    limit: int
    build_id: str = ""


class Claimed(msgspec.Struct, frozen=True):
    """The runs of a claim, and why there were not more.

    `waiting`: types whose runs wait for a permit; with an empty type, for one of the namespace. `again_at`: when the
    rate of a type allows the next start. `more`: types that may have runs which this claim did not reach.
    """

    runs: Sequence[ClaimedRun] = ()
    limited: frozenset[TypeKey] = frozenset()  # types whose limits were applied
    waiting: frozenset[TypeKey] = frozenset()
    again_at: Mapping[TypeKey, Timestamp] = {}
    more: frozenset[TypeKey] = frozenset()


class Overdue(msgspec.Struct, frozen=True):
    """An attempt of a step that its worker should have reported by now."""

    leased: RunLease
    step_id: str
    attempt: int
    timeout_ms: int


class Renewal(msgspec.Struct, frozen=True):
    lost: tuple[RunLease, ...]
    cancel_requested: tuple[tuple[RunKey, str], ...]  # with the reason
    overdue: tuple[Overdue, ...] = ()
    pause_requested: tuple[RunKey, ...] = ()


class ExpiredLease(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose worker is gone. `times`: how many it has lost in a row; `problem`: why it is quarantined, if it
    is."""

    leased: RunLease
    workflow_id: str
    workflow_type: str
    times: int
    problem: ErrorDetail | None = None


class Fired(msgspec.Struct, frozen=True):
    """What timers did, apart from the effects."""

    expired: tuple[ExpiredLease, ...] = ()  # leases that ended
    more: bool = False  # the limit was reached: call again


class PendingWork(msgspec.Struct, frozen=True):
    """What is pending. `next_due_at`: the earliest sleep, deadline, cancel limit or lease end of an open run."""

    store_now: Timestamp  # by the store's own clock
    next_due_at: Timestamp | None
    pending: tuple[TypeKey, ...]  # types with runs to claim, in a fixed order, at most POLL_TYPES
    cascade: bool = False  # ended or cancelled runs have children to cancel
    draining: tuple[
        tuple[str, str], ...
    ] = ()  # namespace and id of workers in `heartbeats` that must drain, if other servers may request that
    bulk: bool = False  # there are unfinished bulk operations
    next_schedule_at: Timestamp | None = None  # when the next schedule is due


class Heartbeat(msgspec.Struct, frozen=True, gc=False):
    worker_id: str
    active_count: int
    completed_delta: int
    failed_delta: int
    at: Timestamp
    namespace: str = DEFAULT_NAMESPACE


class HotVerbs(Protocol):
    """Hot verbs take a batch and return results in order."""

    async def write(
        self, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms
    ) -> tuple[Sequence[Outcome], Effects]:
        """Apply commands; returns one outcome for each, in order, and the effects on other runs.

        Commands of one run take effect in the order given. A refused command does not affect the others. Each command
        of a run takes the next seq of that run, in order (those of refused and repeated commands may be skipped: gaps
        are legal). Durable when it returns. The whole batch costs at most 3 transactions if no run appears in it with
        steps that repeat.
        """
        ...

    async def claim(
        self, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp, *, old_before: Timestamp = 0
    ) -> Claimed:
        """Lease PENDING runs to the workers that want them, highest priority first, then longest ready.

        If a type has limits per key, its keys are served in turn. Limits hold exactly, however many servers claim: runs
        are counted and claimed under the lock of the type. Runs of a paused type are not claimed.

        A run pinned to a version is claimed only for a want with that version; an unpinned one is pinned to the want's
        first. A run pinned to a build (`pinned_build`) is claimed only for a want of that build. Each claim increments
        the lease counter. It never takes a run that is locked, past its deadline, or beyond its namespace's
        running_runs_limit. Input and first history page are read after the locks are held.

        The first claim of a run that was created before `old_before`, or that has `OWN_TRACE_SEQ` records, is recorded
        in the run: from then on, each claim has a trace of its own.
        """
        ...

    async def history(self, run: RunKey, lease: Lease, after: int, known_seq: int = 0) -> HistoryPage | None:
        """The page of steps begun after `after`; None unless `lease` is the run's current one.

        Results up to `known_seq` come without output, error and details. Pages are limited by bytes.
        """
        ...

    async def renew(
        self, leased: Sequence[RunLease], now: Timestamp, until: Timestamp, *, grace_us: int = 0
    ) -> Renewal:
        """Extend these leases to `until`. Those that are no longer current are reported as lost. Steps of the others
        are overdue if an attempt begun under this lease has run longer than its timeout plus the grace period."""
        ...

    async def shorten_leases(self, leased: Sequence[RunLease], until: Timestamp) -> None:
        """Their session closed: these leases end no later than `until`."""
        ...

    async def release(self, leased: Sequence[RunLease], now: Timestamp) -> Effects:
        """Hand these runs back: PENDING at once, not counted as lost. Leases that are not current are ignored."""
        ...

    async def lost_before_ack(self, leased: Sequence[RunLease], now: Timestamp, untils: Sequence[Timestamp]) -> Effects:
        """Their stream broke before the worker confirmed these runs. A run that has lost no worker since its last
        progress is PENDING at once, with lost_leases 1; the leases of the others end no later than their `untils`, and
        count as lost then. Leases that are not current are ignored."""
        ...

    async def fire(self, now: Timestamp, *, end_leases: bool, limit: int, claim_cap: int = 10) -> tuple[Fired, Effects]:
        """Process what is due: wake sleeping runs (their due sleeps complete), fail runs past their deadline, cancel
        runs past their cancel limit and, if `end_leases`, take back runs whose lease ended (PENDING, lost_leases + 1;
        PAUSED with a problem of kind LOST if that reaches `claim_cap`). Without `end_leases`, runs are taken back only
        from workers known to have died."""
        ...

    async def poll(self, heartbeats: Sequence[Heartbeat], now: Timestamp, after: TypeKey | None = None) -> PendingWork:
        """Record the heartbeats and return what is pending: one statement, and at most one more if there are
        heartbeats.

        `pending` begins after `after`: a caller that passes the last type of a full result sees every type in turn."""
        ...
