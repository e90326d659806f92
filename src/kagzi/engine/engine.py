"""Assembles the engine: everything that decides about runs, on top of a store."""

import asyncio
from functools import partial

from ..core.effects import CHILDREN_DUE
from ..core.limits import Settings
from ..core.providers import Clock, Ids, Rng
from ..core.records import RunKey
from ..store.protocol import Bus, NullBus, PendingWork, Store, TypeKey, Wake
from .background.cascade import Cascade
from .background.chores import Serviced, chores_of
from .background.housekeeping import Housekeeping
from .background.namespace_chores import CHORE as NAMESPACE_CHORE
from .background.supervisor import Supervisor
from .checks.operations import Operations
from .checks.schemas import Schemas
from .commit.dispatcher import Dispatcher
from .commit.journal import Journal
from .commit.outages import Outages
from .commit.stuck_runs import StuckRuns
from .commit.wakeups import Wakeups
from .commit.write_queues import WriteQueues
from .live.live_lists import LiveLists
from .live.watching import Watching
from .matching.heartbeats import Heartbeats
from .matching.lease_registry import LeaseRegistry
from .matching.lease_times import LeaseTimes, ReleaseQueue
from .matching.leases import Leases
from .matching.liveness import Liveness
from .matching.matcher import Matcher
from .matching.overdue import OverdueSteps
from .matching.session import Session
from .matching.sessions import Sessions
from .measurements.gauges import add_gauges
from .measurements.measurements import Measurements
from .services.bulk import Bulk
from .services.control import Control
from .services.explain.explanations import Explanations
from .services.keys.audit import Audit
from .services.keys.keys import Keys
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
from .services.workers import Workers
from .timing.due_times import DueTimes
from .timing.schedule_clock import ScheduleClock
from .timing.store_clock import StoreClock
from .timing.timers import Timers

STOP_TIMEOUT_S = 5.0


class Engine:
    """The caller opens and closes the store; the engine opens and closes the bus."""

    def __init__(
        self, store: Store, bus: Bus, *, clock: Clock, ids: Ids, rng: Rng, settings: Settings, server_id: str
    ) -> None:
        self.server_id = server_id
        self._bus = bus
        self._alone = isinstance(bus, NullBus)
        self.supervisor = Supervisor()
        self.measurements = Measurements()
        self._outages = Outages(clock, self.measurements)
        self.store_problem = self._outages.problem
        self._store_clock = StoreClock(
            store, clock=clock, settings=settings, alone=self._alone, on_step=self._clock_stepped
        )
        self.store_lag_us = self._store_clock.lag_us
        self.audit = Audit(store, clock=clock, ids=ids)
        self.housekeeping = Housekeeping(
            store, clock=clock, rng=rng, settings=settings, alone=self._alone, measurements=self.measurements
        )
        self._build_matching(store, clock, ids, settings)
        self._build_commit(store, clock, ids, settings)
        self._build_workers(store, clock, ids, settings)
        self._build_services(store, clock, ids, settings)
        of = Serviced(self.stats, self.workers, self.bulk, self.transfers, self.keys, self.audit, self.schedules)
        self.housekeeping.add_all(chores_of(store, settings, of))
        self._timers = Timers(
            store,
            clock=clock,
            store_clock=self._store_clock,
            rng=rng,
            settings=settings,
            lease_times=self._lease_times,
            heartbeats=self._heartbeats,
            outages=self._outages,
            due_times=self._due_times,
            dispatcher=self._dispatcher,
            on_poll=self._polled,
            alone=self._alone,
        )
        self.store_gauges = add_gauges(store, clock, self._journal, self.sessions, self._liveness)
        self._running = False
        self._stopping: asyncio.Task[None] | None = None

    def _build_matching(self, store: Store, clock: Clock, ids: Ids, settings: Settings) -> None:
        """The connected workers, what they serve, and which runs they lease."""
        self._lease_times = LeaseTimes(clock=clock, settings=settings, outages=self._outages)
        self._releases = ReleaseQueue()
        self._registry = LeaseRegistry()
        self._wakeups = Wakeups(self._bus)
        self._liveness = Liveness(settings, alone=self._alone)
        self._heartbeats = Heartbeats(clock, self._liveness.refresh_s)
        self._matcher = Matcher(
            store,
            clock=clock,
            store_clock=self._store_clock,
            ids=ids,
            lease_times=self._lease_times,
            releases=self._releases,
            outages=self._outages,
            announce=self._wakeups.pending,
            ask=self._wakeups.permit_wanted,
        )
        self.versions = Versions(
            store,
            clock=clock,
            outages=self._outages,
            wakeups=self._wakeups,
            alone=self._alone,
            alive_since=self._liveness.alive_since,
            audit=self.audit,
        )
        self.schemas = Schemas(store, clock=clock, versions=self.versions)
        self.served = ServedTypes(
            store, clock=clock, liveness=self._liveness, matcher=self._matcher, versions=self.versions
        )

    def _build_commit(self, store: Store, clock: Clock, ids: Ids, settings: Settings) -> None:
        """The journal, and the dispatcher of its effects."""
        self._due_times = DueTimes(clock, settings)
        self._waits = WaitHub(store)
        self.watching = Watching(store)
        self.live_lists = LiveLists(store)
        children_due = asyncio.Event()
        self._dispatcher = Dispatcher(
            clock=clock,
            registry=self._registry,
            matcher=self._matcher,
            due_times=self._due_times,
            waits=self._waits,
            watching=self.watching,
            live_lists=self.live_lists,
            wakeups=self._wakeups,
            served=self.served,
            children_due=children_due,
            measurements=self.measurements,
        )
        self._journal = Journal(
            store,
            clock=clock,
            store_clock=self._store_clock,
            terms=self._lease_times.terms,
            outages=self._outages,
            stuck=StuckRuns(ids, rounds=settings.claim_cap, measurements=self.measurements),
            on_commit=self._dispatcher.committed,
            queues=WriteQueues(total_bytes=settings.journal_total_bytes),
        )
        self._cascade = Cascade(
            store,
            clock=clock,
            settings=settings,
            outages=self._outages,
            dispatcher=self._dispatcher,
            children_due=children_due,
        )

    def _build_workers(self, store: Store, clock: Clock, ids: Ids, settings: Settings) -> None:
        self._leases = Leases(
            store,
            clock=clock,
            store_clock=self._store_clock,
            settings=settings,
            outages=self._outages,
            times=self._lease_times,
            releases=self._releases,
            dispatcher=self._dispatcher,
            overdue=OverdueSteps(journal=self._journal, dispatcher=self._dispatcher),
        )
        on_deleted = partial(self.housekeeping.soon, NAMESPACE_CHORE)
        self.namespaces = Namespaces(store, settings, clock, on_deleted, self.audit)
        sessions: dict[tuple[str, str], Session] = {}
        self.workers = Workers(
            store,
            clock=clock,
            ids=ids,
            lease_times=self._lease_times,
            leases=self._leases,
            heartbeats=self._heartbeats,
            namespaces=self.namespaces,
            versions=self.versions,
            liveness=self._liveness,
            sessions=sessions,
            dispatcher=self._dispatcher,
            wakeups=self._wakeups,
            audit=self.audit,
        )
        operations = Operations(settings.payload_bytes, clock=clock, ids=ids)
        pinning = Pinning(store, versions=self.versions, schemas=self.schemas, registry=self._registry)
        self.sessions = Sessions(
            clock=clock,
            settings=settings,
            journal=self._journal,
            matcher=self._matcher,
            registry=self._registry,
            leases=self._leases,
            releases=self._releases,
            due_times=self._due_times,
            heartbeats=self._heartbeats,
            workers=self.workers,
            operations=operations,
            pinning=pinning,
            sessions=sessions,
            types_of=store.types_of,
        )
        self.tasks = Tasks(
            store,
            journal=self._journal,
            matcher=self._matcher,
            registry=self._registry,
            releases=self._releases,
            workers=self.workers,
            operations=operations,
            pinning=pinning,
        )

    def _build_services(self, store: Store, clock: Clock, ids: Ids, settings: Settings) -> None:
        """One service for each kind of object that users ask for."""
        self.steps = Steps(store)
        self.stats = Stats(store, clock)
        self.runs = Runs(
            store,
            clock=clock,
            ids=ids,
            settings=settings,
            journal=self._journal,
            matcher=self._matcher,
            namespaces=self.namespaces,
            waits=self._waits,
            versions=self.versions,
            schemas=self.schemas,
        )
        self.control = Control(
            store,
            clock=clock,
            ids=ids,
            settings=settings,
            dispatcher=self._dispatcher,
            schemas=self.schemas,
            audit=self.audit,
        )
        self.bulk = Bulk(store, clock=clock, ids=ids, control=self.control, server_id=self.server_id, audit=self.audit)
        self.keys = Keys(store, clock=clock, ids=ids, audit=self.audit, announce=self._wakeups.keys_changed)
        self.transfers = Transfers(
            store, clock=clock, ids=ids, settings=settings, namespaces=self.namespaces, dispatcher=self._dispatcher
        )
        namespaces, liveness = self.namespaces, self._liveness
        self.queues = Queues(
            store, clock=clock, matcher=self._matcher, namespaces=namespaces, liveness=liveness, audit=self.audit
        )
        self._schedule_clock = ScheduleClock(
            store,
            clock=clock,
            store_clock=self._store_clock,
            ids=ids,
            settings=settings,
            versions=self.versions,
            dispatcher=self._dispatcher,
            outages=self._outages,
        )
        self.schedules = Schedules(
            store,
            clock=clock,
            ids=ids,
            settings=settings,
            namespaces=self.namespaces,
            schedule_clock=self._schedule_clock,
            schemas=self.schemas,
        )
        self.explanations = Explanations(
            store, clock=clock, liveness=self._liveness, served=self.served, sessions=self.sessions
        )

    # --- life cycle ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._running:
            return
        await self._store_clock.start()
        self._lease_times.start()
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
            ("live lists", self.live_lists.run),
            ("housekeeping", self.housekeeping.run),
            ("bulk", self.bulk.run),
            ("served types", self.served.run),
            ("step logs", self.workers.step_logs.run),
            ("new builds", self.workers.new_builds.run),
        ):
            self.supervisor.watch(name, work)

    async def stop(self) -> None:
        """Stops giving work, writes what is queued, hands back undelivered runs. May be called more than once."""
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
        await self.supervisor.stop()
        self._journal.abandon()
        await self._bus.close()
        self._running = False

    def health(self) -> str | None:
        """None: healthy. Otherwise a description of the problem."""
        if self.supervisor.failure is not None:
            return "a background task died for good; the server's log says why"
        if not self._running:
            return "the engine is not running"
        if self._stopping is not None:
            return "the engine is stopping"
        return self._outages.reason

    async def wait_failed(self) -> BaseException:
        """Returns when a background task cannot be restarted any more: the server should stop."""
        return await self.supervisor.wait_failed()

    # --- events: from other servers, the clock and polls --------------------------------------------------------------

    def _on_wake(self, wake: Wake) -> None:
        self._matcher.mark_all(wake.pending)
        if wake.ended_runs:
            self._waits.poll_runs(RunKey(*ended) for ended in wake.ended_runs)
        for namespace in wake.ended:
            self._waits.poll_namespace(namespace)
        if wake.notices:
            self.sessions.remote_notices(wake.notices)
            for notice in wake.notices:
                if notice.kind == "versions":
                    self.versions.forget(TypeKey(notice.namespace, notice.run_id))
                elif notice.kind == "permits":
                    self._matcher.wanted_elsewhere(TypeKey(notice.namespace, notice.run_id))
                elif notice.kind == "keys":
                    self.keys.changed()
        if wake.poll_again:
            self.versions.forget_all()
            self.keys.changed()
            self._timers.poll_soon()
            self._waits.poll_all()
            self.sessions.poll_again()

    def _clock_stepped(self) -> None:
        self._lease_times.clock_stepped()
        self._timers.clock_stepped()
        self._schedule_clock.clock_stepped()

    def _polled(self, work: PendingWork) -> None:
        self._matcher.mark_all(work.pending)
        self.served.noticed_pending(work.pending)
        self._waits.poll_again()
        self._schedule_clock.add_due(work.next_schedule_at)
        for namespace, worker_id in work.draining:
            self.sessions.drain(namespace, worker_id)
        if work.cascade:
            self._dispatcher.dispatch(CHILDREN_DUE)
        if work.bulk:
            self.bulk.wanted()
