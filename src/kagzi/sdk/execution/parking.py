"""Parks a run that can only wait: it leaves the worker, and returns when something has arrived for it.

It parks when none of its tasks is in a step or waits for something outside Kagzi, nothing is in flight, and no wait is
short. The server answers, under the run's lock, that the run now sleeps or what has arrived meanwhile: no wake-up is
lost in between.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ..workflow.workflow import Workflow
from .claim import Claim
from .idle.tasks import RunTasks
from .incoming import IncomingResults
from .interruption import Interruption
from .ports import Answer, RunLifecycle
from .state import RunState
from .throttled import Status
from .timed_waits import TimedWaits

logger = logging.getLogger("kagzi.worker")

_RETRY_S = 1.0
_RETRY_MAX_S = 30.0


@dataclass(slots=True, eq=False)
class Parking:
    _run: RunLifecycle
    _claim: Claim
    _tasks: RunTasks
    _waits: TimedWaits
    _incoming: IncomingResults
    _interruption: Interruption
    _status: Status
    _workflow: Workflow[Any, Any]
    _resident_wait_s: float
    # Called if the function ended before the answer arrived.
    _when_answered: Callable[[], None] | None = field(init=False, default=None)
    _not_before: float = field(init=False, default=0.0)
    _pause_s: float = field(init=False, default=_RETRY_S)

    def consider(self) -> None:
        """Must be called when the run is idle and there is nothing to deliver."""
        if self._tasks.in_step or self._claim.in_flight or not self._waits.by_id:
            return
        if self._waits.soonest_s() <= self._resident_wait_s or self._claim.timers.time() < self._not_before:
            return
        outside = self._tasks.outside_wait()
        if outside is not None:
            self._stay_for(outside)
            return
        self._run.advance(RunState.PARKING)
        self._status.flush()
        self._incoming.park(self._answered)

    def when_answered(self, then: Callable[[], None]) -> None:
        """Call this instead of parking or continuing. Something outside Kagzi woke the code, for example a timeout."""
        self._when_answered = then

    def _stay_for(self, outside: str) -> None:
        """Something outside Kagzi keeps the run in its slot: warn once, and try again from time to time."""
        if not self._workflow.warned_of_foreign_wait:
            self._workflow.warned_of_foreign_wait = True
            logger.warning(
                "workflow %r (run %s) could sleep, but waits for %s, and keeps its slot on this worker. Put that wait "
                "into a "
                "step, or use ctx.sleep or the timeout of ctx.wait_for.",
                self._workflow.name,
                self._claim.task.run_id,
                outside,
            )
        self._tasks.idle.start_in(_RETRY_S)

    def _answered(self, answer: Answer) -> None:
        if self._run.state is not RunState.PARKING or answer.detail is None:
            return
        match answer.detail.WhichOneof("kind"):
            case "parked":
                self._leave(answer.detail.parked.wake_at_us, answer.at_us)
            case "not_parked":
                not_parked = answer.detail.not_parked
                self._incoming.gather(not_parked, partial(self._continue, not_parked.retries), self._refused)
            case "refused":
                self._refused(answer.detail.refused)
            case _:
                pass

    def _refused(self, refusal: common.ErrorDetail) -> None:
        if not self._run.taken_away(refusal):
            logger.error("run %s could not be parked: %s", self._claim.task.run_id, refusal.message)
            self._run.release("could not be parked")

    def _leave(self, wake_at_us: int, at_us: int) -> None:
        self._run.advance(RunState.PARKED)
        self._waits.disarm()
        if self._when_answered is not None:
            wakes_in_s = None
        elif self._waits.first_external_seq() is not None:
            wakes_in_s = 0.0  # it may return at any time
        else:
            wakes_in_s = (wake_at_us - at_us) / 1_000_000 if wake_at_us else None
        self._run.left(wakes_in_s)

    def _continue(self, retries: Sequence[pb.DueRetry], results: Iterable[pb.HistoryStep]) -> None:
        if self._run.state is not RunState.PARKING:
            return
        self._run.advance(RunState.RUNNING)
        if self._when_answered is not None:
            self._when_answered()
            return
        learnt = self._incoming.take_in(results)
        if retries:
            learnt |= self._waits.fire_retries(retries)
        if learnt or self._waits.fire_soonest_retry():
            self._pause_s = _RETRY_S
        else:
            # The server has a reason to continue that is not known here, such as a notice in flight: wait before asking
            # again.
            self._not_before = self._claim.timers.time() + self._pause_s
            self._tasks.idle.start_in(self._pause_s + 0.01)
            self._pause_s = min(2 * self._pause_s, _RETRY_MAX_S)
        self._waits.arm()
        self._interruption.raise_if_due()
        self._incoming.fetch_if_due()
