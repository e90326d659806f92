"""Holds first executions back until a replayed run has reached everything that is recorded of it.

Results are delivered in the order in which they were recorded, and a run's operations reach the server in the order in which its code
made them. So code that fits has, when it was given all recorded results and is idle, made every call that is recorded. A call that is
not recorded, made while recorded ones are missing, is therefore one that the earlier code did not make there: the code has diverged.
It is noticed here, before a body runs and before anything is recorded.

Two things may still bring the code to a recorded call: a wait for something outside Kagzi, and a timer around a wait
(asyncio.timeout). While there is one, first executions wait for it. See docs/adr/0016.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...v1 import worker_pb2 as pb
from . import divergence
from .idle.await_graph import foreign_tasks, whereabouts

if TYPE_CHECKING:
    from .run_execution import Run

logger = logging.getLogger("kagzi.worker")

_FIRST_LOOK_S = 0.01
_LOOK_MAX_S = 1.0
_LOOKS_UNTIL_WARNING = 7  # about a second


class Held(NamedTuple):
    """A call that waits until it may go on. `first`: the id under which it would record something for the first time."""

    future: "asyncio.Future[None]"
    task: "asyncio.Task[Any] | None"
    first: str


class ReplayGate:
    __slots__ = ("_deferred", "_held", "_in_vain", "_look_s", "_looks", "_run", "_timer")

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._held: list[Held] = []
        self._in_vain: dict[asyncio.Future[None], tuple[pb.HistoryStep, asyncio.Task[Any] | None]] = {}
        self._deferred: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._looks = 0
        self._look_s = _FIRST_LOOK_S

    @property
    def is_watching(self) -> bool:
        """Whether it matters to this gate that the run becomes idle."""
        return bool(self._held or self._in_vain)

    @property
    def is_open(self) -> bool:
        """Whether something may be recorded for the first time. A run that is being cancelled does not come to all its calls."""
        return not self._run.ledger.outstanding or self._run.cancelling

    async def hold(self, first: str) -> None:
        """Returns when the call may look again whether it can go on."""
        run = self._run
        future: asyncio.Future[None] = run.loop.create_future()
        self._held.append(Held(future, asyncio.current_task(), first))
        run.quiet.start()
        await run.wait(future)

    def defer(self, send: Callable[[], None]) -> None:
        """Send a note that nobody waits for; if the gate is shut, when it opens. It is dropped if the code turns out to diverge."""
        if self.is_open:
            send()
        else:
            self._deferred.append(send)

    async def wait_in_vain(self, step: pb.HistoryStep) -> None:
        """Never returns: the step was given up. Whoever waits for it is cancelled, as it was when the run was executed before."""
        run = self._run
        future: asyncio.Future[None] = run.loop.create_future()
        self._in_vain[future] = (step, asyncio.current_task())
        run.quiet.start()
        try:
            await run.wait(future)
        finally:
            del self._in_vain[future]

    def _send_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        for send in deferred:
            send()

    def reached_all(self) -> None:
        """The code has asked for everything that is recorded."""
        self._send_deferred()
        self._run.hinder()
        if self._held:
            self._run.quiet.start()

    def on_idle(self) -> bool:
        """To be called when the run is idle and there is nothing to deliver. False if it can only wait: perhaps it can park."""
        if self._held:
            self._look_at_held()
            return True
        self._send_deferred()
        return self._is_stuck()

    def _is_stuck(self) -> bool:
        """Whether the run waits for what was given up, and for nothing else: it would do so for ever."""
        run = self._run
        if not self._in_vain or run.cancelling or run.waits.by_id or run.in_step or self._reason_to_wait() is not None:
            return False
        step, task = next(iter(self._in_vain.values()))
        run.diverge(divergence.waits_in_vain(run, step, divergence.call_of(run, task)))
        return True

    def _look_at_held(self) -> None:
        run = self._run
        run.caught_up()
        self._held = [held for held in self._held if not held.future.done()]
        first = next((held for held in self._held if held.first), None)
        if self.is_open or first is None:
            self._release(self._held)
            return
        reason = self._reason_to_wait()
        if reason is None:
            self.stop()
            run.diverge(divergence.out_of_order(run, first.first, divergence.call_of(run, first.task)))
            return
        self._release([held for held in self._held if not held.first])
        self._wait_for(reason, first)

    def diverged_alone(self, first: str) -> BaseException:
        """The run's only task is about to do something for the first time, and recorded calls are missing. To be raised."""
        return self._run.diverge(divergence.out_of_order(self._run, first, divergence.where(self._run)))

    def stop(self) -> None:
        self._deferred.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _release(self, released: Iterable[Held]) -> None:
        released = list(released)
        self._held = [held for held in self._held if held not in released]
        for held in released:
            if not held.future.done():
                held.future.set_result(None)
        if released:
            self._run.quiet.start()

    # --- what may still bring the code to a recorded call -----------------------------------------------------------------

    def _reason_to_wait(self) -> str | None:
        """None if nothing is going on that could."""
        run = self._run
        if run.in_flight:
            return "the server's answer"
        foreign = foreign_tasks(run.tasks, run.in_step, run.open)
        if foreign:
            return f"something outside Kagzi at {whereabouts(foreign[0])}"
        return run.outside.describe(due_by=run.loop.time() + self._age_s()) or None

    def _age_s(self) -> float:
        """How old the run was when it was claimed; a fork has the age of its history. No longer timer has gone off in it."""
        task = self._run.task
        results = [step.at_us for step in self._run.ledger.first_outstanding() if step.seq]
        return (task.claimed_at_us - min([task.created_at_us, *results])) / 1_000_000

    def _wait_for(self, reason: str, first: Held) -> None:
        run = self._run
        self._looks += 1
        if self._looks == _LOOKS_UNTIL_WARNING:
            logger.warning(
                "run %s: step %r is held back, because the recorded %s is not reached yet; the run waits for %s.",
                run.run_id,
                first.first,
                ", ".join(repr(step.step_id) for step in run.ledger.first_outstanding()),
                reason,
            )
        if self._timer is None:
            self._timer = run.loop.call_later(self._look_s, self._look_again)
            self._look_s = min(2 * self._look_s, _LOOK_MAX_S)

    def _look_again(self) -> None:
        self._timer = None
        if self._held:
            self._run.quiet.start()
