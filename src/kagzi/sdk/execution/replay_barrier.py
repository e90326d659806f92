"""Holds back first executions until a replayed run has reached all its records.

Results are delivered in the order in which they were recorded, and a run's operations reach the server in the order in
which its code made them. So matching code that has received all recorded results and is idle has made every recorded
call. A call without a record, made while recorded calls are missing, is therefore one that the earlier code did not
make there: the code has diverged. This is detected here, before a body runs and before anything is recorded.

Two things may still lead the code to a recorded call: a wait for something outside Kagzi, and a timer around a wait
(asyncio.timeout). While there is one, first executions wait for it. See docs/adr/0016.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from ...v1 import worker_pb2 as pb
from . import divergence
from .claim import Claim
from .divergence import Function
from .idle.tasks import RunTasks
from .interruption import Interruption
from .ledger import Ledger
from .ports import RunControl
from .state import RunState

logger = logging.getLogger("kagzi.worker")

_FIRST_POLL_S = 0.01
_POLL_MAX_S = 1.0
_POLLS_UNTIL_WARNING = 7  # about a second


class BlockedCall(NamedTuple):
    """A call that waits until it may continue. `first`: the id that it would record for the first time."""

    future: "asyncio.Future[None]"
    task: "asyncio.Task[Any] | None"
    first: str


class ReplayBarrier:
    """The barrier of one run. Not a dataclass, like every part of a run that holds a list: see `Delivery`."""

    __slots__ = (
        "_blocked", "_claim", "_deferred", "_fn", "_in_vain", "_interruption", "_ledger", "_poll_s", "_polls", "_run",
        "_tasks",
    )  # fmt: skip

    def __init__(  # noqa: PLR0917  the parts of a run
        self,
        run: RunControl,
        claim: Claim,
        tasks: RunTasks,
        ledger: Ledger,
        interruption: Interruption,
        fn: Function,
    ) -> None:
        self._run = run
        self._claim = claim
        self._tasks = tasks
        self._ledger = ledger
        self._interruption = interruption
        self._fn = fn  # the workflow function, for error messages
        self._blocked: list[BlockedCall] = []
        self._in_vain: dict[asyncio.Future[None], tuple[pb.HistoryStep, asyncio.Task[Any] | None]] = {}
        self._deferred: list[Callable[[], None]] = []
        self._polls = 0
        self._poll_s = _FIRST_POLL_S

    @property
    def is_watching(self) -> bool:
        """Whether this barrier needs to know that the run becomes idle."""
        return bool(self._blocked or self._in_vain)

    @property
    def is_open(self) -> bool:
        """Whether new records may be made. A run that is being cancelled does not reach all its calls."""
        return not self._ledger.outstanding or self._interruption.cancelling

    async def hold(self, first: str) -> None:
        """Returns when the call may check again whether it can continue."""
        future: asyncio.Future[None] = self._claim.loop.create_future()
        self._blocked.append(BlockedCall(future, asyncio.current_task(), first))
        self._tasks.idle.start()
        await self._run.wait(future)

    def defer(self, send: Callable[[], None]) -> None:
        """Send an operation that nothing waits for; if the barrier is closed, or the run is about to park, later. It is
        dropped if the code turns out to diverge."""
        if self.is_open and self._run.state is RunState.RUNNING:
            send()
        else:
            self._deferred.append(send)

    async def wait_in_vain(self, step: pb.HistoryStep) -> None:
        """Never returns: the step was abandoned. The task that waits for it is cancelled, as it was in the earlier
        execution."""
        future: asyncio.Future[None] = self._claim.loop.create_future()
        self._in_vain[future] = (step, asyncio.current_task())
        self._tasks.idle.start()
        try:
            await self._run.wait(future)
        finally:
            del self._in_vain[future]

    @property
    def has_deferred(self) -> bool:
        return bool(self._deferred)

    def holds(self, seq: int | None) -> bool:
        """Whether the result with this seq is new, while the server does not know of all waits that replay gave up: it
        may be the value of one of them."""
        return bool(self._deferred) and seq is not None and seq > self._claim.task.last_seq

    def send_deferred(self) -> None:
        if self._run.state is not RunState.RUNNING:
            return
        deferred, self._deferred = self._deferred, []
        for send in deferred:
            send()

    def reached_all(self) -> None:
        """The code has asked for all records."""
        self.send_deferred()
        self._run.refresh()
        if self._blocked:
            self._tasks.idle.start()

    def on_idle(self, *, has_waits: bool) -> bool:
        """Must be called when the run is idle and there is nothing to deliver. Returns False if the run can only wait,
        and perhaps park."""
        self._blocked = [call for call in self._blocked if not call.future.done()]  # a cancelled call waits no longer
        if self._blocked:
            self._check_blocked()
            return True
        self.send_deferred()
        return not has_waits and self._is_stuck()

    def _is_stuck(self) -> bool:
        """Whether the run waits only for abandoned steps: it would wait for ever."""
        if (
            not self._in_vain
            or self._interruption.cancelling
            or self._tasks.in_step
            or self._reason_to_wait() is not None
        ):
            return False
        step, task = next(iter(self._in_vain.values()))
        self._run.diverge(divergence.waits_in_vain(step, divergence.call_of(self._fn, task)))
        return True

    def _check_blocked(self) -> None:
        self._run.caught_up()
        first = next((call for call in self._blocked if call.first), None)
        if self.is_open or first is None:
            self._release(self._blocked)
            return
        reason = self._reason_to_wait()
        if reason is None:
            self.stop()
            call = divergence.call_of(self._fn, first.task)
            self._run.diverge(divergence.out_of_order(self._ledger, first.first, call))
            return
        self._release([call for call in self._blocked if not call.first])
        self._wait_for(reason, first)

    def diverged_alone(self, first: str) -> BaseException:
        """The exception for a run whose only task is about to do something for the first time although recorded calls
        are missing."""
        return self._run.diverge(divergence.out_of_order(self._ledger, first, divergence.where(self._fn)))

    def stop(self) -> None:
        self._deferred.clear()

    def _release(self, released: list[BlockedCall]) -> None:
        futures = {call.future for call in released}  # a set: a fan-out has thousands
        self._blocked = [call for call in self._blocked if call.future not in futures]
        for call in released:
            if not call.future.done():
                call.future.set_result(None)
        if released:
            self._tasks.idle.start()

    # --- what may still lead the code to a recorded call --------------------------------------------------------------

    def _reason_to_wait(self) -> str | None:
        """What may still lead the code to a recorded call, in words; None if nothing can."""
        if self._claim.in_flight:
            return "the server's answer"
        return self._tasks.outside_wait(due_by=self._claim.loop.time() + self._age_s())

    def _age_s(self) -> float:
        """How old the run was when it was claimed; a fork has the age of its history. No longer timer can have fired in
        it."""
        task = self._claim.task
        results = [step.at_us for step in self._ledger.first_outstanding() if step.seq]
        return (task.claimed_at_us - min([task.created_at_us, *results])) / 1_000_000

    def _wait_for(self, reason: str, first: BlockedCall) -> None:
        self._polls += 1
        if self._polls == _POLLS_UNTIL_WARNING:
            logger.warning(
                "run %s: step %r is held back, because the recorded %s is not reached yet; the run waits for %s.",
                self._claim.task.run_id,
                first.first,
                ", ".join(repr(step.step_id) for step in self._ledger.first_outstanding()),
                reason,
            )
        if self._tasks.idle.start_in(self._poll_s):
            self._poll_s = min(2 * self._poll_s, _POLL_MAX_S)
