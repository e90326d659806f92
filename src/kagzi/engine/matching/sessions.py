"""Workers on streams: which are connected, what they hold, and what happens to it when a stream ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from ...core.errors import InvalidArgument, ServerUnavailable, Unavailable
from ...core.ids import is_uuid
from ...core.limits import LEASES_AT_ONCE, Settings
from ...core.providers import Clock
from ...core.records import RunKey, RunLease, Served, WorkerRecord
from ...core.states import WorkerStatus
from ...core.times import Timestamp
from ...core.workflow_types.schemas import NO_TYPE_SCHEMAS, TypeSchemas
from ...store.protocol import RemoteNotice, Renewal, RunType
from ..checks import requests as checks
from ..checks.operations import Operations
from ..commit.journal import Journal
from ..services.pinning import Pinning
from ..services.workers import Workers
from ..timing.due_times import DueTimes
from .deliveries import CHECKS_PER_LEASE
from .heartbeats import Heartbeats
from .lease_registry import Holding, LeaseRegistry
from .lease_times import ReleaseQueue
from .leases import Leases
from .matcher import Matcher
from .ports import Outlet
from .session import Session

logger = logging.getLogger("kagzi.engine")

TypesOf = Callable[[Sequence[RunKey]], Awaitable[Mapping[str, RunType]]]


class Sessions:
    """All sessions of this server, one per worker: a new session of a worker replaces its old one."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: Settings,
        journal: Journal,
        matcher: Matcher,
        registry: LeaseRegistry,
        leases: Leases,
        releases: ReleaseQueue,
        due_times: DueTimes,
        heartbeats: Heartbeats,
        workers: Workers,
        operations: Operations,
        pinning: Pinning,
        sessions: dict[tuple[str, str], Session],
        types_of: TypesOf,
    ) -> None:
        self._types_of = types_of
        self.measurements = journal.measurements
        self._clock = clock
        self.settings = settings
        self.journal = journal
        self.matcher = matcher
        self.registry = registry
        self.leases = leases
        self.releases = releases
        self.heartbeats = heartbeats
        self.workers = workers
        self.operations = operations
        self.pinning = pinning
        self._due_times = due_times
        self._sessions = sessions
        self._background: set[asyncio.Task[object]] = set()
        self._partings: set[asyncio.TimerHandle] = set()
        self._poll_again_at = 0.0
        self._stopping = False

    async def open(
        self,
        worker: WorkerRecord,
        leased: Sequence[RunLease],
        outlet: Outlet,
        schemas: Mapping[Served, TypeSchemas] = NO_TYPE_SCHEMAS,
    ) -> Session:
        """Registers the worker and renews the leases that it reports. Raises InvalidArgument, NotFound, Unavailable."""
        if self._stopping:
            raise ServerUnavailable("the server is stopping. Connect again, or use another server.")
        checks.leases(leased)
        for item in leased:
            if item.run.namespace != worker.namespace:
                raise InvalidArgument("leased names a run of another namespace.", field="leased")
        worker = await self.workers.register(worker, schemas)
        mine = [item for item in leased if is_uuid(item.run.run_id)]
        renewal = await self.leases.renew(mine) if mine else Renewal((), ())
        if self._stopping:
            raise ServerUnavailable("the server is stopping. Connect again, or use another server.")
        session = Session(self, worker, outlet)
        lost = set(renewal.lost) | (set(leased) - set(mine))
        session.lost = tuple(item for item in leased if item in lost)
        left = self._take_place(session, [item for item in leased if item not in lost])
        try:
            await self.hand_back(left)
        except BaseException:
            self.end(session)
            raise
        if not session.closed:  # it is given nothing before this call has returned
            self.matcher.add(session)
            asyncio.get_running_loop().call_soon(session.notify_requested, renewal)
            if session.draining:  # the worker may not know it yet
                asyncio.get_running_loop().call_soon(session.drain)
        return session

    async def _identify(self, holdings: Sequence[Holding]) -> None:
        """Reads the types of runs that a worker leased through another server: it only reports their leases."""
        try:
            for first in range(0, len(holdings), LEASES_AT_ONCE):
                part = holdings[first : first + LEASES_AT_ONCE]
                types = await self._types_of([holding.leased.run for holding in part])
                for holding in part:
                    if (known := types.get(holding.leased.run.run_id)) is not None:
                        holding.workflow_type, holding.started_at = known
        except Unavailable as error:
            logger.warning("%d runs are counted without their types: %s", len(holdings), error)

    def _take_place(self, session: Session, leased: Sequence[RunLease]) -> list[Holding]:
        """Replaces the worker's earlier session with `session`, which takes the reported leases. Returns the others."""
        key = (session.namespace, session.worker_id)
        before = self._sessions.get(key)
        left = self.end(before) if before is not None else []
        known = {holding.leased: (holding.workflow_type, holding.started_at) for holding in left}
        self._sessions[key] = session
        for item in leased:
            workflow_type, started_at = known.get(item, ("", None))
            session.hold(Holding(item, workflow_type, session, received=True, started_at=started_at))
        unknown = [holding for holding in session.leased.values() if not holding.workflow_type]
        if unknown:
            _ = self.in_background(self._identify(unknown))
        if before is not None:
            logger.info("worker %s opened a new session in place of its earlier one", session.worker_id)
        elif leased:
            # Another server may notice only now that the worker's stream to it has ended, and shorten these leases.
            delay_s = min(self.settings.reconnect_grace_ms, self.settings.lease_ms) / 2_000
            session.second_renewal = asyncio.get_running_loop().call_later(delay_s, self._renew_again, session)
        kept = set(leased)
        return [holding for holding in left if holding.leased not in kept]

    def _renew_again(self, session: Session) -> None:
        leased = [holding.leased for holding in session.leased.values()]
        if leased and not session.closed:
            _ = self.in_background(self.leases.renew(leased))

    def in_background(self, work: Coroutine[Any, Any, object]) -> "asyncio.Task[object]":
        """Runs it independently of any stream, until the server stops."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[object]") -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("work for a session failed (%s)", task.get_coro(), exc_info=task.exception())

    def end(self, session: Session) -> list[Holding]:
        """Closes the session. Returns what it held."""
        session.closed = True
        session.deliveries.close()
        self.journal.unblock(session.sink)
        if session.second_renewal is not None:
            session.second_renewal.cancel()
        self.matcher.remove(session)
        holdings = list(session.leased.values())
        session.leased.clear()
        self.registry.forget(holdings)
        if self._sessions.get((session.namespace, session.worker_id)) is session:
            del self._sessions[session.namespace, session.worker_id]
            self.heartbeats.left((session.namespace, session.worker_id))
        return holdings

    async def hand_back(self, holdings: Sequence[Holding], *, broken: bool = False) -> None:
        """`broken`: the stream ended without a goodbye. Runs that had not arrived may be the cause, so this is counted:
        a run that crashes its workers at once would otherwise be handed out forever. Not counted if the server stops or
        the worker reconnects."""
        unreceived = [holding.leased for holding in holdings if not holding.received]
        received = [holding.leased for holding in holdings if holding.received]
        if unreceived and broken and not self._stopping:
            for until in await self.leases.lost_before_ack(unreceived):
                self._due_times.add(until)
        elif unreceived:
            await self.leases.release(unreceived)
        if received and not self._stopping:  # workers of a stopping server need time to reconnect elsewhere
            self._due_times.add(await self.leases.shorten_leases(received))

    def broke(self, session: Session) -> None:
        """Its stream ended without a goodbye. If it does not reconnect to any server within a lease, it is lost."""
        if self._stopping or self._sessions.get((session.namespace, session.worker_id)) is not session:
            return
        since = self._clock.now() + 1

        def check() -> None:
            self._partings.discard(timer)
            if (session.namespace, session.worker_id) not in self._sessions:
                _ = self.in_background(self._mark_lost(session, since))

        timer = asyncio.get_running_loop().call_later(self.settings.lease_ms / 1_000, check)
        self._partings.add(timer)

    async def _mark_lost(self, session: Session, since: Timestamp) -> None:
        try:
            await self.workers.mark_lost(session.namespace, session.worker_id, since)
        except Unavailable as error:  # a chore repeats it later
            logger.warning("worker %s is gone, but this could not be recorded: %s", session.worker_id, error)

    @property
    def count(self) -> int:
        return len(self._sessions)

    def get(self, namespace: str, worker_id: str) -> Session | None:
        return self._sessions.get((namespace, worker_id))

    def delivering_s(self, run_id: str) -> float | None:
        """How long a run has been on its way to a worker of this server; None: it has arrived, or is about to."""
        holding = self.registry.get(run_id)
        if holding is None or holding.received:
            return None
        age_s = asyncio.get_running_loop().time() - holding.sent_at
        return age_s if age_s >= self.settings.lease_ms / 1_000 / CHECKS_PER_LEASE else None

    def remote_notices(self, notices: Iterable[RemoteNotice]) -> None:
        """Another server reports events of runs that may be held here."""
        ask: dict[Session, list[RunLease]] = {}
        for notice in notices:
            session = self._sessions.get((notice.namespace, notice.worker_id))
            if notice.kind == "drain":
                self.workers.forget(notice.namespace, notice.worker_id)
                self.drain(notice.namespace, notice.worker_id)
                continue
            holding = session.leased.get(notice.run_id) if session is not None else None
            if session is None or holding is None:
                continue
            if notice.kind == "result":
                session.notify(holding, "result", "")
            elif notice.kind == "pause_requested":
                session.notify(holding, "pause_requested", "")
            else:  # cancelled, with a reason, or taken away: the store knows which
                ask.setdefault(session, []).append(holding.leased)
        for session, leased in ask.items():
            _ = self.in_background(session.renew_leases(leased))

    def drain(self, namespace: str, worker_id: str) -> None:
        """A drain was requested, possibly on another server; the worker may be connected here and not know it yet."""
        session = self._sessions.get((namespace, worker_id))
        if session is not None and not session.drain_noted:
            session.drain()

    def poll_again(self) -> None:
        """Wake-ups may have been lost: notifies workers for all runs they hold, at a limited rate."""
        now = asyncio.get_running_loop().time()
        if now < self._poll_again_at:
            return
        self._poll_again_at = now + self.settings.poll_interval_ms / 1_000
        for session in self._sessions.values():
            for holding in session.leased.values():
                session.notify(holding, "result", "")

    async def set_draining(self, session: Session) -> None:
        try:
            await self.workers.set_status(session.namespace, session.worker_id, WorkerStatus.DRAINING)
        except Unavailable as error:
            logger.warning("worker %s drains, but this could not be recorded: %s", session.worker_id, error)

    def announce_stop(self) -> None:
        self._stopping = True
        for session in list(self._sessions.values()):
            session.stopping()

    async def stop(self) -> None:
        """Hands back runs that have not arrived; others stay leased, so that their workers can continue elsewhere."""
        for timer in self._partings:
            timer.cancel()
        for task in tuple(self._background):
            task.cancel()
        holdings = [holding for session in list(self._sessions.values()) for holding in self.end(session)]
        await self.hand_back(holdings)
