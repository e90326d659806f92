"""The execution of one run by a worker: its state, and how its parts work together.

A ctx call checks `can_proceed`, which `refresh` keeps up to date; if it is False, `may_act` waits or raises. Answers of
the server reach the futures of the calls through `deliver`. When all tasks wait, `_on_idle` finds the next thing to do:
deliver a result, raise a cancellation, open the replay barrier, park.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextvars import Context as Variables
from functools import partial
from typing import Any, NoReturn

from ...core.error_details import ErrorDetail
from ...core.errors import Diverged
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ..worker import failure_log
from ..workflow.workflow import Workflow
from . import divergence
from .claim import Claim
from .delivery import Delivery
from .ending import Ending
from .idle.tasks import RunTasks
from .incoming import IncomingResults
from .interruption import Interruption, in_cleanup
from .ledger import Ledger
from .operations import Operations
from .parking import Parking
from .ports import GONE, Answer, RunPort, Services
from .replay_barrier import ReplayBarrier
from .scopes import Scope
from .state import LIVE, RUNNING, TRANSITIONS, RunState, Suspended
from .teardown import Teardown
from .throttled import Heartbeats, Status
from .timed_waits import TimedWaits


class RunExecution:
    """Implements the protocols of ports.py through which others see it, and scopes.TaskKeeper. Only this class writes
    its attributes."""

    on_allot: Callable[[str], None] | None = None  # set by a replay that needs the line of each call

    def __init__(
        self,
        claim: Claim,
        workflow: Workflow[Any, Any],
        services: Services,
        *,
        on_closed: "Callable[[RunExecution], None]",
        on_parked: "Callable[[RunExecution, float | None], None]",
    ) -> None:
        """`on_closed`: called when this worker is done with the run; `on_parked`: called after that, with the seconds
        until it wakes, if known."""
        task, loop = claim.task, claim.loop
        self.claim = claim
        self.workflow = workflow
        self.services = services
        self._on_closed = on_closed
        self._on_parked = on_parked
        self.run_id = task.run_id
        self.state = RUNNING
        self.live = True
        self.ledger = ledger = Ledger(task.history.steps)
        self.can_proceed = not (ledger.replaying or ledger.outstanding)  # a ctx call may act without `may_act`
        self.tasks = tasks = RunTasks(loop, self._on_idle, self._on_task_done)
        self.adopt: Callable[[asyncio.Future[Any]], None] = tasks.adopt
        self.started: Callable[[asyncio.TimerHandle | asyncio.Future[Any]], None] = tasks.outside.add
        self.root = Scope(self, "")
        self.interruption = stop = Interruption(self, claim, tasks, ledger)
        self.barrier = barrier = ReplayBarrier(self, claim, tasks, ledger, stop, workflow.fn)
        self.delivery = delivery = Delivery(self, tasks, ledger, barrier, task.created_at_us)
        self.waits = waits = TimedWaits(self, claim, tasks, ledger, stop, barrier, delivery, self.results_available)
        self.status = status = Status(self, claim, ledger)
        self.ending = ending = Ending(self, claim, ledger, stop, status, workflow, services.build_id, services.encoded)
        self.operations = Operations(self, claim, tasks, ledger, stop, delivery, waits, workflow, ending)
        self.incoming = incoming = IncomingResults(self, claim, tasks, ledger, waits, delivery, task.last_seq)
        wait_s = services.resident_wait_s
        self.parking = Parking(self, claim, tasks, waits, incoming, stop, status, workflow, wait_s)
        self.has_heartbeats = False
        self._heartbeats: Heartbeats | None = None
        self._teardown: Teardown | None = None
        self.stretch = None if services.begin_stretch is None else services.begin_stretch(task)
        self._disturbed = False  # something outside Kagzi woke the parked coroutine
        self._blocked: list[asyncio.Future[None]] = []  # until a park, or a completion that ran ahead, is acknowledged

    @property
    def task(self) -> pb.Task:
        return self.claim.task

    @property
    def heartbeats(self) -> Heartbeats:
        if self._heartbeats is None:
            self._heartbeats = Heartbeats(self, self.claim, self.ledger)
            self.has_heartbeats = True
        return self._heartbeats

    @property
    def cancelling(self) -> bool:
        return self.interruption.cancelling

    # --- state --------------------------------------------------------------------------------------------------------

    def advance(self, state: RunState) -> None:
        """Enter another state. The only place where the state changes."""
        assert state in TRANSITIONS[self.state], f"run {self.run_id}: {self.state} does not lead to {state}"
        self.state = state
        self.live = state in LIVE
        if not self.live:
            self.tasks.idle.stop_timer()
        self.refresh()
        if state is RUNNING:
            self.barrier.send_deferred()

    def refresh(self) -> None:
        """Must be called after any change that affects whether calls can proceed."""
        stop, ledger = self.interruption, self.ledger
        running = self.state is RUNNING and not self.claim.ahead
        self.can_proceed = running and not (ledger.replaying or ledger.outstanding or stop.cancelling or stop.pausing)
        if running and self._blocked:
            blocked, self._blocked = self._blocked, []
            for future in blocked:
                if not future.done():
                    future.set_result(None)

    def caught_up(self) -> None:
        """From here on the code does what it has not done before."""
        self.ledger.replaying = False
        self.refresh()

    # --- ctx calls: may they act, and how they wait -------------------------------------------------------------------

    async def may_act(self, first: str = "") -> None:  # noqa: PLR0912  a branch for each obstacle
        """Returns when a body may begin or an operation be sent. Raises Suspended or CancelledError if that cannot
        happen. `first`: the id that would be recorded for the first time; see ReplayBarrier."""
        waited = False
        interruption, ledger, barrier = self.interruption, self.ledger, self.barrier
        while not self.can_proceed or self.claim.port.lease_is_over():
            if not self.live:
                raise await self._suspended()
            if self.claim.ahead or self.state is RunState.PARKING:
                # As `wait`, without its support for several tasks: each step of a run that runs ahead comes here.
                future: asyncio.Future[None] = self.claim.loop.create_future()
                self._blocked.append(future)
                self.tasks.awaited.add(future)
                try:
                    await future
                finally:
                    self.tasks.awaited.discard(future)
            elif self.claim.port.lease_is_over():
                await self.incoming.confirm_lease()
            elif len(self.tasks.all) > 1 and (ledger.replaying or (not barrier.is_open and (first or not waited))):
                waited = True
                await barrier.hold(first)
            elif interruption.cancelling and not in_cleanup():
                raise interruption.cancelled()
            elif interruption.pausing:
                self.tasks.idle.start()
                await self.wait(self.claim.loop.create_future())  # until the run is handed back
            elif ledger.replaying:
                self.caught_up()
            elif not first or barrier.is_open:
                return
            else:
                raise barrier.diverged_alone(first)

    async def wait(self, future: "asyncio.Future[Any]") -> Any:
        """Await a future that only Kagzi sets. Raises Suspended while the run is torn down."""
        if not self.live:
            raise await self._suspended()
        tasks = self.tasks
        task = asyncio.current_task(self.claim.loop)  # passing the loop halves its cost
        tasks.awaited.add(future)
        watched = tasks.block(task)
        try:
            return await future
        finally:
            tasks.awaited.discard(future)
            if watched:
                tasks.unblock(task)

    async def answer(self, future: "asyncio.Future[Answer]") -> Answer:
        """The answer to an operation; a refusal is raised as the matching exception."""
        answer: Answer = await self.wait(future)
        refusal = answer.refusal
        if refusal is not None:
            raise self.operations.refused(refusal)
        return answer

    async def _suspended(self) -> Suspended:
        self._disturbed = True
        await asyncio.sleep(0)  # code that swallows Suspended and tries again must not block the loop
        return Suspended()

    def take(self, step_id: str, kind: pb.StepKind) -> pb.HistoryStep | None:
        """The record with this id. A record of another kind pauses the run."""
        try:
            step = self.ledger.take(step_id, kind)
        except Diverged as error:
            raise self.diverge(divergence.other_kind(self.workflow.fn, error, step_id)) from error
        if step is not None and not self.ledger.outstanding:
            self.barrier.reached_all()
        return step

    # --- answers of the server ----------------------------------------------------------------------------------------

    def deliver(self, step_id: str, future: "asyncio.Future[Any]", answer: Answer) -> None:
        self.operations.deliver(step_id, future, answer)

    def hold_back(self) -> None:
        """Let nothing proceed until the next `refresh`."""
        self.can_proceed = False

    def taken_away(self, refusal: common.ErrorDetail) -> bool:
        """Whether the refusal ends this worker's hold of the run; then the run leaves."""
        if refusal.code == common.ERROR_CODE_INTERNAL:
            self.ending.hand_back(refusal.message)
        elif refusal.code in GONE:
            self.abandon(refusal.message)
        else:
            return False
        return True

    # --- when it is idle ----------------------------------------------------------------------------------------------

    def _on_idle(self) -> None:
        if self.state is not RUNNING or self.delivery.restarting:
            return
        if self.delivery.next_seq is not None and self.incoming.fetch_foreign():
            return  # the answer will make it idle again
        if not self.barrier.holds(self.delivery.next_seq) and self.delivery.deliver_next():
            self.tasks.idle.start()
        elif self.interruption.raise_if_due() or self.interruption.release_if_paused():
            return
        elif not self.barrier.on_idle(has_waits=bool(self.waits.by_id)):
            self.parking.consider()

    def _on_task_done(self) -> None:
        if self.state is RUNNING and (self.waits.by_id or self.barrier.is_watching):
            self.tasks.idle.start()  # it may have been the last active task
        elif self.state is RunState.ENDED:
            self._drop_parts()

    # --- from outside -------------------------------------------------------------------------------------------------

    def cancel(self, reason: str) -> None:
        self.interruption.cancel(reason)

    def pause(self, reason: str) -> None:
        self.interruption.pause()

    def results_available(self) -> None:
        self.incoming.fetch()

    def server_failed(self, reason: str) -> None:
        self.ending.hand_back(reason)

    def abandon(self, reason: str) -> None:
        """The lease is lost: stop at once, record nothing more."""
        if self.state is RunState.ENDED:
            return
        failure_log.run_abandoned(self.task, reason)
        if self.state is RunState.ENDING:
            self.close()
        else:
            self.tear_down(self.close)

    def is_claimed_next(self, task: pb.Task) -> bool:
        """Whether no other worker held the run since its coroutine was cached, and nothing has woken the coroutine."""
        return (
            self.state is RunState.PARKED
            and not self._disturbed
            and not self.tasks.main_is_done
            and task.lease.counter == self.task.lease.counter + 1
        )

    def resume(self, task: pb.Task, port: RunPort, steps: Iterable[pb.HistoryStep], accepted_at: float) -> None:
        """Continue with the new results in the history of this claim."""
        steps, known_seq = list(steps), self.ledger.known_seq
        self.claim.renew(task, port, accepted_at)
        if self.services.begin_stretch is not None:
            self.stretch = self.services.begin_stretch(task)
            self.stretch.know(steps)
        self.advance(RUNNING)
        self.incoming.take_in(
            step for step in steps if step.seq > known_seq or (step.step_id in self.waits.by_id and step.seq)
        )
        self.incoming.synced(task.last_seq)
        self.waits.follow(steps)
        if task.cancel_requested:
            self.cancel(task.cancel_reason)
        if task.pause_requested:
            self.pause("")
        self.tasks.idle.start()

    # --- how it leaves ------------------------------------------------------------------------------------------------

    def left(self, wakes_in_s: float | None) -> None:
        """The server has parked the run. None: it need not be cached."""
        if self.stretch is not None:
            self.stretch.leave()
        self.claim.port.close()
        self._on_closed(self)
        # Something outside Kagzi made the code give up a wait, which the server does not know: replay decides.
        self._on_parked(self, None if self.barrier.has_deferred else wakes_in_s)

    def finish(self, send: Callable[[], None]) -> None:
        """The function has ended: record how, with `send`."""
        if self.state is RunState.PARKING:
            self.parking.when_answered(partial(self.finish, send))
        if self.state is not RUNNING:
            return
        recorded = None if self.ledger.is_empty or self.cancelling else self.ledger.first_result()
        if recorded is not None:
            self.diverge(divergence.never_reached(self.workflow.fn, recorded))
            return
        current = asyncio.current_task()
        if any(task is not current and not task.done() for task in self.tasks.all):
            # Open calls end with the function, and record nothing more.
            self.tear_down(send)
        else:
            send()

    def fail_with(self, error: BaseException) -> Suspended:
        """The run cannot continue: fail it with this error, whatever the code does. Returns the exception to raise."""
        return self._leave(partial(self.ending.fail, error))

    def diverge(self, error: Diverged) -> Suspended:
        """The code does not match the history: pause the run with this problem. Returns the exception to raise."""
        return self.pause_with("because its code does not fit its history", divergence.problem_of(error))

    def pause_with(self, why: str, problem: ErrorDetail) -> Suspended:
        """The run cannot continue until this problem is solved: pause it. Returns the exception to raise."""
        return self._leave(partial(self.ending.pause, why, problem))

    def release_for_replay(self) -> Suspended:
        """The code asked for the time of a result that is still in flight: hand the run back; the next claim replays
        it. Runs of this workflow do not run ahead again. Returns the exception to raise."""
        self.workflow.runs_ahead = False
        return self._leave(partial(self.ending.release, "the commit time of the last result is missing"))

    def release(self, reason: str) -> None:
        """Tear the run down and hand it back."""
        self._leave(partial(self.ending.release, reason))

    def _leave(self, send: Callable[[], None]) -> Suspended:
        if self.live:
            self.tear_down(send)
        return Suspended()

    def tear_down(self, after: Callable[[], None]) -> None:
        """End all tasks of the run, then call `after`. A later call replaces `after`."""
        if self._teardown is not None:
            self._teardown.then(after)
            return
        self.advance(RunState.TEARDOWN)
        self.delivery.clear()
        self.barrier.stop()
        self.waits.disarm()
        self._teardown = Teardown(self.tasks, self.run_id, after)
        Variables().run(self._teardown.start, self.claim.loop)

    def close(self) -> None:
        """Nothing more is sent about this run."""
        if self.stretch is not None:
            self.stretch.leave()
        self.advance(RunState.ENDED)
        self.claim.port.close()
        self._on_closed(self)
        self._drop_parts()

    def _drop_parts(self) -> None:
        """Drop the parts, which refer back to the run, so that all is freed without the garbage collector, which visits
        every live object. Code that the run has left behind may still create tasks."""
        if self._teardown is not None or self.tasks.all:
            return
        self.adopt = self.started = _ignore
        for part in _PARTS:
            delattr(self, part)
        kind = type(self)
        if kind not in _without_parts:  # a class of its own: `__getattr__` slows down access to every attribute
            _without_parts[kind] = type(kind.__name__, (kind,), {"__getattr__": _dropped})
        self.__class__ = _without_parts[kind]  # pyright: ignore[reportAttributeAccessIssue]  a subclass


def _dropped(run: RunExecution, name: str) -> NoReturn:
    if name in _PARTS:  # a call by code that was left behind when the run ended
        raise Suspended
    raise AttributeError(f"{type(run).__name__!r} object has no attribute {name!r}")


_PARTS = frozenset({
    "barrier", "delivery", "ending", "incoming", "interruption", "operations", "parking", "root", "status", "tasks",
    "waits",
})  # fmt: skip
_without_parts: dict[type[RunExecution], type[RunExecution]] = {}


def _ignore(_: object) -> None: ...
