"""One run in the hands of a worker: its tasks, the order of its results, its waits, and how it leaves.

States: RUNNING until the function ends, the run parks, or it is taken away. Parking asks the server and may come back to RUNNING.
Parked coroutines are kept or unwound. While a run is unwound nothing is sent except its release.

`unhindered` is the quick answer to "may a ctx call act now?". If not, `may_act` waits or raises.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from typing import Any

from ...core import limits
from ...core.errors import REASON, Diverged, ResourceExhausted, limit_reached
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ..worker import failure_log
from ..worker.lease_clock import LeaseCheck
from ..worker.ports import Answer, RunPort
from ..worker.services import Services
from ..workflow.current import place
from ..workflow.workflow import Workflow
from . import divergence
from . import teardown as unwinding
from .delivery import Delivery
from .idle.detection import QuietWatch
from .idle.outside_sources import OutsideSources
from .incoming import Arrivals
from .interruption import Interruption, in_cleanup
from .ledger import Ledger
from .parking import Parking
from .replay_gate import ReplayGate
from .scopes import Scope
from .state import State
from .suspension import Suspended
from .throttled import Beats, Status
from .timed_waits import TimedWaits, is_open

_ABANDON_CODES = frozenset({common.ERROR_CODE_LEASE_LOST, common.ERROR_CODE_NOT_FOUND, common.ERROR_CODE_TIMEOUT})


class Run:
    """A run being executed. Implements ports.Execution (with `ending`) and scopes.TaskKeeper."""

    def __init__(
        self,
        task: pb.Task,
        port: RunPort,
        workflow: Workflow[Any, Any],
        services: Services,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.task = task
        self.port = port
        self.workflow = workflow
        self.services = services
        self.loop = loop
        self.run_id = task.run_id
        self.ledger = Ledger(task.history.steps)
        self.state = State.RUNNING
        self.tasks: set[asyncio.Future[Any]] = set()
        self.in_step: set[asyncio.Future[Any]] = set()
        self.loose: set[asyncio.Future[Any]] = set()  # neither in a step nor waiting for Kagzi
        self.open: set[asyncio.Future[Any]] = set()  # what ctx calls wait for
        self.in_flight = 0  # operations sent and not answered
        self.open_steps: dict[str, Scope] = {}  # begun and without result, by who waits for it
        self.closed_steps: set[str] = set()  # given up, by a race or because a branch failed
        self.replaying = self.ledger.unreached > 0
        self.now_us: int | None = task.created_at_us  # None: the time of the last result is not known yet
        self.unhindered = not (self.replaying or self.ledger.outstanding)
        self.accepted_at = loop.time()
        self.root = Scope(self, "")
        self.interruption = Interruption(self)
        self.waits = TimedWaits(self)
        self.arrivals = Arrivals(self)
        self.delivery = Delivery(self)
        self.parking = Parking(self)
        self.gate = ReplayGate(self)
        self.status = Status(self)
        self.lease = LeaseCheck(self)
        self.outside = OutsideSources(loop)
        self.started = self.outside.add
        self._beats: Beats | None = None
        self.has_beats = False
        self.quiet = QuietWatch(loop, self.loose, self._on_quiet)
        self.main: asyncio.Task[None] | None = None
        self.unwound: unwinding.Unwinding | None = None
        self.end_refused = False
        self.barrier = False
        self.ahead = ""  # the step whose result is used already and not yet acknowledged
        self._held: list[asyncio.Future[None]] = []
        self._paused: list[asyncio.Future[None]] = []

    def begin(self, main: "Callable[[Run], Any]") -> None:
        """Start the workflow's own task. Its scope is the run's root."""
        variables = copy_context()
        variables.run(place.set, None)
        self.main = variables.run(self.loop.create_task, self._in_root_scope(main), name=f"kagzi-run-{self.run_id}")
        self.adopt(self.main)

    async def _in_root_scope(self, main: "Callable[[Run], Any]") -> None:
        place.set(self.root)
        await main(self)

    def adopt(self, task: "asyncio.Future[Any]") -> None:
        if task.done():
            return
        self.tasks.add(task)
        self.loose.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: "asyncio.Future[Any]") -> None:
        self.tasks.discard(task)
        self.loose.discard(task)
        if (self.waits.by_id or self.gate.is_watching) and self.state is State.RUNNING:
            self.quiet.start()  # perhaps it was the last one that did something

    def server_now_us(self) -> int:
        """The server's time, as far as it can be told from the time of the claim. Never used to decide, only to wait."""
        return self.task.claimed_at_us + int((self.loop.time() - self.accepted_at) * 1_000_000)

    # --- ctx calls: may they act, and how they wait ------------------------------------------------------------------

    def hinder(self) -> None:
        """To be called after anything that `may_act` looks at has changed."""
        interrupted = self.interruption.cancelling or self.interruption.pausing
        behind = self.barrier or self.replaying or self.ledger.outstanding > 0
        self.unhindered = self.state is State.RUNNING and not (behind or interrupted)

    @property
    def beats(self) -> Beats:
        if self._beats is None:
            self._beats = Beats(self)
        return self._beats

    @property
    def cancelling(self) -> bool:
        return self.interruption.cancelling

    async def may_act(self, first: str = "") -> None:
        """Returns when a body may begin or an operation be sent. Raises Suspended or CancelledError if that is never.
        `first`: the id under which something would be recorded for the first time; see ReplayGate."""
        waited = False
        while not self.unhindered or self.port.lease_is_over():
            if self.state not in (State.RUNNING, State.PARKING):
                raise await self._suspended()
            if self.barrier:
                await self._hold(self._held)
            elif self.port.lease_is_over():
                await self.lease.confirm()
            elif len(self.tasks) > 1 and (self.replaying or (not self.gate.is_open and (first or not waited))):
                waited = True
                await self.gate.hold(first)
            elif self.cancelling and not in_cleanup():
                raise self.interruption.cancelled()
            elif self.interruption.pausing:
                self.quiet.start()
                await self._hold(self._paused)
            elif self.replaying:
                self.caught_up()
            elif not first or self.gate.is_open:
                return
            else:
                raise self.gate.diverged_alone(first)

    async def _hold(self, holders: "list[asyncio.Future[None]]") -> None:
        future: asyncio.Future[None] = self.loop.create_future()
        holders.append(future)
        await self.wait(future)

    async def wait(self, future: "asyncio.Future[Any]") -> Any:
        """Await what only Kagzi can set. While a run is unwound it raises Suspended."""
        if self.state not in (State.RUNNING, State.PARKING):
            raise await self._suspended()
        task = asyncio.current_task()
        self.open.add(future)
        watched = self.leave_loose(task)
        try:
            return await future
        finally:
            self.open.discard(future)
            if watched:
                self.join_loose(task)

    def leave_loose(self, task: "asyncio.Task[Any] | None") -> bool:
        """The task waits for Kagzi, or enters a step. False if it is not one of the run's own."""
        if task not in self.loose:
            return False
        self.loose.discard(task)
        return True

    def join_loose(self, task: "asyncio.Task[Any] | None") -> None:
        """The task goes on with workflow code."""
        if task is not None:
            self.loose.add(task)
            self.quiet.disturb()

    async def _suspended(self) -> Suspended:
        self.parking.disturbed = True
        await asyncio.sleep(0)  # code that swallows Suspended and tries again must not block the loop
        return Suspended()

    def raise_barrier(self) -> None:
        self.barrier = True
        self.unhindered = False

    def lift_barrier(self) -> None:
        self.barrier = False
        self.hinder()
        _release(self._held)

    def caught_up(self) -> None:
        """From here on the code does what it has not done before."""
        self.replaying = False
        self.hinder()

    def fail_with(self, error: BaseException) -> Suspended:
        """The run cannot go on: unwind it and fail it with this error, whatever the code makes of it. To be raised."""
        if self.state in (State.RUNNING, State.PARKING):
            self.unwind(partial(self.services.fail, self, error))
        return Suspended()

    def count_step(self) -> None:
        self.ledger.steps_count += 1
        if self.ledger.steps_count > limits.STEPS_PER_RUN:
            raise self.fail_with(
                ResourceExhausted(
                    f"the run has more than {limits.STEPS_PER_RUN:,} steps. Divide the work among several runs.",
                    metadata=limit_reached("steps_per_run", limits.STEPS_PER_RUN),
                )
            )

    def take(self, step_id: str, kind: pb.StepKind) -> pb.HistoryStep | None:
        """What is recorded under this id. A kind that does not fit pauses the run."""
        try:
            step = self.ledger.take(step_id, kind)
        except Diverged as error:
            raise self.diverge(divergence.other_kind(self, error, step_id)) from error
        if step is not None and not self.ledger.outstanding:
            self.gate.reached_all()
        return step

    def diverge(self, error: Diverged) -> Suspended:
        """The code does not fit the history: unwind the run and pause it. To be raised."""
        if self.state in (State.RUNNING, State.PARKING):
            self.unwind(partial(divergence.send_diverged, self, error))
        return Suspended()

    # --- operations and their answers -----------------------------------------------------------------------------------

    def ask(self, step_id: str) -> "tuple[pb.Operation, asyncio.Future[Answer]]":
        """A new operation about a step, and the future of its answer. Results are set in the order of their seqs."""
        future: asyncio.Future[Answer] = self.loop.create_future()
        self.in_flight += 1
        return self.port.send(partial(self.answered, step_id, future)), future

    def answered(self, step_id: str, future: "asyncio.Future[Any]", answer: Answer) -> None:
        self.in_flight -= 1
        self.delivery.restarting.discard(step_id)
        detail = answer.detail
        if detail is not None:
            kind = detail.WhichOneof("kind")
            if kind == "refused" and self.taken_away(detail.refused):
                return
            if kind in ("refused", "retry") or (kind == "timer" and is_open(detail.timer)):
                if not future.done():
                    self.quiet.disturb()
                    future.set_result(answer)
                elif kind == "retry":
                    self.waits.give_up_retry(step_id, detail.retry.next_attempt)
                return
            if kind == "child":  # no result yet, but the code goes on with it: in the order of its number
                self.delivery.give(answer.seq, answer.at_us, future, answer)
                return
        self.ledger.know(step_id, answer.seq)
        self.delivery.give(answer.seq, answer.at_us, future, answer)

    def taken_away(self, refused: common.ErrorDetail) -> bool:
        if refused.code == common.ERROR_CODE_INTERNAL:
            unwinding.hand_back(self, refused.message)
        elif refused.code in _ABANDON_CODES:
            self.abandon(refused.message)
        else:
            return False
        return True

    def server_failed(self, reason: str) -> None:
        unwinding.hand_back(self, reason)

    def refused(self, refused: common.ErrorDetail) -> BaseException:
        """What a ctx call raises whose operation was refused."""
        if self._is_cancellation(refused):
            return self.interruption.cancelled()
        return self.fail_with(unwinding.refusal(refused))

    def _is_cancellation(self, refused: common.ErrorDetail) -> bool:
        """Nothing new may begin in a cancelled run, and what did not begin cannot end."""
        if refused.code == common.ERROR_CODE_CANCELLED:
            self.interruption.cancel(refused.metadata.get(REASON, ""))
            return True
        return self.cancelling and refused.code == common.ERROR_CODE_PRECONDITION_FAILED

    def run_ahead(self, step_id: str) -> pb.Operation | None:
        """A completion whose result is used at once, because nothing else can happen in this run. None: not possible now.

        Nothing is begun or sent before it is acknowledged, except the end of the run, which then travels with it.
        """
        if len(self.tasks) != 1 or self.in_flight or not self.unhindered or not self.workflow.runs_ahead:
            return None
        self.in_flight += 1
        self.ahead = step_id
        self.raise_barrier()
        self.now_us = None
        return self.port.send(partial(self._ahead_answered, step_id))

    def _ahead_answered(self, step_id: str, answer: Answer) -> None:
        self.in_flight -= 1
        self.ahead = ""
        if answer.detail is not None and answer.detail.WhichOneof("kind") == "refused":
            if self._is_cancellation(answer.detail.refused):
                self.lift_barrier()
                self.interruption.raise_if_due()
            elif not self.taken_away(answer.detail.refused):
                self.fail_with(unwinding.refusal(answer.detail.refused))
            return
        self.ledger.know(step_id, answer.seq)
        if self.now_us is None:
            self.now_us = answer.at_us
        self.lift_barrier()
        if self.waits.by_id:
            self.quiet.start()

    # --- when it is quiet -----------------------------------------------------------------------------------------------

    def _on_quiet(self) -> None:
        if self.state is not State.RUNNING or self.delivery.restarting:
            return
        if self.delivery.deliver_next():
            self.quiet.start()
        elif self.interruption.raise_if_due() or self.interruption.release_if_paused():
            return
        elif not self.gate.on_idle():
            self.parking.consider()

    # --- from outside ---------------------------------------------------------------------------------------------------

    def cancel(self, reason: str) -> None:
        self.interruption.cancel(reason)

    def pause(self, reason: str) -> None:
        self.interruption.pause()

    def news(self) -> None:
        self.arrivals.ask()

    def abandon(self, reason: str) -> None:
        """The lease is lost: stop at once, record nothing more."""
        failure_log.run_abandoned(self, reason)
        if self.state is State.ENDED:
            self.close()
        else:
            self.unwind(self.close)

    def release(self, reason: str) -> None:
        """Unwind the run and hand it back."""
        if self.state in (State.RUNNING, State.PARKING):
            self.unwind(partial(unwinding.send_release, self, reason))

    def unwind(self, after: Callable[[], None]) -> None:
        """Stop all tasks of the run, then do `after`. A later call replaces what is done after."""
        if self.unwound is not None:
            self.unwound.then(after)
            return
        self.state = State.UNWINDING
        self.unhindered = False
        self.delivery.clear()
        self.gate.stop()
        self.waits.disarm()
        self.unwound = unwinding.Unwinding(self, after)
        Variables().run(self.unwound.start)

    def close(self) -> None:
        """Nothing more is said about this run."""
        self.state = State.ENDED
        self.unhindered = False
        self.parking.stop_looking()
        self.port.close()
        self.services.closed(self)


def _release(holders: "list[asyncio.Future[None]]") -> None:
    released, holders[:] = list(holders), []
    for future in released:
        if not future.done():
            future.set_result(None)
