"""What happens all the time: batches of commands, claims, leases, timers."""

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
    """An accepted write sets the lease to `until` if it ends before `renew_before`; it never adds to it."""

    until: Timestamp
    renew_before: Timestamp


class Want(msgspec.Struct, frozen=True, gc=False):
    """A worker's free slots for one type. `versions`: what it serves, best first, to which it pins unpinned runs.
    `build_id`: of its code, for runs that are pinned to one."""

    namespace: str
    workflow_type: str
    versions: tuple[str, ...]
    worker_id: str
    limit: int
    build_id: str = ""


class Claimed(msgspec.Struct, frozen=True):
    """What a claim came to, and why there was not more.

    `waiting`: their runs wait for a permit; with an empty type: for one of the namespace. `again_at`: when their rate
    allows the next start. `more`: there may be runs that were not reached this time.
    """

    runs: Sequence[ClaimedRun] = ()
    limited: frozenset[TypeKey] = frozenset()  # types whose limits were heeded
    waiting: frozenset[TypeKey] = frozenset()
    again_at: Mapping[TypeKey, Timestamp] = {}
    more: frozenset[TypeKey] = frozenset()


class Overdue(msgspec.Struct, frozen=True):
    """An attempt of a step that its holder should have reported by now."""

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
    """A run whose worker is gone. `times`: how many it has lost in a row; `problem`: it is quarantined, for this."""

    leased: RunLease
    workflow_id: str
    workflow_type: str
    times: int
    problem: ErrorDetail | None = None


class Fired(msgspec.Struct, frozen=True):
    """What the clock did, besides its effects."""

    expired: tuple[ExpiredLease, ...] = ()  # leases that ran out
    more: bool = False  # the limit was reached: call again


class PendingWork(msgspec.Struct, frozen=True):
    """What is ahead. `next_due_at`: the earliest sleep, deadline, cancel limit or lease end of an open run."""

    store_now: Timestamp  # the store's own clock
    next_due_at: Timestamp | None
    pending: tuple[TypeKey, ...]  # types with runs to claim, in a fixed order, at most POLL_TYPES
    cascade: bool = False  # ended or cancelled runs have children to be cancelled
    draining: tuple[
        tuple[str, str], ...
    ] = ()  # of those who beat: namespace and id of who is to drain, if others may say so
    bulk: bool = False  # there are operations on many runs that have not finished
    next_schedule_at: Timestamp | None = None  # when the next schedule is due


class Heartbeat(msgspec.Struct, frozen=True, gc=False):
    worker_id: str
    active_count: int
    completed_delta: int
    failed_delta: int
    at: Timestamp
    namespace: str = DEFAULT_NAMESPACE


class HotVerbs(Protocol):
    """Hot verbs take a batch and answer in order."""

    async def write(
        self, batch: Sequence[Command], now: Timestamp, terms: LeaseTerms
    ) -> tuple[Sequence[Outcome], Effects]:
        """Apply commands; one outcome each, in order, and the effects on other runs.

        Commands of one run take effect in the order given. A refused command leaves its neighbours untouched. Each
        command of a run takes the next seq of that run, in order (seqs of refused and repeated ones may be burnt: gaps
        are legal). Durable when it returns; the whole batch costs at most 3 transactions when no run appears in it with
        steps that repeat.
        """
        ...

    async def claim(
        self, wants: Sequence[Want], nonce: int, now: Timestamp, until: Timestamp, *, old_before: Timestamp = 0
    ) -> Claimed:
        """Lease PENDING runs to the workers that want them, highest priority first, then longest ready.

        Of a type with limits per key the keys are served in turn. Limits hold exactly, however many servers claim: runs
        are counted and taken under the lock of the type. Runs of a paused type are not taken.

        A run pinned to a version goes only to a want that has it; an unpinned one is pinned to the want's first. A run
        pinned to a build (`pinned_build`) goes only to a want of that build. Raises the lease counter; never takes a
        run that is locked, past its deadline, or beyond its namespace's running_runs_limit. Input and first history
        page are read after the locks are held.

        The first claim of a run that was created before `old_before`, or that has `OWN_TRACE_SEQ` records, is noted in
        it: from that one on, each has a trace of its own.
        """
        ...

    async def history(self, run: RunKey, lease: Lease, after: int, known_seq: int = 0) -> HistoryPage | None:
        """The page of steps begun after `after`; None unless `lease` is the run's current one.

        Results up to `known_seq` come without output, error and details. A page is as full as what it holds is large.
        """
        ...

    async def renew(
        self, leased: Sequence[RunLease], now: Timestamp, until: Timestamp, *, grace_us: int = 0
    ) -> Renewal:
        """Set these leases to `until`. Those that are no longer current are reported lost. Steps of the others that run
        for more than their timeout and the grace, in an attempt begun under this lease, are overdue."""
        ...

    async def shorten_leases(self, leased: Sequence[RunLease], until: Timestamp) -> None:
        """Their session closed: these leases end at `until` at the latest."""
        ...

    async def release(self, leased: Sequence[RunLease], now: Timestamp) -> Effects:
        """Hand these runs back: PENDING at once, uncounted. Stale ones are passed over."""
        ...

    async def lost_before_ack(self, leased: Sequence[RunLease], now: Timestamp, untils: Sequence[Timestamp]) -> Effects:
        """Their stream broke before they were known to have arrived. A run that has lost no holder since it last got on
        is PENDING at once, with lost_leases 1; the leases of the others end at their `untils` at the latest, and are
        counted then. Stale ones are passed over."""
        ...

    async def fire(self, now: Timestamp, *, end_leases: bool, limit: int, claim_cap: int = 10) -> tuple[Fired, Effects]:
        """Do what is due: wake sleepers (their due sleeps complete), fail runs past their deadline, cancel runs past
        their cancel limit, and, if `end_leases`, take runs from holders whose lease ended (PENDING, lost_leases + 1;
        PAUSED with a problem of kind LOST if that makes `claim_cap`). Without `end_leases` that is done to holders only
        that have died."""
        ...

    async def poll(self, heartbeats: Sequence[Heartbeat], now: Timestamp, after: TypeKey | None = None) -> PendingWork:
        """One statement when there are no heartbeats and at most one more when there are: what is ahead, and note
        the heartbeats.

        `pending` begins behind `after`: whoever hands in the last of a full answer has seen every type after a
        round."""
        ...
