"""A run that can only wait leaves the worker, and comes back.

It parks when no task of it is in a step or waits for something outside Kagzi, nothing is on its way, and no wait is short. The
server answers, under the run's lock, that it sleeps now or what has come meanwhile: no wake-up is lost in between.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ..worker.ports import Answer, RunPort
from .idle.await_graph import foreign_tasks, whereabouts
from .state import State
from .teardown import send_release

if TYPE_CHECKING:
    from .run_execution import Run

logger = logging.getLogger("kagzi.worker")

_LOOK_S = 1.0
_LOOK_MAX_S = 30.0


class Parking:
    def __init__(self, run: "Run") -> None:
        self._run = run
        self.when_answered: Callable[[], None] | None = None  # the function ended while the park was asked for
        self.disturbed = False  # something outside Kagzi woke the parked coroutine
        self._next_look: asyncio.TimerHandle | None = None
        self._not_before = 0.0
        self._pause_s = _LOOK_S

    def consider(self) -> None:
        """To be called when the run is quiet and there is nothing to deliver."""
        run = self._run
        if run.in_step or run.in_flight or run.barrier or not run.waits.by_id:
            return
        if run.waits.soonest_s() <= run.services.resident_wait_s or run.loop.time() < self._not_before:
            return
        foreign = foreign_tasks(run.tasks, run.in_step, run.open)
        if foreign:
            self._stay_for(f"something outside Kagzi at {whereabouts(foreign[0])}")
            return
        source = run.outside.describe()
        if source:
            self._stay_for(source)
            return
        run.state = State.PARKING
        run.raise_barrier()
        run.in_flight += 1
        run.status.flush()
        run.arrivals.fill(run.port.send(self._answered).park, stay=False)

    def _stay_for(self, what: str) -> None:
        """Something that is not Kagzi's holds the run in its slot: say so once, and look again from time to time."""
        run = self._run
        if not run.workflow.warned_of_foreign_wait:
            run.workflow.warned_of_foreign_wait = True
            logger.warning(
                "workflow %r (run %s) could sleep, but waits for %s, and so keeps its place on this worker. Put that wait into a "
                "step, or use ctx.sleep or the timeout of ctx.wait_for.",
                run.workflow.name,
                run.run_id,
                what,
            )
        self._look_in(_LOOK_S)

    def _look_in(self, seconds: float) -> None:
        if self._next_look is None:
            self._next_look = self._run.loop.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        self._next_look = None
        if self._run.state is State.RUNNING:
            self._run.quiet.start()

    def stop_looking(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _answered(self, answer: Answer) -> None:
        run = self._run
        run.in_flight -= 1
        if run.state is not State.PARKING or answer.detail is None:
            return
        kind = answer.detail.WhichOneof("kind")
        if kind == "parked":
            self._leave(answer.detail.parked.wake_at_us, answer.at_us)
        elif kind == "not_parked":
            run.arrivals.gather(answer.detail.not_parked, self._go_on, self._refused)
        elif kind == "refused":
            self._refused(answer.detail.refused)

    def _refused(self, refusal: common.ErrorDetail) -> None:
        run = self._run
        if not run.taken_away(refusal):
            logger.error("run %s could not be parked: %s", run.run_id, refusal.message)
            run.unwind(partial(send_release, run, "could not be parked"))

    def _leave(self, wake_at_us: int, at_us: int) -> None:
        run = self._run
        run.state = State.PARKED
        run.waits.disarm()
        self.stop_looking()
        run.port.close()
        run.services.closed(run)
        if self.when_answered is not None:
            run.services.parked(run, None)
        elif run.waits.first_external_seq() is not None:
            run.services.parked(run, 0.0)  # it may be back any time
        else:
            run.services.parked(run, (wake_at_us - at_us) / 1_000_000 if wake_at_us else None)

    def _go_on(self, results: Iterable[pb.HistoryStep]) -> None:
        run = self._run
        if run.state is not State.PARKING:
            return
        run.state = State.RUNNING
        run.lift_barrier()
        if self.when_answered is not None:
            self.when_answered()
            return
        if run.arrivals.take_in(results) or run.waits.fire_soonest_retry():
            self._pause_s = _LOOK_S
        else:
            # The server sees a reason to go on that is none here (a notice on its way, for example): do not ask at once again.
            self._not_before = run.loop.time() + self._pause_s
            self._look_in(self._pause_s + 0.01)
            self._pause_s = min(2 * self._pause_s, _LOOK_MAX_S)
        run.waits.arm()
        run.interruption.raise_if_due()
        run.arrivals.ask_if_due()

    def is_claimed_next(self, task: pb.Task) -> bool:
        """Whether nobody held the run since its coroutine was kept, and nothing has moved that."""
        run = self._run
        return (
            run.state is State.PARKED
            and not self.disturbed
            and run.main is not None
            and not run.main.done()
            and task.lease.counter == run.task.lease.counter + 1
        )

    def known_seq(self) -> int:
        """Every result up to this number is here, or was delivered."""
        return min(self._run.ledger.known_seq, self._run.arrivals.known_seq())

    def fits(self, steps: Iterable[pb.HistoryStep]) -> bool:
        """Whether the kept coroutine is where this history says the run is, and waits for nothing that it is thought to know."""
        run, known_seq = self._run, self.known_seq()
        steps = list(steps)
        return run.ledger.fits(steps) and not any(
            0 < step.seq <= known_seq and step.step_id in run.waits.by_id for step in steps
        )

    def resume(self, task: pb.Task, port: RunPort, steps: Iterable[pb.HistoryStep], accepted_at: float) -> None:
        """Go on with what is new in the history of this claim."""
        run = self._run
        steps = list(steps)
        known_seq = run.ledger.known_seq
        run.task, run.port = task, port
        run.accepted_at = accepted_at
        run.state = State.RUNNING
        run.lift_barrier()
        run.arrivals.take_in(
            step for step in steps if step.seq > known_seq or (step.step_id in run.waits.by_id and step.seq)
        )
        run.arrivals.synced(task.last_seq)
        run.waits.follow(steps)
        if task.cancel_requested:
            run.cancel(task.cancel_reason)
        if task.pause_requested:
            run.pause("")
        run.quiet.start()
