"""Decides which worker gets which run. Claims runs for free slots in batches, in turn over namespaces and types; a run
that is started while a worker here waits for its type is created as leased to that worker, without a claim.

`_pending` has the types with work that a worker here could do; each mark has a generation, so that a wake-up during a
claim is not lost when that claim finds no more runs.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

from ...core import limits
from ...core.errors import Unavailable
from ...core.pages.sizes import task_bytes
from ...core.providers import Clock, Ids
from ...core.records import ClaimedRun, RunLease
from ...core.run.commands import Assignment, StartRun
from ...core.run.outcomes import Existing, Started
from ...core.states import RunStatus
from ...core.workflow_types.versions import compare_versions
from ...store.protocol import Store, TypeKey, Want
from ..commit.outages import Outages, backoff_s
from ..timing.store_clock import StoreClock
from .claimants import Claimants, serves_any
from .lease_times import LeaseTimes, ReleaseQueue
from .limit_waits import LimitWaits
from .reservations import Reservation, claimed_at_start, distribute, in_turn, share_out
from .slots import Claimant

logger = logging.getLogger("kagzi.engine")

CLAIM_RUNS = 100
_CLAIM_TIMEOUT_S = 30.0


class _Mark:
    """There may be pending runs of a type. `emptied`: by build, versions for which a claim has since found too few
    runs. Only a claim for a build finds the runs that are pinned to it."""

    __slots__ = ("emptied", "generation")

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.emptied: dict[str, set[str]] = {}

    def note_emptied(self, build_id: str, versions: tuple[str, ...]) -> None:
        self.emptied.setdefault(build_id, set()).update(versions)

    def is_emptied(self, build_id: str, versions: tuple[str, ...]) -> bool:
        emptied = self.emptied.get(build_id)
        return emptied is not None and emptied.issuperset(versions)


class Matcher:
    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        store_clock: StoreClock,
        ids: Ids,
        lease_times: LeaseTimes,
        releases: ReleaseQueue,
        outages: Outages,
        announce: Callable[[TypeKey], None],
        ask: Callable[[TypeKey], None],
    ) -> None:
        self._measurements = outages.measurements
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._ids = ids
        self._lease_times = lease_times
        self._releases = releases
        self._outages = outages
        self._announce = announce
        self._limit_waits = LimitWaits(clock, mark=self._mark_and_announce, announce=announce, ask=ask)
        self._claimants = Claimants()
        self._pending: dict[TypeKey, _Mark] = {}
        self._unannounced: set[TypeKey] = set()
        self._assigned: dict[str, Claimant] = {}
        self._round_waiters: list[asyncio.Future[None]] = []
        self._generation = 0
        self._claim_runs = CLAIM_RUNS
        self._work = asyncio.Event()
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._stopped = False

    # --- claimants ----------------------------------------------------------------------------------------------------

    def add(self, claimant: Claimant) -> None:
        """Adds it before its first claim: everything it serves counts as pending until a claim finds too few runs."""
        self.mark_all(self._claimants.add(claimant))

    def serves(self, key: TypeKey, version: str = "") -> bool:
        """Whether a connected worker takes runs of this type, and of this version if one is given."""
        groups = self._claimants.groups(key)
        return any(not version or version in group.versions[key.workflow_type] for group in groups)

    def next_round(self) -> asyncio.Future[None]:
        """Done when everything that is pending now has been claimed, as far as slots are free."""
        round_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._round_waiters.append(round_done)
        self._work.set()
        return round_done

    def remove(self, claimant: Claimant) -> None:
        for key in self._claimants.remove(claimant):
            self._pending.pop(key, None)
            self._unannounced.discard(key)
            self._limit_waits.forget(key)

    async def stop(self, timeout_s: float) -> None:
        """Stops claims and matches. Returns when the claim in progress, if any, has been handed out."""
        self._stopped = True
        self._limit_waits.stop()
        try:
            async with asyncio.timeout(timeout_s):
                await self._at_rest.wait()
        except TimeoutError:
            logger.warning(
                "a claim was in progress when the server stopped: its runs are released when their leases end"
            )

    def permit_free(self, namespace: str, workflow_type: str = "") -> None:
        """A run (of this type, if it is known) has stopped running: others may begin, here or elsewhere."""
        if workflow_type:
            self._limit_waits.freed(TypeKey(namespace, workflow_type))
        else:
            self._limit_waits.freed_in(namespace)

    def wanted_elsewhere(self, key: TypeKey) -> None:
        """Another server waits for a permit of this type; or, with an empty type, of the namespace."""
        self._limit_waits.wanted_elsewhere(key)

    def limits_changed(self, key: TypeKey) -> None:
        """An operator changed the limits of a type: all servers check it again."""
        self.mark(key)
        self._announce(key)

    def slot_free(self, claimant: Claimant) -> None:
        """It may be offered more runs than before. Every such change must be reported; that it may be offered fewer is
        noticed."""
        self._claimants.note_free(claimant)
        if self._pending:
            self._work.set()

    # --- pending work -------------------------------------------------------------------------------------------------

    def mark(self, key: TypeKey, *, announce: bool = False) -> None:
        """There may be work of this type. `announce`: it is new, so other servers are notified if no worker here can
        take it."""
        if key not in self._claimants:
            if announce:
                self._announce(key)  # a worker that begins to serve it here will look for it
            return
        self._generation += 1
        mark = self._pending.get(key)
        if mark is None:
            self._pending[key] = _Mark(self._generation)
        else:
            mark.generation = self._generation
            mark.emptied.clear()
        if announce:
            self._unannounced.add(key)
        self._work.set()

    def _mark_and_announce(self, key: TypeKey) -> None:
        self.mark(key, announce=True)

    def mark_all(self, keys: Iterable[TypeKey], *, announce: bool = False) -> None:
        for key in keys:
            self.mark(key, announce=announce)

    def mark_namespace(self, namespace: str) -> None:
        """There is new work in the namespace, of unknown type."""
        self.mark_all([key for key in self._claimants.types() if key.namespace == namespace])

    # --- sync match ---------------------------------------------------------------------------------------------------

    def assign(self, key: TypeKey, version: str, run_id: str) -> Assignment | None:
        """A free slot for a run that is about to be started, unless older work of that worker is known to wait."""
        groups = self._claimants.groups(key)
        if not groups or self._stopped or key in self._pending or self._limit_waits.is_limited(key):
            return None
        best: Claimant | None = None
        best_version = ""
        best_slots = 0
        for group in groups:
            versions = group.versions[key.workflow_type]
            offered = version or versions[0]
            newer = 1 if best is None else compare_versions(offered, best_version)
            if newer < 0 or (version and version not in versions):
                continue
            if (self._pending and serves_any(group, self._pending)) or (free := group.freest()) is None:
                continue
            if newer > 0 or free[1] > best_slots:
                best_version = offered
                best, best_slots = free
        if best is None:
            return None
        best.reserve(1)
        self._assigned[run_id] = best
        now = self._clock.now()
        return Assignment(best.worker_id, best_version, self._ids.nonce(), self._lease_times.until(now))

    @contextmanager
    def assigning(self) -> Generator[None]:
        """Use it around `assign` and the queueing of the starts. If it raises, the slots reserved inside are given
        back; otherwise the journal settles each of the starts. Nothing may be awaited inside, because the caller could
        disconnect there."""
        before = len(self._assigned)  # in order of assignment
        try:
            yield
        except BaseException:
            for run_id in list(self._assigned)[before:]:
                self.unassign(run_id)
            raise

    def unassign(self, run_id: str) -> None:
        """The start did not create a leased run."""
        claimant = self._assigned.pop(run_id, None)
        if claimant is not None:
            claimant.give_back(1)
            self.slot_free(claimant)

    def started(self, starts: Sequence[tuple[StartRun, Started | Existing]]) -> None:
        """Runs were created as leased, and this is durable: hands them over, many per message."""
        deliveries: dict[Claimant, list[ClaimedRun]] = {}
        for command, outcome in starts:
            claimant = self._assigned.pop(command.run.run_id, None)
            if claimant is None:
                continue
            if outcome.status is RunStatus.RUNNING:
                at = outcome.at if isinstance(outcome, Started) else self._clock.now()
                deliveries.setdefault(claimant, []).append(claimed_at_start(command, at))
            else:
                claimant.give_back(1)
                if outcome.status is RunStatus.PENDING:
                    self._limit_waits.limited(TypeKey(command.run.namespace, command.workflow_type))
                self.slot_free(claimant)
        for claimant, claimed in deliveries.items():
            self._hand_over(claimant, claimed)

    # --- claims -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        self._work.set()  # if the task died before, there may be work
        failures = 0
        while True:
            await self._work.wait()
            self._work.clear()
            while not self._stopped and (reservations := self._plan()):
                try:
                    await self._claim(reservations)
                except (Unavailable, TimeoutError) as error:
                    self._outages.seen(error)
                    failures += 1
                    await asyncio.sleep(backoff_s(failures))
                else:
                    failures = 0
            self._announce_leftovers()
            self._end_round()

    def _plan(self) -> list[Reservation]:
        """Reserves free slots of ready claimants for pending types, in turn."""
        ready = [(key, self._ready(key)) for key in in_turn(self._pending)]
        return share_out([(key, claimants) for key, claimants in ready if claimants], self._claim_runs)

    def _ready(self, key: TypeKey) -> list[Claimant]:
        """Claimants of the type with free slots for which a claim may find runs, most slots first: as many as a claim
        can give a run to."""
        mark, workflow_type = self._pending[key], key.workflow_type
        groups = [
            group
            for group in self._claimants.groups(key)
            if not mark.is_emptied(group.build_id, group.versions[workflow_type])
        ]
        ready = [claimant for group in groups for claimant in group.most_free(self._claim_runs)]
        if len(groups) > 1:
            ready.sort(key=lambda claimant: claimant.offerable(), reverse=True)
        return ready[: self._claim_runs]

    async def _claim(self, reservations: list[Reservation]) -> None:
        """Gives back unused slots, whatever happens."""
        for reservation in reservations:
            reservation.left = reservation.count
        self._at_rest.clear()
        try:
            generations = {reservation.key: self._pending[reservation.key].generation for reservation in reservations}
            wants = [
                Want(
                    reservation.key.namespace,
                    reservation.key.workflow_type,
                    reservation.claimant.versions[reservation.key.workflow_type],
                    reservation.claimant.worker_id,
                    reservation.count,
                    reservation.claimant.build_id,
                )
                for reservation in reservations
            ]
            for key in generations:
                self._pending[key] = self._pending.pop(key)  # moves to the end of the turn
            await self._store_clock.confirm()
            now = self._clock.now()
            began_s = asyncio.get_running_loop().time()
            async with asyncio.timeout(_CLAIM_TIMEOUT_S):
                until, old_before = self._lease_times.until(now), self._lease_times.old_before(now)
                claimed = await self._store.claim(wants, self._ids.nonce(), now, until, old_before=old_before)
            self._outages.over()
            self._measurements.claim(asyncio.get_running_loop().time() - began_s, len(claimed.runs))
            self._note_sizes(claimed.runs)
            deliveries, unmatched = distribute(reservations, claimed.runs)
            for claimant, runs in deliveries.items():
                self._hand_over(claimant, runs)
            if unmatched:
                logger.error("%d runs were claimed without a free slot and are handed back", len(unmatched))
                self._releases.add(unmatched)
        finally:
            self._at_rest.set()
            for reservation in reservations:
                if reservation.left:
                    reservation.claimant.give_back(reservation.left)
                    self._claimants.note_free(reservation.claimant)
        self._note_emptied(reservations, generations)
        self._limit_waits.learn(generations, claimed)

    def _note_sizes(self, claimed: Sequence[ClaimedRun]) -> None:
        """A claim reads the input and history of each run: if they are large, the next claim is for fewer runs."""
        if claimed:
            size = sum(map(task_bytes, claimed))
            self._claim_runs = min(CLAIM_RUNS, max(1, limits.CLAIM_BYTES * len(claimed) // size))

    def _note_emptied(self, reservations: list[Reservation], generations: dict[TypeKey, int]) -> None:
        """A claim that found too few runs has emptied its type, unless it was marked again meanwhile."""
        for reservation in reservations:
            mark = self._pending.get(reservation.key)
            if reservation.left == 0 or mark is None or mark.generation != generations[reservation.key]:
                continue
            workflow_type, claimant = reservation.key.workflow_type, reservation.claimant
            mark.note_emptied(claimant.build_id, claimant.versions[workflow_type])
            if all(
                mark.is_emptied(group.build_id, group.versions[workflow_type])
                for group in self._claimants.groups(reservation.key)
            ):
                del self._pending[reservation.key]
                self._unannounced.discard(reservation.key)

    def _announce_leftovers(self) -> None:
        """New work here that found no free slot: another server may have one."""
        for key in self._unannounced:
            self._announce(key)
        self._unannounced.clear()

    def _end_round(self) -> None:
        for round_done in self._round_waiters:
            if not round_done.done():
                round_done.set_result(None)
        self._round_waiters.clear()

    def _hand_over(self, claimant: Claimant, claimed: Sequence[ClaimedRun]) -> None:
        self._measurements.claimed(claimed)
        if not claimant.give(claimed):
            self._releases.add(RunLease(run.run, run.lease) for run in claimed)
