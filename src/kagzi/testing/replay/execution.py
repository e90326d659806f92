"""The SDK's execution adapted to replays: it records the values that the context returns, and never parks."""

import asyncio
import math
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import msgspec

from ...core.error_details import ErrorDetail
from ...core.errors import Diverged
from ...core.times import to_datetime
from ...sdk.execution import divergence
from ...sdk.execution.claim import Claim
from ...sdk.execution.ending import Ending
from ...sdk.execution.ledger import CHILD, FUNCTION, SIGNAL
from ...sdk.execution.parking import Parking
from ...sdk.execution.ports import Answer, Services
from ...sdk.execution.run_execution import RunExecution
from ...sdk.execution.state import Suspended
from ...sdk.execution.timed_waits import TimedWait
from ...sdk.worker.executor import Executor
from ...sdk.worker.registry import Registry
from ...sdk.workflow.workflow import Workflow
from ...v1 import worker_pb2 as pb
from ...wire.common import write_error
from .observation import ObservedContext
from .port import ReplayPort, Verdict

_POLL_AGAIN_S = 0.02


class ReplayedExecution(RunExecution):
    """Implements port.Replaying."""

    def __init__(
        self,
        claim: Claim,
        workflow: Workflow[Any, Any],
        services: Services,
        *,
        on_closed: "Callable[[RunExecution], None]",
        on_parked: "Callable[[RunExecution, float | None], None]",
    ) -> None:
        super().__init__(claim, workflow, services, on_closed=on_closed, on_parked=on_parked)
        port = claim.port
        assert isinstance(port, ReplayPort)
        port.execution = self
        self.port = port
        self.observation = port.observation
        self.on_allot = self.observation.allotted
        self.pending: set[asyncio.Future[Any]] = set()  # tasks that wait to begin a body and never will
        stop, status = self.interruption, self.status
        self.parking = Standstill(self, claim, self.tasks, self.waits, self.incoming, stop, status, workflow, 0.0)
        self.ending = UnloggedEnding(
            self, claim, self.ledger, stop, status, workflow, services.build_id, services.encoded
        )

    def take(self, step_id: str, kind: pb.StepKind) -> pb.HistoryStep | None:
        if step_id == self.port.until:
            self.port.stop(Verdict("until"))
            raise Suspended
        step = super().take(step_id, kind)
        if step is not None:
            self.observation.took(step)
        return step

    def finish(self, send: Callable[[], None]) -> None:
        ending = cast("partial[None]", send)
        if ending.func == self.ending.fail_or_cancel:
            self.port.left_with = cast("BaseException", ending.args[0])
        super().finish(send)

    async def hold(self, step_id: str) -> None:
        """Other tasks see the body as running."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.in_step.add(task)
        self.pending.add(task)
        self.check_idle()
        try:
            await self.wait(self.claim.loop.create_future())
        finally:
            self.tasks.in_step.discard(task)
            self.pending.discard(task)
            self.port.pending.pop(step_id, None)

    def check_idle(self) -> None:
        if self.live:
            self.tasks.idle.start()

    @property
    def runs_bodies(self) -> bool:
        return self.live and bool(self.tasks.in_step - self.pending)

    def outside_wait(self) -> str:
        return (self.tasks.outside_wait() if self.live else None) or ""

    def skip_to_next_timer(self) -> bool:
        """Let time pass until the first wait is due. Returns False if no wait has a due time."""
        waits = [wait for wait in self.waits.by_id.values() if not wait.settled and wait.due < math.inf]
        if not waits:
            return False
        rest_s = max(min(wait.due for wait in waits) - self.claim.loop.time(), 0.0)
        self.port.skip(rest_s)
        for wait in waits:
            wait.due -= rest_s
        self.waits.arm()
        self.observation.events += 1
        return True

    def stand_still(self, outside: str = "") -> None:
        """The run can only wait. Code that matches the history has made every recorded call by now."""
        if self.ledger.outstanding and not self.cancelling:
            self.diverge(self._not_reached())
        else:
            words = [*self.port.pending.values(), *map(self._words, self.waits.by_id.values())]
            self.port.stop(Verdict("open", waits_for=", ".join([*words, outside] if outside else words)))

    def _not_reached(self) -> Diverged:
        recorded = self.ledger.first_outstanding()
        missing = ", ".join(repr(step.step_id) for step in recorded)
        return Diverged(
            f"the code waits, and has not reached {missing}, which this run has recorded. {divergence.REMEDY}",
            metadata={"step_id": recorded[0].step_id},
        )

    def _words(self, wait: TimedWait) -> str:
        match wait.kind:
            case kind if kind == SIGNAL:
                return f"signal {wait.step_id!r}"
            case kind if kind == CHILD:
                return f"the end of child {wait.step_id!r}"
            case kind if kind == FUNCTION:
                return f"attempt {wait.attempt} of step {wait.step_id!r}"
            case _:
                left_us = int((wait.due - self.claim.loop.time()) * 1_000_000)
                until = to_datetime(self.claim.server_now_us() + left_us)
                return f"sleep {wait.step_id!r} until {until:%Y-%m-%d %H:%M:%S} UTC"


class Standstill(Parking):
    """A replayed run does not park: when it can only wait, the replay is over."""

    def consider(self) -> None:
        run = cast("ReplayedExecution", self._run)
        if run.port.is_live and (run.port.is_busy or self._claim.in_flight):
            return  # its result makes the run idle again
        outside = self._tasks.outside_wait()
        if outside is not None and run.port.waits_outside:
            self._tasks.idle.start_in(_POLL_AGAIN_S)  # bounded by the replay's watchdog
            return
        if not (run.port.is_live and outside is None and run.skip_to_next_timer()):
            run.stand_still(outside or "")


class UnloggedEnding(Ending):
    """Does not log that a run failed or was paused: it was only replayed."""

    def pause(self, why: str, problem: ErrorDetail) -> None:
        operation = self._claim.port.send(self._paused).diverged
        operation.problem.CopyFrom(write_error(problem))

    def _log_failure(self, error: BaseException, detail: ErrorDetail, answer: Answer) -> None:
        pass


class ReplayExecutor(Executor):
    """Keeps no runs in memory and creates no spans."""

    execution_type = ReplayedExecution
    context_type = ObservedContext

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry, kept_runs_max=0, resident_wait_ms=0)
        self._services = msgspec.structs.replace(self._services, begin_stretch=None)
