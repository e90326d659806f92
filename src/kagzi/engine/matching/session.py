"""The session of one worker: its slots, its operations, and the messages to it."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from ...core import limits
from ...core.errors import InvalidArgument, PreconditionFailed, Unavailable
from ...core.ids import is_uuid
from ...core.limits import Settings
from ...core.records import ClaimedRun, RunLease, WorkerRecord
from ...core.run import outcomes
from ...core.run.commands import Command
from ...core.run.outcomes import Outcome
from ...core.run.step_logs import StepLogLines
from ...core.states import WorkerStatus
from ...core.workers import Diagnostic
from ...store.protocol import Renewal
from ..checks import requests as checks
from ..checks.operations import Operations
from ..checks.refusals import refused
from ..commit.journal import Journal
from ..measurements.measurements import Measurements
from ..services.pinning import STARTING, Pinning, checked_and_pinned
from ..services.versions import versions_by_type
from ..services.workers import Workers
from .deferred import DeferredOperations, Operation
from .deliveries import Deliveries
from .heartbeats import Heartbeats
from .lease_registry import Holding, LeaseRegistry
from .lease_times import ReleaseQueue
from .leases import Leases
from .matcher import Matcher
from .ports import Notice, NoticeKind, Outlet
from .slots import Claimant

logger = logging.getLogger("kagzi.engine")

LATE_AFTER_HEARTBEATS = 2
_GOODBYE_S = 5.0
_BLOCKED_S = 0.001  # shorter delays do not count as waiting


class Keeper(Protocol):
    """What a session needs of the object that keeps all sessions."""

    settings: Settings
    journal: Journal
    matcher: Matcher
    registry: LeaseRegistry
    leases: Leases
    releases: ReleaseQueue
    heartbeats: Heartbeats
    workers: Workers
    operations: Operations
    pinning: Pinning
    measurements: Measurements

    def end(self, session: "Session") -> list[Holding]: ...

    async def hand_back(self, holdings: Sequence[Holding], *, broken: bool = False) -> None: ...

    async def set_draining(self, session: "Session") -> None: ...

    def broke(self, session: "Session") -> None: ...

    def in_background(self, work: Coroutine[Any, Any, object]) -> "asyncio.Task[object]": ...


class Session(Claimant):
    """The session of one worker. Slots are counted here: a run takes one from its claim until it is closed, parked or
    lost."""

    def __init__(self, keeper: Keeper, worker: WorkerRecord, outlet: Outlet) -> None:
        super().__init__(worker.namespace, worker.worker_id, versions_by_type(worker.served), worker.build_id)
        self._keeper = keeper
        self._outlet = outlet
        self._max_concurrent = worker.max_concurrent
        self._loop = asyncio.get_running_loop()
        self._last_contact_at = self._expected_since = self._loop.time()
        settings = keeper.settings
        self._late_after_s = min(LATE_AFTER_HEARTBEATS * settings.heartbeat_ms, settings.lease_ms) / 1_000
        self._was_late = False
        self._reserved = 0
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._few_in_flight = asyncio.Event()
        self._few_in_flight.set()
        self.sink = self._settled
        self._deferred = DeferredOperations(
            resolve=partial(checked_and_pinned, keeper.operations, keeper.pinning),
            queue=self._queue_deferred,
            answer=self._settled,
            in_background=keeper.in_background,
        )
        self._reading = True
        self._unread_since_s = 0.0
        self.leased: dict[str, Holding] = {}
        self.lost: tuple[RunLease, ...] = ()
        self.draining = self.drain_noted = worker.status is WorkerStatus.DRAINING
        self.closed = False
        self.second_renewal: asyncio.TimerHandle | None = None
        self.deliveries = Deliveries(
            self.leased,
            lease_s=settings.lease_ms / 1_000,
            renew=self._keep,
            is_alive=self._is_alive,
            sent=lambda: outlet.sent,
        )

    # --- as a claimant of runs ----------------------------------------------------------------------------------------

    def offerable(self) -> int:
        if self.closed or self.draining or not self._reading or self.is_late():
            return 0
        return self._max_concurrent - len(self.leased) - self._reserved

    def is_late(self) -> bool:
        """A worker that holds runs and does not report is offered no more until it reports again, even if it has lost
        them meanwhile. A worker without runs need not report."""
        if not self.leased and not self._was_late:
            return False
        since = max(self._last_contact_at, self._expected_since)
        self._was_late = self._loop.time() - since > self._late_after_s
        return self._was_late

    def _keep(self, leased: Sequence[RunLease]) -> None:
        """The worker is alive, but cannot send heartbeats, or not for these runs: renews on its behalf."""
        self._keeper.heartbeats.note((self.namespace, self.worker_id), len(self.leased))
        _ = self._keeper.in_background(self.renew_leases(leased))

    def _is_alive(self) -> bool | None:
        return not self.draining and self.silent_s <= self._late_after_s if self._reading else None

    @property
    def silent_s(self) -> float:
        return self._loop.time() - self._last_contact_at

    @property
    def active_count(self) -> int:
        return len(self.leased)

    def set_reading(self, reading: bool) -> None:
        """Whether the worker reads its messages. While it does not, it gets no runs, and none of its operations are
        written, since that would cause more responses."""
        if self.closed or reading == self._reading:
            return
        self._reading = reading
        if reading:
            self._keeper.measurements.session_blocked_s += self._loop.time() - self._unread_since_s
            self._keeper.journal.unblock(self.sink)
            self._keeper.matcher.slot_free(self)
        else:
            self._unread_since_s = self._loop.time()
            self._keeper.journal.hold_back(self.sink)
            self.deliveries.begin()

    def reserve(self, count: int) -> None:
        self._reserved += count

    def give_back(self, count: int) -> None:
        self._reserved -= count

    def give(self, claimed: Sequence[ClaimedRun]) -> bool:
        self._reserved -= len(claimed)
        if self.closed:
            return False
        now = self._loop.time()
        if not self.leased:
            self._expected_since = now  # from now on heartbeats are expected
        for run in claimed:
            leased = RunLease(run.run, run.lease)
            holding = Holding(leased, run.workflow_type, self, received=False, started_at=run.started_at, sent_at=now)
            self.hold(holding)
        self._outlet.tasks(claimed)
        self.deliveries.begin()
        return True

    def hold(self, holding: Holding) -> None:
        self.leased[holding.leased.run.run_id] = holding
        self._keeper.registry.add(holding)

    def dropped(self, run_id: str) -> None:
        self.leased.pop(run_id, None)
        if not self.closed:
            self._keeper.matcher.slot_free(self)

    # --- messages from the worker -------------------------------------------------------------------------------------

    async def submit(self, operations: Sequence[tuple[int, Command]]) -> None:
        """Queues operations; their outcomes go to the outlet. Returns once they are queued, which takes longer if the
        queue is full, or if the worker has too many unwritten operations, which would delay others of its namespace. An
        operation that needs a read first, and later ones of its run, are queued after the read; others do not wait.
        Raises Unavailable when the server is stopping: the worker repeats them elsewhere."""
        self.note_contact()
        accepted: list[tuple[int, Command]] = []
        answers: list[tuple[int, Outcome]] = []
        check, leased, namespace = self._keeper.operations.check, self.leased, self.namespace
        deferred, pin_known = self._deferred.waiting, self._keeper.pinning.pin_known
        for operation_id, command in operations:
            run = command.run
            if run.run_id not in leased and (run.namespace != namespace or not is_uuid(run.run_id)):
                answers.append((operation_id, outcomes.RunNotFound()))
                continue
            starts_run = command.__class__ in STARTING
            if run.run_id in deferred or (starts_run and not self._keeper.pinning.is_known(command)):
                self._defer((operation_id, command))
                continue
            try:
                accepted.append((operation_id, pin_known(check(command)) if starts_run else check(command)))
            except (InvalidArgument, PreconditionFailed) as error:
                if (recorded := self._keeper.operations.refusal_to_record(command, error)) is not None:
                    accepted.append((operation_id, recorded))
                else:
                    answers.append((operation_id, refused(error)))
        if answers:
            self._answer(answers)
        for first in range(0, len(accepted), limits.BATCH_OPERATIONS):
            part = accepted[first : first + limits.BATCH_OPERATIONS]
            if not self._few_in_flight.is_set() or self._keeper.journal.is_full(namespace):
                await self._wait_for_capacity()
            self._keeper.journal.submit_many(part, self.sink)
            self._in_flight += len(part)
            self._idle.clear()
            if self._in_flight >= limits.SESSION_OPERATIONS:
                self._few_in_flight.clear()
        await self._deferred.drained()

    async def _wait_for_capacity(self) -> None:
        began_s = self._loop.time()
        await self._few_in_flight.wait()
        await self._keeper.journal.wait_for_capacity(self.namespace)
        if (blocked_s := self._loop.time() - began_s) > _BLOCKED_S:
            self._keeper.measurements.session_blocked_s += blocked_s

    def _defer(self, operation: Operation) -> None:
        self._in_flight += 1
        self._idle.clear()
        self._deferred.add(operation)

    async def _queue_deferred(self, operation: Operation) -> bool:
        """Not if the session is closed: its worker has repeated the operation elsewhere and continued from there."""
        await self._keeper.journal.wait_for_capacity(self.namespace)
        if self.closed:
            return False
        self._keeper.journal.submit_many((operation,), self.sink)
        return True

    async def heartbeat(self, leased: Sequence[RunLease]) -> None:
        """Renews the leases that the worker reports. It gets notices of those that are lost or should stop. Raises
        InvalidArgument."""
        checks.leases(leased)
        self.note_contact()
        self.received(leased)
        self._keeper.heartbeats.note((self.namespace, self.worker_id), len(self.leased))
        if leased:
            await self.renew_leases([item for item in leased if self._is_mine(item)])

    async def renew_leases(self, mine: Sequence[RunLease]) -> None:
        """Renews these leases, and notifies the worker of those that are lost, or are to be cancelled or paused."""
        before = {item.run.run_id for item in mine if item.run.run_id in self.leased}
        renewal = await self._keeper.leases.renew(mine)
        closed_meanwhile = before.difference(self.leased)  # and acknowledged, so they are not lost
        self.lost_leases(item for item in renewal.lost if item.run.run_id not in closed_meanwhile)
        self.notify_requested(renewal)

    def received(self, leased: Sequence[RunLease]) -> None:
        self.note_contact()
        for item in leased:
            holding = self.leased.get(item.run.run_id)
            if holding is not None and holding.leased.lease == item.lease:
                holding.received = True

    async def update(
        self,
        *,
        drain: bool,
        completed_delta: int,
        failed_delta: int,
        diagnostics: Sequence[Diagnostic] = (),
        step_logs: Sequence[StepLogLines] = (),
    ) -> None:
        self.note_contact()
        self._keeper.workers.step_logs.add(step_logs)
        for field, delta in (("completed_delta", completed_delta), ("failed_delta", failed_delta)):
            if delta < 0:
                raise InvalidArgument(f"{field}={delta} is negative. Counts only grow.", field=field)
        worker = (self.namespace, self.worker_id)
        self._keeper.heartbeats.note(worker, len(self.leased), completed_delta, failed_delta)
        if diagnostics:
            await self._keeper.workers.note_diagnostics(self.namespace, self.worker_id, diagnostics)
        if drain and not self.drain_noted:
            self.draining = self.drain_noted = True
            await self._keeper.set_draining(self)

    async def goodbye(self) -> None:
        """The worker leaves: its last operations are written, it is OFFLINE, and its runs are PENDING again."""
        self.draining = True
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("worker %s left while its operations were being written", self.worker_id)
        if self.closed:
            return
        leased = [holding.leased for holding in self._keeper.end(self)]
        try:
            await self._keeper.workers.leave(self.namespace, self.worker_id)
        except Unavailable:
            self._keeper.releases.add(leased)
            raise

    async def close(self) -> None:
        """The stream broke: runs that had not arrived go back at once, the others after a grace period."""
        if not self.closed:
            self._keeper.broke(self)
            holdings = self._keeper.end(self)
            await self._keeper.hand_back(holdings, broken=True)
            if not self._idle.is_set():
                _ = self._keeper.in_background(self._hand_back_again(holdings))

    async def _hand_back_again(self, holdings: Sequence[Holding]) -> None:
        """Operations that were written after the leases were shortened have renewed them: shortens them again."""
        await self._idle.wait()
        leased = self._keeper.registry.get
        await self._keeper.hand_back(
            [each for each in holdings if each.received and leased(each.leased.run.run_id, each.leased.lease) is None]
        )

    # --- messages to the worker ---------------------------------------------------------------------------------------

    def lost_leases(self, lost: Iterable[RunLease], reason: str = "") -> None:
        self.is_late()  # recorded while it still holds them: it is offered no more until it reports
        notices: list[Notice] = []
        for item in lost:
            self._keeper.registry.remove(item.run.run_id, item.lease)
            notices.append(Notice(item, "lease_lost", reason))
        if notices and not self.closed:
            self._outlet.notices(notices)

    def notify(self, holding: Holding, kind: NoticeKind, reason: str) -> None:
        """A cancellation is sent once per run; for a run that is still being delivered each time, since the notice may
        arrive before the run."""
        if kind == "cancel_requested":
            if holding.cancel_notified:
                return
            holding.cancel_notified = holding.received
        if not self.closed:
            self._outlet.notices((Notice(holding.leased, kind, reason),))

    def stopping(self) -> None:
        """The server is stopping: the worker gets nothing more here."""
        self.draining = True
        if not self.closed:
            self._outlet.stopping()

    def drain(self) -> None:
        """The worker was told to drain, and the store has recorded it."""
        self.draining = self.drain_noted = True
        if not self.closed:
            self._outlet.drain()

    def deregistered(self) -> None:
        """The worker was deregistered elsewhere: it holds nothing any more."""
        self.drain()
        self.lost_leases([holding.leased for holding in self.leased.values()], "the worker was deregistered")

    def notify_requested(self, renewal: Renewal) -> None:
        for run, reason in renewal.cancel_requested:
            holding = self.leased.get(run.run_id)
            if holding is not None:
                self.notify(holding, "cancel_requested", reason)
        for run in renewal.pause_requested:
            holding = self.leased.get(run.run_id)
            if holding is not None:
                self.notify(holding, "pause_requested", "")

    def _settled(self, answers: list[tuple[int, Outcome]]) -> None:
        self._in_flight -= len(answers)
        if self._in_flight < limits.SESSION_OPERATIONS:
            self._few_in_flight.set()
        if self._in_flight == 0:
            self._idle.set()
        self._answer(answers)

    def _answer(self, answers: list[tuple[int, Outcome]]) -> None:
        if not self.closed:
            self._outlet.answers(answers)

    def note_contact(self) -> None:
        self._last_contact_at = self._loop.time()
        if self._was_late:
            self._was_late = False
            self._keeper.matcher.slot_free(self)

    def _is_mine(self, leased: RunLease) -> bool:
        return leased.run.namespace == self.namespace and is_uuid(leased.run.run_id)
