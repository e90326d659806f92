"""The engine, put together: what decides about runs, on top of a store, for whoever holds its doors open."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from ..core.errors import InternalError
from ..core.limits import Settings
from ..core.providers import Clock, Ids, Rng
from ..core.records import RunKey
from ..core.times import Timestamp
from ..store.protocol import Bus, Cascaded, Fired, Horizon, NullBus, Poke, Store, TypeKey, Wake
from .background.cascade import Cascade
from .background.housekeeping import Chore, Housekeeping
from .background.namespace_chores import CHORE as NAMESPACE_CHORE
from .background.namespace_chores import NamespaceChores
from .background.retention import Retention
from .background.supervisor import Supervisor
from .checks.operations import Operations
from .commit.effects import Effects
from .commit.journal import Journal
from .commit.notifications import News
from .commit.outages import Outages
from .commit.stuck_runs import StuckRuns
from .commit.wakeups import Wakeups
from .commit.write_queues import Lane
from .matching.heartbeats import Beats
from .matching.lease_registry import Holders
from .matching.leases import Leases
from .matching.liveness import Presence
from .matching.matcher import Matcher
from .matching.overdue import OverdueSteps
from .matching.sessions import Sessions
from .services.bulk import Bulk
from .services.control import Control
from .services.explain.explanations import Explanations
from .services.namespaces import Namespaces
from .services.pinning import Pinning
from .services.queues import Queues
from .services.runs import Runs
from .services.schedules import Schedules
from .services.served import ServedTypes
from .services.stats import Stats
from .services.steps import Steps
from .services.tasks import Tasks
from .services.transfers import Transfers
from .services.versions import Versions
from .services.waits import WaitHub
from .services.watching import Watching
from .services.workers import Workers
from .timing.schedule_clock import ScheduleClock
from .timing.store_clock import StoreClock
from .timing.timers import Timers

logger = logging.getLogger("kagzi.engine")

STOP_TIMEOUT_S = 5.0


class Engine:
    """The store is opened and closed by whoever hands it in; the bus is opened and closed here."""

    def __init__(
        self, store: Store, bus: Bus, *, clock: Clock, ids: Ids, rng: Rng, settings: Settings, server_id: str
    ) -> None:
        self.server_id = server_id
        self._bus = bus
        self._supervisor = Supervisor()
        self._outages = Outages(clock)
        self.store_problem = self._outages.problem
        self._store_clock = StoreClock(
            store, clock=clock, settings=settings, alone=isinstance(bus, NullBus), on_step=self._clock_stepped
        )
        self._leases = Leases(
            store, clock=clock, store_clock=self._store_clock, settings=settings, outages=self._outages
        )
        self._holders = Holders()
        self._wakeups = Wakeups(bus)
        self._waits = WaitHub(store)
        self.watching = Watching(store)
        self._presence = Presence(settings, alone=isinstance(bus, NullBus))
        self._beats = Beats(clock, self._presence.refresh_s)
        self._journal = Journal(
            store,
            clock=clock,
            store_clock=self._store_clock,
            terms=self._leases.terms,
            outages=self._outages,
            stuck=StuckRuns(ids, rounds=settings.claim_cap),
            lane=Lane(total_bytes=settings.journal_total_bytes),
        )
        self._matcher = Matcher(
            store,
            clock=clock,
            store_clock=self._store_clock,
            ids=ids,
            leases=self._leases,
            outages=self._outages,
            announce=self._wakeups.pending,
            ask=self._wakeups.held,
        )
        self._timers = Timers(
            store,
            clock=clock,
            store_clock=self._store_clock,
            rng=rng,
            settings=settings,
            leases=self._leases,
            beats=self._beats,
            outages=self._outages,
            on_fired=self._fired,
            on_look=self._looked,
            alone=isinstance(bus, NullBus),
        )
        self._open_effects(store, clock, settings)
        self.housekeeping = Housekeeping(store, clock=clock, rng=rng, settings=settings, alone=isinstance(bus, NullBus))
        self.housekeeping.add(Chore(name="retention", work=Retention(store, settings).work, shared=True))
        self._open_doors(store, clock, ids, settings)
        self._running = False
        self._stopping: asyncio.Task[None] | None = None

    def _open_effects(self, store: Store, clock: Clock, settings: Settings) -> None:
        """What follows from a commit."""
        self._cascade = Cascade(
            store, clock=clock, settings=settings, outages=self._outages, on_cascaded=self._cascaded
        )
        self._news = News(
            holders=self._holders,
            matcher=self._matcher,
            timers=self._timers,
            waits=self._waits,
            wakeups=self._wakeups,
            on_touched=self.watching.touched,
            on_children=self._cascade.wanted,
        )
        self._effects = Effects(
            clock=clock,
            holders=self._holders,
            matcher=self._matcher,
            timers=self._timers,
            waits=self._waits,
            wakeups=self._wakeups,
            news=self._news,
            on_recorded=self.watching.recorded,
        )
        self._journal.effects = self._effects.apply
        self._leases.on_woken = self._woken
        self._leases.on_overdue = OverdueSteps(journal=self._journal, news=self._news).take

    def _open_doors(self, store: Store, clock: Clock, ids: Ids, settings: Settings) -> None:
        namespaces = self._open_namespaces(store, clock, settings)
        operations = Operations(settings.payload_bytes, clock=clock, ids=ids)
        alone = isinstance(self._bus, NullBus)
        self.versions = Versions(
            store, clock=clock, outages=self._outages, alone=alone, alive_since=self._presence.alive_since
        )
        self.versions.on_change = self._versions_changed
        pinning = Pinning(store, versions=self.versions, holders=self._holders)
        self.steps = Steps(store)
        self._open_workers(store, clock, ids, namespaces)
        self.sessions = Sessions(
            clock=clock,
            settings=settings,
            journal=self._journal,
            matcher=self._matcher,
            holders=self._holders,
            leases=self._leases,
            timers=self._timers,
            beats=self._beats,
            workers=self.workers,
            operations=operations,
            pinning=pinning,
        )
        self.tasks = Tasks(
            store,
            journal=self._journal,
            matcher=self._matcher,
            holders=self._holders,
            leases=self._leases,
            workers=self.workers,
            operations=operations,
            pinning=pinning,
        )
        self.runs = Runs(
            store,
            clock=clock,
            ids=ids,
            settings=settings,
            journal=self._journal,
            matcher=self._matcher,
            namespaces=namespaces,
            waits=self._waits,
            versions=self.versions,
        )
        self.control = Control(store, clock=clock, ids=ids, settings=settings, news=self._news)
        self.bulk = Bulk(store, clock=clock, ids=ids, control=self.control, server_id=self.server_id)
        self.transfers = Transfers(
            store, clock=clock, ids=ids, settings=settings, namespaces=namespaces, news=self._news, timers=self._timers
        )
        self.housekeeping.add(Chore(name="bulk-operations", work=self.bulk.forget, every=60, shared=True))
        self.housekeeping.add(Chore(name="imports", work=self.transfers.sweep, every=10, shared=True))
        self.queues = Queues(store, clock=clock, matcher=self._matcher, namespaces=namespaces, presence=self._presence)
        self._open_schedules(store, clock, ids, settings, namespaces)
        self.served = ServedTypes(
            store, clock=clock, presence=self._presence, matcher=self._matcher, versions=self.versions
        )
        self._effects.on_unserved_child = self.served.child_started
        self.explanations = Explanations(
            store, clock=clock, presence=self._presence, served=self.served, sessions=self.sessions
        )

    def _open_namespaces(self, store: Store, clock: Clock, settings: Settings) -> Namespaces:
        self.namespaces = Namespaces(store, settings, clock)
        self.namespaces.on_deleted = partial(self.housekeeping.soon, NAMESPACE_CHORE)
        self.housekeeping.add(Chore(name=NAMESPACE_CHORE, work=NamespaceChores(store).work, every=1))
        self.stats = Stats(store, clock)
        self.housekeeping.add(Chore(name="figures", work=self.stats.roll_up, every=1))
        self.housekeeping.add(Chore(name="old figures", work=self.stats.forget, every=60, shared=True))
        return self.namespaces

    def _open_workers(self, store: Store, clock: Clock, ids: Ids, namespaces: Namespaces) -> None:
        self.workers = Workers(
            store,
            clock=clock,
            ids=ids,
            leases=self._leases,
            beats=self._beats,
            namespaces=namespaces,
            versions=self.versions,
            presence=self._presence,
        )
        self.housekeeping.add(Chore(name="lost workers", work=self.workers.sweep, every=1))
        self.housekeeping.add(Chore(name="old workers", work=self.workers.forget_old, every=60, shared=True))
        self.workers.on_woken = self._woken
        self.workers.on_drain = self._drain_worker
        self.workers.on_leave = self._worker_leaves

    def _open_schedules(self, store: Store, clock: Clock, ids: Ids, settings: Settings, namespaces: Namespaces) -> None:
        self._schedule_clock = ScheduleClock(
            store,
            clock=clock,
            store_clock=self._store_clock,
            ids=ids,
            settings=settings,
            versions=self.versions,
            news=self._news,
            outages=self._outages,
            apply=self._effects.apply,
        )
        self.schedules = Schedules(
            store,
            clock=clock,
            ids=ids,
            settings=settings,
            namespaces=namespaces,
            schedule_clock=self._schedule_clock,
        )
        self.housekeeping.add(Chore(name="old fires", work=self.schedules.forget_old_fires, every=60, shared=True))

    # --- life -------------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._running:
            return
        await self._store_clock.start()
        self._leases.start()
        await self._bus.open(self._on_wake)
        self._running = True
        for name, work in (
            ("journal", self._journal.run),
            ("matcher", self._matcher.run),
            ("timers", self._timers.run),
            ("leases", self._leases.run),
            ("waits", self._waits.run),
            ("cascade", self._cascade.run),
            ("wakeups", self._wakeups.run),
            ("schedules", self._schedule_clock.run),
            ("watching", self.watching.run),
            ("housekeeping", self.housekeeping.run),
            ("bulk", self.bulk.run),
            ("served types", self.served.run),
        ):
            self._supervisor.watch(name, work)

    async def stop(self) -> None:
        """Give no more work, write what is there, hand back what has not arrived. Any number of callers may ask."""
        if not self._running:
            return
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop(), name="kagzi-stop")
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        self.sessions.announce_stop()
        self.tasks.stop()
        self.versions.stop()
        await self._matcher.stop(STOP_TIMEOUT_S)
        await self._journal.stop(STOP_TIMEOUT_S)
        await self.sessions.stop()
        await self._leases.flush(STOP_TIMEOUT_S)
        await self._wakeups.flush()
        await self._supervisor.stop()
        self._journal.abandon()
        await self._bus.close()
        self._running = False

    def health(self) -> str | None:
        """None: all is well. Otherwise what is wrong, in words."""
        if self._supervisor.failure is not None:
            return "a background task died for good; the server's log says why"
        if not self._running:
            return "the engine is not running"
        if self._stopping is not None:
            return "the engine is stopping"
        return self._outages.reason

    async def wait_failed(self) -> BaseException:
        """Returns when a background task has died beyond restarting: the server should stop."""
        return await self._supervisor.wait_failed()

    # --- what happens elsewhere ---------------------------------------------------------------------------------------------------

    def _on_wake(self, wake: Wake) -> None:
        self._matcher.mark_all(wake.pending)
        if wake.ended_runs:
            self._waits.look(RunKey(*ended) for ended in wake.ended_runs)
        for namespace in wake.ended:
            self._waits.look_in(namespace)
        if wake.pokes:
            self.sessions.poked(wake.pokes)
            for poke in wake.pokes:
                if poke.kind == "versions":
                    self.versions.forget(TypeKey(poke.namespace, poke.run_id))
                elif poke.kind == "permits":
                    self._matcher.wanted_elsewhere(TypeKey(poke.namespace, poke.run_id))
        if wake.look_again:
            self.versions.forget_all()
            self._timers.look_soon()
            self._waits.look_everywhere()
            self.sessions.look_again()

    def _clock_stepped(self) -> None:
        self._leases.clock_stepped()
        self._timers.clock_stepped()
        self._schedule_clock.clock_stepped()

    def _woken(self, woken: Sequence[TypeKey]) -> None:
        self._matcher.mark_all(woken, announce=True)
        for key in woken:
            self._matcher.permit_free(*key)  # who was handed back gave up its permit

    def _fired(self, fired: Fired) -> None:
        self._woken(fired.woken)
        self.sessions.lost_leases(fired.lost)
        self.watching.touched([held.run.run_id for held in fired.lost] + [end.run.run_id for end in fired.ended])
        for end in fired.ended:
            self._wakeups.ended(end.run)
            self._matcher.permit_free(end.run.namespace)
            self.sessions.run_ended(end.run.run_id)
        if fired.ended:
            self._waits.tell(fired.ended)
        self._news.stirred(fired.stirred)
        if fired.has_children:
            self._cascade.wanted()

    def _looked(self, horizon: Horizon) -> None:
        self._matcher.mark_all(horizon.pending)
        self.served.noticed_pending(horizon.pending)
        self._waits.look_again()
        self._schedule_clock.hear(horizon.next_schedule_at)
        for namespace, worker_id in horizon.draining:
            self.sessions.told_to_drain(namespace, worker_id)
        if horizon.cascade:
            self._cascade.wanted()
        if horizon.bulk:
            self.bulk.wanted()

    def _cascaded(self, cascaded: Cascaded, cancel_by: Timestamp) -> None:
        for cancelled in cascaded.cancelled:
            if cancelled.run is None:
                raise InternalError("the store did not say which child was cancelled")
            self._news.cancelled(cancelled.run, cancelled, cancelled.reason, cancel_by)

    def _drain_worker(self, namespace: str, worker_id: str) -> None:
        if (session := self.sessions.get(namespace, worker_id)) is not None:
            session.drain()
        else:
            self._wakeups.poke(Poke(worker_id, namespace, "", "drain"))

    def _versions_changed(self, key: TypeKey) -> None:
        self._wakeups.poke(Poke("", key.namespace, key.workflow_type, "versions"))

    def _worker_leaves(self, namespace: str, worker_id: str) -> None:
        session = self.sessions.get(namespace, worker_id)
        if session is not None:
            session.drain()
            session.lost_leases([holding.held for holding in session.held.values()], "the worker was deregistered")
