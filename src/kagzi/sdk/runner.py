"""One run in the hands of a worker: its tasks, the order of its results, its waits, and how it leaves.

States: RUNNING until the function ends, the run parks, or it is taken away. Parking asks the server and may come back to RUNNING.
Parked coroutines are kept or unwound. While a run is unwound nothing is sent except its release.

`unhindered` is the quick answer to "may a ctx call act now?". If not, `may_act` waits or raises.
"""

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

from ..core import limits
from ..core.errors import Diverged, ResourceExhausted
from ..v1 import common_pb2 as common
from ..v1 import worker_pb2 as pb
from . import unwinding
from .codec import PayloadHook
from .current import place
from .delivery import Delivery
from .ledger import Ledger
from .parking import Parking
from .ports import Answer, RunPort
from .quiet import QuietWatch
from .retry import Retry
from .scopes import Scope
from .states import State
from .suspend import Suspended
from .threads import StepThreads
from .timed_waits import TimedWaits
from .workflow import Workflow

logger = logging.getLogger("kagzi.worker")

_ABANDON_CODES = frozenset({common.ERROR_CODE_LEASE_LOST, common.ERROR_CODE_NOT_FOUND, common.ERROR_CODE_TIMEOUT})


class Services(NamedTuple):
    """What every run of a worker shares."""

    threads: StepThreads
    retry: Retry | None
    hook: PayloadHook | None
    resident_wait_s: float
    fail: "Callable[[Run, BaseException], None]"
    closed: "Callable[[Run], None]"
    parked: "Callable[[Run, float | None], None]"  # with the seconds until it wakes, if that is known


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
        self.replaying = self.ledger.unreached > 0
        self.cancelling = False
        self.cancel_reason = ""
        self.now_us: int | None = task.created_at_us  # None: the time of the last result is not known yet
        self.unhindered = not self.replaying
        self.accepted_at = loop.time()
        self.waits = TimedWaits(self)
        self.delivery = Delivery(self)
        self.parking = Parking(self)
        self.quiet = QuietWatch(loop, self.loose, self._on_quiet)
        self.main: asyncio.Task[None] | None = None
        self.unwound: unwinding.Unwinding | None = None
        self.end_refused = False
        self.barrier = False
        self._held: list[asyncio.Future[None]] = []
        self._gated: list[asyncio.Future[None]] = []
        self._cancel_raised = False

    def begin(self, main: "Callable[[Run], Any]") -> None:
        """Start the workflow's own task. Its scope is the run's root."""
        variables = copy_context()
        variables.run(place.set, None)
        self.main = variables.run(self.loop.create_task, self._in_root_scope(main), name=f"kagzi-run-{self.run_id}")
        self.adopt(self.main)

    async def _in_root_scope(self, main: "Callable[[Run], Any]") -> None:
        place.set(Scope(self, ""))
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
        if self.waits.by_id and self.state is State.RUNNING:
            self.quiet.start()  # perhaps it was the last one that did something

    def server_now_us(self) -> int:
        """The server's time, as far as it can be told from the time of the claim. Never used to decide, only to wait."""
        return self.task.claimed_at_us + int((self.loop.time() - self.accepted_at) * 1_000_000)

    # --- ctx calls: may they act, and how they wait ------------------------------------------------------------------

    def hinder(self) -> None:
        """To be called after anything that `may_act` looks at has changed."""
        self.unhindered = self.state is State.RUNNING and not (self.barrier or self.cancelling or self.replaying)

    async def may_act(self) -> None:
        """Returns when a body may begin or an operation be sent. Raises Suspended or CancelledError if that is never."""
        while not self.unhindered:
            if self.state not in (State.RUNNING, State.PARKING):
                raise await self._suspended()
            if self.barrier:
                await self._hold(self._held)
            elif self.replaying and len(self.tasks) > 1:
                self.quiet.start()
                await self._hold(self._gated)
            elif self.cancelling:
                self._cancel_raised = True
                raise asyncio.CancelledError(self.cancel_reason or "the run was cancelled")
            else:
                self.caught_up()

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
                    metadata={"limit": "steps_per_run"},
                )
            )

    def take(self, step_id: str, kind: pb.StepKind) -> pb.HistoryStep | None:
        """What is recorded under this id. A kind that does not fit fails the run."""
        try:
            return self.ledger.take(step_id, kind)
        except Diverged as error:
            raise self.fail_with(error) from error

    # --- operations and their answers -----------------------------------------------------------------------------------

    def ask(self, step_id: str) -> "tuple[pb.Operation, asyncio.Future[Answer]]":
        """A new operation about a step, and the future of its answer. Results are set in the order of their seqs."""
        future: asyncio.Future[Answer] = self.loop.create_future()
        self.in_flight += 1
        return self.port.send(partial(self.answered, step_id, future)), future

    def answered(self, step_id: str, future: "asyncio.Future[Any]", answer: Answer) -> None:
        self.in_flight -= 1
        detail = answer.detail
        if detail is not None:
            kind = detail.WhichOneof("kind")
            if kind == "refused" and self.taken_away(detail.refused):
                return
            if kind in ("refused", "retry") or (kind == "timer" and detail.timer.remaining_us > 0):
                if not future.done():
                    future.set_result(answer)
                elif kind == "retry":
                    self.waits.give_up_retry(step_id, detail.retry.next_attempt)
                return
        self.ledger.know(step_id, answer.seq)
        self.delivery.give(answer.seq, answer.at_us, future, answer)

    def taken_away(self, refused: common.ErrorDetail) -> bool:
        if refused.code in _ABANDON_CODES:
            self.abandon(refused.message)
            return True
        return False

    def run_ahead(self, step_id: str) -> pb.Operation | None:
        """A completion whose result is used at once, because nothing else can happen in this run. None: not possible now.

        Nothing is begun or sent before it is acknowledged, except the end of the run, which then travels with it.
        """
        if len(self.tasks) != 1 or self.in_flight or not self.unhindered or not self.workflow.runs_ahead:
            return None
        self.in_flight += 1
        self.raise_barrier()
        self.now_us = None
        return self.port.send(partial(self._ahead_answered, step_id))

    def _ahead_answered(self, step_id: str, answer: Answer) -> None:
        self.in_flight -= 1
        if answer.detail is not None and answer.detail.WhichOneof("kind") == "refused":
            if not self.taken_away(answer.detail.refused):
                self.fail_with(unwinding.refusal(answer.detail.refused))
            return
        self.ledger.know(step_id, answer.seq)
        if self.now_us is None:
            self.now_us = answer.at_us
        self.lift_barrier()

    def rewind(self) -> Suspended:
        """The code asked for the time of a result that is still on its way: hand the run back; the next claim replays it. Runs
        of this workflow do not run ahead again."""
        self.workflow.runs_ahead = False
        self.unwind(partial(unwinding.send_release, self, "the time of the last result was needed"))
        return Suspended()

    # --- when it is quiet -----------------------------------------------------------------------------------------------

    def _on_quiet(self) -> None:
        if self.state is not State.RUNNING:
            return
        if self.delivery.deliver_next():
            self.quiet.start()
        elif self.raise_cancel_if_due():
            return
        elif self._gated:
            self.caught_up()
            _release(self._gated)
            self.quiet.start()
        else:
            self.parking.consider()

    # --- from outside ---------------------------------------------------------------------------------------------------

    def cancel(self, reason: str) -> None:
        if self.cancelling or self.state not in (State.RUNNING, State.PARKING):
            return
        self.cancelling = True
        self.cancel_reason = reason
        self.hinder()
        if self.state is State.RUNNING and not self.replaying:
            self.raise_cancel_if_due()

    def raise_cancel_if_due(self) -> bool:
        """A cancellation is raised once. While the run is replayed it has to wait: the code is not where it was cancelled."""
        if not self.cancelling or self._cancel_raised or self.main is None:
            return False
        self._cancel_raised = True
        self.main.cancel(self.cancel_reason or "the run was cancelled")
        return True

    def abandon(self, reason: str) -> None:
        """The lease is lost: stop at once, record nothing more."""
        if self.state is State.ENDED:
            self.close()
            return
        logger.warning("run %s is abandoned: %s", self.run_id, reason or "its lease is lost")
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
