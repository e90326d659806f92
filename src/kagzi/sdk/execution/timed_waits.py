"""What a run waits for: sleeps, steps until their next try, signals, children. Short waits are waited for in place.

While the run is on the worker each wait with a time has a timer here. A sleep that is over is confirmed by the server, whose clock
decides; a retry that is due begins; for a signal whose time is up the server is asked. A parked run has no timers.
"""

import asyncio
import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ...v1 import worker_pb2 as pb
from ...wire.common import write_error
from ..worker.ports import Answer
from .ledger import CHILD, FUNCTION, SIGNAL, SLEEP
from .state import State

if TYPE_CHECKING:
    from .run_execution import Run

_GIVEN_UP = write_error(
    ErrorDetail(
        code=ErrorCode.CANCELLED,
        kind=ErrorKind.CANCELLED,
        message="the task that waited for this step was cancelled",
        non_retryable=True,
    )
)
_TIMER_MAX_S = 86_400.0  # longer timers are set again: event loops have limits of their own


_ASK_AGAIN_S = 0.02


class TimedWait:
    __slots__ = ("begun_seq", "due", "future", "kind", "settled", "step_id", "timer")

    def __init__(self, step_id: str, kind: pb.StepKind, due: float, future: "asyncio.Future[Any]") -> None:
        self.step_id = step_id
        self.kind = kind  # FUNCTION: until its next try
        self.due = due  # in the loop's time
        self.future = future
        self.begun_seq = 0
        self.settled = False  # its result is here, or asked for
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_external(self) -> bool:
        """Whether it may end at any moment, by somebody else's doing."""
        return self.kind in (SIGNAL, CHILD)


class TimedWaits:
    def __init__(self, run: "Run") -> None:
        self._run = run
        self.by_id: dict[str, TimedWait] = {}

    async def sleep(self, step_id: str, remaining_us: int) -> None:
        """Returns when the server has recorded that the time has come."""
        await self._wait(step_id, SLEEP, remaining_us)

    async def signal(self, step_id: str, begun_seq: int, remaining_us: int | None) -> pb.HistoryStep:
        """The step as it was recorded: with a signal, or with the failure that none came in time."""
        step: pb.HistoryStep = await self._wait(step_id, SIGNAL, remaining_us, begun_seq)
        return step

    def child(self, step_id: str, begun_seq: int) -> "asyncio.Future[pb.HistoryStep]":
        """The step as it is recorded when the child ends. It is waited for, whether or not somebody awaits this."""
        wait = self._add(step_id, CHILD, None, begun_seq)
        wait.future.add_done_callback(partial(self._remove, wait))
        return wait.future

    def drop(self, step_id: str) -> None:
        """Nothing will come for this step any more: it was closed."""
        wait = self.by_id.get(step_id)
        if wait is not None:
            self._remove(wait)

    async def retry(self, step_id: str, attempt: int, remaining_us: int) -> None:
        """Returns when attempt number `attempt` may begin. If its task is cancelled before that, the step is closed."""
        try:
            await self._wait(step_id, FUNCTION, remaining_us)
            await self._run.may_act()
        except asyncio.CancelledError:
            self.give_up_retry(step_id, attempt)
            raise

    def give_up_retry(self, step_id: str, attempt: int) -> None:
        """Nobody waits for this step any more. The server must know: it would wake the run for a retry that never comes."""
        run = self._run
        if run.state is not State.RUNNING or run.cancelling or step_id in run.closed_steps:
            return
        run.gate.defer(partial(self._send_given_up, step_id, attempt))

    def _send_given_up(self, step_id: str, attempt: int) -> None:
        run = self._run
        begin = run.port.announce().begin_step
        begin.step_id = step_id
        begin.attempt = attempt
        unheard: asyncio.Future[Answer] = run.loop.create_future()
        unheard.cancel()
        run.in_flight += 1
        failure = run.port.send(partial(run.answered, step_id, unheard)).fail_step
        failure.step_id = step_id
        failure.attempt = attempt
        failure.error.CopyFrom(_GIVEN_UP)

    async def _wait(self, step_id: str, kind: pb.StepKind, remaining_us: int | None, begun_seq: int = 0) -> Any:
        run = self._run
        if run.cancelling:
            await run.may_act()
        wait = self._add(step_id, kind, remaining_us, begun_seq)
        try:
            return await run.wait(wait.future)
        finally:
            self._remove(wait)

    def _add(self, step_id: str, kind: pb.StepKind, remaining_us: int | None, begun_seq: int) -> TimedWait:
        loop = self._run.loop
        due = math.inf if remaining_us is None else loop.time() + max(remaining_us, 0) / 1_000_000
        wait = TimedWait(step_id, kind, due, loop.create_future())
        wait.begun_seq = begun_seq
        self.by_id[step_id] = wait
        self._run.arrivals.settle_early(wait)
        self._arm(wait)
        self._run.quiet.start()
        return wait

    def _remove(self, wait: TimedWait, _: object = None) -> None:
        if self.by_id.get(wait.step_id) is wait:
            del self.by_id[wait.step_id]
        _disarm(wait)

    def first_external_seq(self) -> int | None:
        """What comes for a signal or a child has a higher number than this. None: there is no such wait."""
        return min((wait.begun_seq for wait in self.by_id.values() if wait.is_external), default=None)

    def soonest_s(self) -> float:
        """How long until the first of them is due."""
        return min(wait.due for wait in self.by_id.values()) - self._run.loop.time()

    def arm(self) -> None:
        for wait in list(self.by_id.values()):
            self._arm(wait)

    def disarm(self) -> None:
        for wait in self.by_id.values():
            _disarm(wait)

    def fire_soonest_retry(self) -> bool:
        """The server says that a retry is due; its clock decides. False if there is none to fire."""
        retries = [wait for wait in self.by_id.values() if wait.kind == FUNCTION and not wait.settled]
        if not retries:
            return False
        min(retries, key=lambda wait: wait.due).due = self._run.loop.time()
        return True

    def follow(self, steps: Iterable[pb.HistoryStep]) -> None:
        """After a new claim: count the rest of each wait from the time of the claim."""
        run = self._run
        for step in steps:
            wait = self.by_id.get(step.step_id)
            at_us = step.wake_at_us or step.retry_at_us
            if wait is not None and at_us and not step.seq:
                wait.due = run.accepted_at + (at_us - run.task.claimed_at_us) / 1_000_000
        self.arm()

    def _arm(self, wait: TimedWait) -> None:
        _disarm(wait)
        if not wait.settled and wait.due < math.inf:
            latest = self._run.loop.time() + _TIMER_MAX_S
            wait.timer = self._run.loop.call_at(min(wait.due, latest), self._fire, wait)

    def _fire(self, wait: TimedWait) -> None:
        run = self._run
        wait.timer = None
        if run.state is not State.RUNNING or wait.future.done():
            return  # asked for again when the park is answered
        if wait.due > run.loop.time() + 0.001:
            self._arm(wait)
            return
        if wait.kind == SIGNAL:
            wait.due = run.loop.time() + _ASK_AGAIN_S  # should the server think that it is not over yet
            self._arm(wait)
            run.arrivals.ask()
            return
        wait.settled = True
        if wait.kind == SLEEP:
            run.in_flight += 1
            run.port.send(partial(self._finish_answered, wait)).finish_sleep.step_id = wait.step_id
        else:
            wait.future.set_result(None)

    def _finish_answered(self, wait: TimedWait, answer: Answer) -> None:
        run = self._run
        early = (
            answer.detail is not None
            and answer.detail.WhichOneof("kind") == "timer"
            and answer.detail.timer.remaining_us
        )
        if not early:
            run.answered(wait.step_id, wait.future, answer)
            return
        run.in_flight -= 1
        wait.settled = False
        wait.due = run.loop.time() + early / 1_000_000
        if self.by_id.get(wait.step_id) is wait:
            self._arm(wait)


def is_open(timer: pb.TimerSet) -> bool:
    """Whether the wait goes on. Without a wake time it does so until something else ends it."""
    return timer.remaining_us > 0 or not timer.wake_at_us


def _disarm(wait: TimedWait) -> None:
    if wait.timer is not None:
        wait.timer.cancel()
        wait.timer = None
