"""The open waits of a run: sleeps, steps until their next attempt, signals, children. A run with a short wait stays on
the worker.

While the run is on the worker, each wait with a time has a timer here. The server confirms the end of a sleep, because
its clock decides; a retry that is due begins; for a signal whose time is up the server is asked. A parked run has no
timers.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ...v1 import worker_pb2 as pb
from ...wire.common import write_error
from .claim import Claim
from .delivery import Delivery, unheard
from .idle.tasks import RunTasks
from .interruption import Interruption
from .ledger import ABANDONED, CHILD, COMPLETED, FUNCTION, SIGNAL, SLEEP, Ledger
from .ports import Answer, RunControl
from .replay_barrier import ReplayBarrier
from .state import RunState

_NO_LONGER_AWAITED = write_error(
    ErrorDetail(
        code=ErrorCode.CANCELLED,
        kind=ErrorKind.CANCELLED,
        message="the task that waited for this step was cancelled",
        non_retryable=True,
    )
)
_TIMER_MAX_S = 86_400.0  # longer timers are set again: event loops limit them
_FETCH_AGAIN_S = 0.02


@dataclass(slots=True, eq=False)
class TimedWait:
    step_id: str
    kind: pb.StepKind  # FUNCTION: until its next attempt
    due: float  # in the time of the timers
    future: "asyncio.Future[Any]"
    begun_seq: int
    attempt: int = 0  # of a step: the attempt that it waits for
    settled: bool = False  # its result has arrived or was requested
    timer: asyncio.TimerHandle | None = None

    @property
    def is_external(self) -> bool:
        """Whether another party may end it at any time."""
        return self.kind in (SIGNAL, CHILD)


class TimedWaits:
    """The waits of one run."""

    __slots__ = (
        "_barrier", "_claim", "_delivery", "_due_early", "_early", "_fetch_results", "_interruption", "_ledger", "_run",
        "_tasks", "by_id",
    )  # fmt: skip

    def __init__(  # noqa: PLR0917  the parts of a run
        self,
        run: RunControl,
        claim: Claim,
        tasks: RunTasks,
        ledger: Ledger,
        interruption: Interruption,
        barrier: ReplayBarrier,
        delivery: Delivery,
        fetch_results: Callable[[], None],
    ) -> None:
        self._run = run
        self._claim = claim
        self._tasks = tasks
        self._ledger = ledger
        self._interruption = interruption
        self._barrier = barrier
        self._delivery = delivery
        self._fetch_results = fetch_results
        self.by_id: dict[str, TimedWait] = {}
        # Results that arrived before the code waited for them: it is about to.
        self._early: dict[str, pb.HistoryStep] = {}
        self._due_early: dict[str, int] = {}  # the same for attempts that may begin, by step

    async def sleep(self, step_id: str, remaining_us: int) -> None:
        """Returns when the server has recorded that the sleep is over."""
        await self._wait(step_id, SLEEP, remaining_us)

    async def signal(self, step_id: str, begun_seq: int, remaining_us: int | None) -> pb.HistoryStep:
        """The step as recorded: with a signal, or with the failure that none arrived in time."""
        step: pb.HistoryStep = await self._wait(step_id, SIGNAL, remaining_us, begun_seq)
        return step

    def child(self, step_id: str, begun_seq: int) -> "asyncio.Future[pb.HistoryStep]":
        """The step as recorded when the child ends. The run waits for it whether or not a task awaits this future."""
        wait = self._add(step_id, CHILD, None, begun_seq)
        wait.future.add_done_callback(partial(self._remove, wait))
        return wait.future

    def drop(self, step_id: str) -> None:
        """The step was closed: no result will come."""
        wait = self.by_id.get(step_id)
        if wait is not None:
            self._remove(wait)

    async def retry(self, step_id: str, attempt: int, remaining_us: int) -> None:
        """Returns when attempt number `attempt` may begin. If its task is cancelled before that, the step is closed."""
        try:
            if self._due_early and self._due_early.pop(step_id, 0) == attempt:
                remaining_us = 0
            await self._wait(step_id, FUNCTION, remaining_us, attempt=attempt)
            await self._run.may_act()
        except asyncio.CancelledError:
            self.give_up_retry(step_id, attempt)
            raise

    def give_up_retry(self, step_id: str, attempt: int) -> None:
        """No task waits for this step any more. The server must know, or it would wake the run for a retry that never
        happens."""
        goes_on = self._run.state is RunState.RUNNING and not self._interruption.cancelling
        if goes_on and step_id not in self._ledger.closed:
            self._barrier.defer(partial(self._send_abandoned, step_id, attempt))

    def _send_abandoned(self, step_id: str, attempt: int) -> None:
        begin = self._claim.port.announce().begin_step
        begin.step_id = step_id
        begin.attempt = attempt
        failure = self._claim.send(partial(self._run.deliver, step_id, unheard(self._claim.loop))).fail_step
        failure.step_id = step_id
        failure.attempt = attempt
        failure.error.CopyFrom(_NO_LONGER_AWAITED)

    async def _wait(
        self, step_id: str, kind: pb.StepKind, remaining_us: int | None, begun_seq: int = 0, attempt: int = 0
    ) -> Any:
        if self._interruption.cancelling:
            await self._run.may_act()
        wait = self._add(step_id, kind, remaining_us, begun_seq, attempt)
        try:
            return await self._run.wait(wait.future)
        finally:
            self._remove(wait)

    def _add(
        self, step_id: str, kind: pb.StepKind, remaining_us: int | None, begun_seq: int, attempt: int = 0
    ) -> TimedWait:
        loop = self._claim.loop
        due = math.inf if remaining_us is None else self._claim.timers.time() + max(remaining_us, 0) / 1_000_000
        wait = TimedWait(step_id, kind, due, loop.create_future(), begun_seq, attempt)
        self.by_id[step_id] = wait
        early = self._early.pop(step_id, None) if self._early else None
        if early is not None:
            self._settle(wait, early)
        self._arm(wait)
        self._tasks.idle.start()
        return wait

    def settle(self, step: pb.HistoryStep) -> bool:
        """A result was fetched: deliver it to its wait. Returns False if there is no wait, or it has the result."""
        wait = self.by_id.get(step.step_id)
        if wait is None or wait.settled or wait.future.done():
            return False
        self._know(step)
        self._settle(wait, step)
        return True

    def correct(self, step: pb.HistoryStep) -> None:
        """As `Delivery.correct`."""
        early = self._early.get(step.step_id)
        if early is not None:
            early.output.CopyFrom(step.output)
        self._delivery.correct(step)

    def _know(self, step: pb.HistoryStep) -> None:
        if step.kind == SIGNAL and step.status == COMPLETED:
            self._ledger.know_signal(step.step_id, step.seq)
        else:
            self._ledger.know(step.step_id, step.seq)

    def settle_early(self, step: pb.HistoryStep) -> None:
        """A new result for which no task waits yet: keep it until one does."""
        if step.status == ABANDONED:
            return
        if step.seq > self._ledger.known_seq:
            self._know(step)
        if step.kind in (SLEEP, SIGNAL, CHILD):
            self._early[step.step_id] = step

    def _settle(self, wait: TimedWait, step: pb.HistoryStep) -> None:
        wait.settled = True
        self._delivery.push(step.seq, step.at_us, wait.future, step)

    def _remove(self, wait: TimedWait, _: object = None) -> None:
        if self.by_id.get(wait.step_id) is wait:
            del self.by_id[wait.step_id]
        _disarm(wait)

    def first_external_seq(self) -> int | None:
        """Results for a signal or a child have a higher seq than this. None: there is no such wait.

        Includes a child whose start has not been delivered to the code yet: it is delivered in order, like a result."""
        begun = min((wait.begun_seq for wait in self.by_id.values() if wait.is_external), default=None)
        next_seq = self._delivery.next_seq
        return begun if next_seq is None or (begun is not None and begun < next_seq) else next_seq

    def soonest_s(self) -> float:
        """The seconds until the first wait is due."""
        return min(wait.due for wait in self.by_id.values()) - self._claim.timers.time()

    def arm(self) -> None:
        for wait in list(self.by_id.values()):
            self._arm(wait)

    def disarm(self) -> None:
        for wait in self.by_id.values():
            _disarm(wait)

    def fire_retries(self, due: Iterable[pb.DueRetry]) -> bool:
        """The server says that these retries are due: its clock decides, and a user may have woken them. Returns False
        if there is none to fire. One without a wait is about to wait, or has begun meanwhile."""
        fired = False
        for retry in due:
            wait = self.by_id.get(retry.step_id)
            if wait is None:
                self._due_early[retry.step_id] = retry.attempt
            elif wait.kind == FUNCTION and wait.attempt == retry.attempt and not wait.settled:
                wait.due = self._claim.timers.time()
                self._arm(wait)
                fired = True
        return fired

    def fire_soonest_retry(self) -> bool:
        """As `fire_retries`, for a server that does not say which are due. Returns False if there is none to fire."""
        retries = [wait for wait in self.by_id.values() if wait.kind == FUNCTION and not wait.settled]
        if not retries:
            return False
        min(retries, key=lambda wait: wait.due).due = self._claim.timers.time()
        return True

    def follow(self, steps: Iterable[pb.HistoryStep]) -> None:
        """After a new claim: count the rest of each wait from the time of the claim."""
        for step in steps:
            wait = self.by_id.get(step.step_id)
            at_us = step.wake_at_us or step.retry_at_us
            if wait is not None and at_us and not step.seq:
                wait.due = self._claim.accepted_at + (at_us - self._claim.task.claimed_at_us) / 1_000_000
        self.arm()

    def _arm(self, wait: TimedWait) -> None:
        _disarm(wait)
        if not wait.settled and wait.due < math.inf:
            latest = self._claim.timers.time() + _TIMER_MAX_S
            wait.timer = self._claim.timers.call_at(min(wait.due, latest), self._fire, wait)

    def _fire(self, wait: TimedWait) -> None:
        wait.timer = None
        if self._run.state is not RunState.RUNNING or wait.settled or wait.future.done():
            return  # set again when the park is answered
        if wait.due > self._claim.timers.time() + 0.001:
            self._arm(wait)
            return
        if wait.kind == SIGNAL:
            wait.due = self._claim.timers.time() + _FETCH_AGAIN_S  # in case it is not over yet by the server's clock
            self._arm(wait)
            self._fetch_results()
            return
        wait.settled = True
        if wait.kind == SLEEP:
            self._claim.send(partial(self._finish_answered, wait)).finish_sleep.step_id = wait.step_id
        else:
            wait.future.set_result(None)

    def _finish_answered(self, wait: TimedWait, answer: Answer) -> None:
        detail = answer.detail
        early_us = detail.timer.remaining_us if detail is not None and detail.WhichOneof("kind") == "timer" else 0
        if not early_us:
            self._run.deliver(wait.step_id, wait.future, answer)
            return
        wait.settled = False
        wait.due = self._claim.timers.time() + early_us / 1_000_000
        if self.by_id.get(wait.step_id) is wait:
            self._arm(wait)


def is_open(timer: pb.TimerSet) -> bool:
    """Whether the wait continues. Without a wake time it continues until something else ends it."""
    return timer.remaining_us > 0 or not timer.wake_at_us


def _disarm(wait: TimedWait) -> None:
    if wait.timer is not None:
        wait.timer.cancel()
        wait.timer = None
