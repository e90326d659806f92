"""Who gets which run. Free slots are claimed for in batches, in turn over namespaces and types; and a run that is started while
a worker here waits for its type is born in that worker's hands, without a claim.

`_pending` knows the types with work that somebody here could do; each mark has a generation, so that a wake-up which arrives
during a claim is not mistaken for what that claim has emptied.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

from ...core import limits
from ...core.errors import Unavailable
from ...core.pages.sizes import task_bytes
from ...core.providers import Clock, Ids
from ...core.records import ClaimedRun, Held
from ...core.run.commands import Assignment, StartRun
from ...core.run.outcomes import Existing, Started
from ...core.states import RunStatus
from ...core.workflow_types.versions import compare_versions
from ...store.protocol import Store, TypeKey, Want
from ..commit.outages import Outages, backoff_s
from ..timing.store_clock import StoreClock
from .lease_times import LeaseTimes, ReleaseQueue
from .limit_waits import HeldBack
from .reservations import Grant, born, distribute, in_turn, share_out
from .slots import Taker

logger = logging.getLogger("kagzi.engine")

CLAIM_RUNS = 100
_CLAIM_TIMEOUT_S = 30.0


class _Mark:
    """There may be pending runs of a type. `emptied`: versions for which a claim has come back short since."""

    __slots__ = ("emptied", "generation")

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.emptied: set[str] = set()


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
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._ids = ids
        self._lease_times = lease_times
        self._releases = releases
        self._outages = outages
        self._announce = announce
        self._held_back = HeldBack(clock, mark=self._look_at, announce=announce, ask=ask)
        self._takers: dict[TypeKey, list[Taker]] = {}
        self._pending: dict[TypeKey, _Mark] = {}
        self._unannounced: set[TypeKey] = set()
        self._assigned: dict[str, Taker] = {}
        self._looks: list[asyncio.Future[None]] = []
        self._generation = 0
        self._claim_runs = CLAIM_RUNS
        self._work = asyncio.Event()
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._stopped = False

    # --- who takes -------------------------------------------------------------------------------------------------------

    def add(self, taker: Taker) -> None:
        """Subscribed first, then looked: everything it serves counts as pending until a claim has come back short."""
        for workflow_type in taker.versions:
            key = TypeKey(taker.namespace, workflow_type)
            self._takers.setdefault(key, []).append(taker)
            self.mark(key)

    def serves(self, key: TypeKey, version: str = "") -> bool:
        """Whether somebody connected here takes runs of this type; of this version, if one is given."""
        takers = self._takers.get(key, ())
        return any(not version or version in taker.versions[key.workflow_type] for taker in takers)

    def next_look(self) -> asyncio.Future[None]:
        """Done when everything that counts as pending now has been claimed for, as far as slots go."""
        looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._looks.append(looked)
        self._work.set()
        return looked

    def remove(self, taker: Taker) -> None:
        for workflow_type in taker.versions:
            key = TypeKey(taker.namespace, workflow_type)
            takers = self._takers.get(key, [])
            if taker in takers:
                takers.remove(taker)
            if not takers:
                self._takers.pop(key, None)
                self._pending.pop(key, None)
                self._unannounced.discard(key)
                self._held_back.forget(key)

    async def stop(self, timeout_s: float) -> None:
        """No more claims and matches. Returns when the claim that is under way, if any, has been handed out."""
        self._stopped = True
        self._held_back.stop()
        try:
            async with asyncio.timeout(timeout_s):
                await self._at_rest.wait()
        except TimeoutError:
            logger.warning("a claim was in progress when the server stopped: its runs are released when their leases end")

    def permit_free(self, namespace: str, workflow_type: str = "") -> None:
        """A run, of this type if it is known, runs no more: others of it may begin, here or elsewhere."""
        if workflow_type:
            self._held_back.freed(TypeKey(namespace, workflow_type))
        else:
            self._held_back.freed_in(namespace)

    def wanted_elsewhere(self, key: TypeKey) -> None:
        """Another server waits for a permit of this type; or, with an empty one, of the namespace."""
        self._held_back.heard(key)

    def limits_changed(self, key: TypeKey) -> None:
        """What an operator says about a type: everybody looks at it anew."""
        self.mark(key)
        self._announce(key)

    def slot_free(self) -> None:
        if self._pending:
            self._work.set()

    # --- what there is -----------------------------------------------------------------------------------------------------

    def mark(self, key: TypeKey, *, announce: bool = False) -> None:
        """There may be work of this type. `announce`: it came up here, so other servers are told if nobody here can take it."""
        if key not in self._takers:
            if announce:
                self._announce(key)  # whoever begins to serve it here will look
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

    def _look_at(self, key: TypeKey) -> None:
        self.mark(key, announce=True)

    def mark_all(self, keys: Iterable[TypeKey], *, announce: bool = False) -> None:
        for key in keys:
            self.mark(key, announce=announce)

    def mark_namespace(self, namespace: str) -> None:
        """Work has come up there, of a type that is not known."""
        self.mark_all([key for key in self._takers if key.namespace == namespace])

    # --- sync match --------------------------------------------------------------------------------------------------------

    def assign(self, key: TypeKey, version: str, run_id: str) -> Assignment | None:
        """A free slot for a run that is about to be started, unless older work of that worker is known to wait."""
        takers = self._takers.get(key)
        if takers is None or self._stopped or key in self._pending or self._held_back.is_limited(key):
            return None
        best: Taker | None = None
        best_version = ""
        best_slots = 0
        for taker in takers:
            versions = taker.versions[key.workflow_type]
            slots = taker.offerable()
            if slots <= 0 or (version and version not in versions) or (self._pending and self._has_older(taker)):
                continue
            offered = version or versions[0]
            newer = 1 if best is None else compare_versions(offered, best_version)
            if newer > 0 or (newer == 0 and slots > best_slots):
                best, best_version, best_slots = taker, offered, slots
        if best is None:
            return None
        best.reserve(1)
        self._assigned[run_id] = best
        now = self._clock.now()
        return Assignment(best.worker_id, best_version, self._ids.nonce(), self._lease_times.until(now))

    @contextmanager
    def assigning(self) -> Generator[None]:
        """Around `assign` and the queueing of the starts. Slots reserved inside are given back if it raises; if it does not, the
        journal has the starts and settles every one of them. Nothing may be awaited inside: there a caller could hang up."""
        before = len(self._assigned)  # in the order in which they came
        try:
            yield
        except BaseException:
            for run_id in list(self._assigned)[before:]:
                self.unassign(run_id)
            raise

    def unassign(self, run_id: str) -> None:
        """Nothing came of the start."""
        taker = self._assigned.pop(run_id, None)
        if taker is not None:
            taker.give_back(1)
            self.slot_free()

    def started(self, starts: Sequence[tuple[StartRun, Started | Existing]]) -> None:
        """Runs were born leased, and it is durable: hand them over, many to a message."""
        parcels: dict[Taker, list[ClaimedRun]] = {}
        for command, outcome in starts:
            taker = self._assigned.pop(command.run.run_id, None)
            if taker is None:
                continue
            if outcome.status is RunStatus.RUNNING:
                at = outcome.at if isinstance(outcome, Started) else self._clock.now()
                parcels.setdefault(taker, []).append(born(command, at))
            else:
                taker.give_back(1)
                if outcome.status is RunStatus.PENDING:
                    self._held_back.limited(TypeKey(command.run.namespace, command.workflow_type))
                self.slot_free()
        for taker, claimed in parcels.items():
            self._hand_over(taker, claimed)

    # --- claims ------------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        self._work.set()  # if it died before, there may be something to do
        failures = 0
        while True:
            await self._work.wait()
            self._work.clear()
            while not self._stopped and (grants := self._plan()):
                try:
                    await self._claim(grants)
                except (Unavailable, TimeoutError) as error:
                    self._outages.seen(error)
                    failures += 1
                    await asyncio.sleep(backoff_s(failures))
                else:
                    failures = 0
            self._announce_leftovers()
            self._all_looked_at()

    def _plan(self) -> list[Grant]:
        """Reserve free slots of those who are ready for what is pending, in turn."""
        ready = [(key, self._ready(key)) for key in in_turn(self._pending)]
        return share_out([(key, takers) for key, takers in ready if takers], self._claim_runs)

    def _ready(self, key: TypeKey) -> list[Taker]:
        """Takers of the type with free slots and hope of a run, most slots first."""
        emptied = self._pending[key].emptied
        ready = [
            taker
            for taker in self._takers[key]
            if taker.offerable() > 0 and not emptied.issuperset(taker.versions[key.workflow_type])
        ]
        if len(ready) > 1:
            ready.sort(key=lambda taker: taker.offerable(), reverse=True)
        return ready

    async def _claim(self, grants: list[Grant]) -> None:
        """Whatever happens in here, slots that no run came for are given back."""
        for grant in grants:
            grant.left = grant.count
        self._at_rest.clear()
        try:
            generations = {grant.key: self._pending[grant.key].generation for grant in grants}
            wants = [
                Want(
                    grant.key.namespace,
                    grant.key.workflow_type,
                    grant.taker.versions[grant.key.workflow_type],
                    grant.taker.worker_id,
                    grant.count,
                )
                for grant in grants
            ]
            for key in generations:
                self._pending[key] = self._pending.pop(key)  # asked for last
            await self._store_clock.confirm()
            now = self._clock.now()
            async with asyncio.timeout(_CLAIM_TIMEOUT_S):
                claimed = await self._store.claim(wants, self._ids.nonce(), now, self._lease_times.until(now))
            self._outages.over()
            self._note_sizes(claimed.runs)
            parcels, strays = distribute(grants, claimed.runs)
            for taker, runs in parcels.items():
                self._hand_over(taker, runs)
            if strays:
                logger.error("%d runs were claimed without a free slot and are handed back", len(strays))
                self._releases.add(strays)
        finally:
            self._at_rest.set()
            for grant in grants:
                if grant.left:
                    grant.taker.give_back(grant.left)
        self._note_emptied(grants, generations)
        self._held_back.learn(generations, claimed)

    def _note_sizes(self, claimed: Sequence[ClaimedRun]) -> None:
        """A claim reads input and history of each run: with large ones the next claim is for fewer."""
        if claimed:
            size = sum(map(task_bytes, claimed))
            self._claim_runs = min(CLAIM_RUNS, max(1, limits.CLAIM_BYTES * len(claimed) // size))

    def _note_emptied(self, grants: list[Grant], generations: dict[TypeKey, int]) -> None:
        """A claim that came back short has emptied its type, unless somebody marked it meanwhile."""
        for grant in grants:
            mark = self._pending.get(grant.key)
            if grant.left == 0 or mark is None or mark.generation != generations[grant.key]:
                continue
            mark.emptied.update(grant.taker.versions[grant.key.workflow_type])
            versions = (taker.versions[grant.key.workflow_type] for taker in self._takers[grant.key])
            if all(mark.emptied.issuperset(served) for served in versions):
                del self._pending[grant.key]
                self._unannounced.discard(grant.key)

    def _announce_leftovers(self) -> None:
        """Work that came up here and found no free slot: somebody elsewhere may have one."""
        for key in self._unannounced:
            self._announce(key)
        self._unannounced.clear()

    def _all_looked_at(self) -> None:
        for looked in self._looks:
            if not looked.done():
                looked.set_result(None)
        self._looks.clear()

    def _hand_over(self, taker: Taker, claimed: Sequence[ClaimedRun]) -> None:
        if not taker.give(claimed):
            self._releases.add(Held(run.run, run.lease) for run in claimed)

    def _has_older(self, taker: Taker) -> bool:
        namespace, pending = taker.namespace, self._pending
        return any(TypeKey(namespace, workflow_type) in pending for workflow_type in taker.versions)
