"""Delivers results to workflow code in the order of their seqs, one at a time, the next when the run is idle: the same
live and on replay.

A run with one task does not need this: its code cannot observe any other order, so a recorded result is taken at once.
"""

import asyncio
from heapq import heappop, heappush
from typing import Any

from ...v1 import worker_pb2 as pb
from .idle.tasks import RunTasks
from .ledger import ABANDONED, Ledger
from .ports import Answer, RunControl
from .replay_barrier import ReplayBarrier


class Delivery:
    """The delivery of one run. Not a dataclass: typed factories (`list[X]`) would double the cost of making one."""

    __slots__ = ("_barrier", "_ledger", "_pushed", "_results", "_run", "_tasks", "now_us", "restarting")

    def __init__(
        self, run: RunControl, tasks: RunTasks, ledger: Ledger, barrier: ReplayBarrier, now_us: int | None
    ) -> None:
        self._run = run
        self._tasks = tasks
        self._ledger = ledger
        self._barrier = barrier
        self.now_us = now_us  # the time of the last result; None: not known yet
        self.restarting: set[str] = set()  # begun again, or taking signals back, and not acknowledged: delivery waits
        self._results: list[tuple[int, int, int, asyncio.Future[Any], Any]] = []
        self._pushed = 0

    def give(self, seq: int, at_us: int, future: "asyncio.Future[Any]", value: Any) -> None:
        """A result has arrived for the task that awaits `future`."""
        if not self._run.live:
            return
        if future.done():
            self._tasks.idle.start()  # nothing waits for it, but it may have been the last one in flight
        elif len(self._tasks.all) <= 1 and not (self._results or self.restarting):
            self.now_us = at_us
            future.set_result(value)
        else:
            self.push(seq, at_us, future, value)

    def push(self, seq: int, at_us: int, future: "asyncio.Future[Any]", value: Any) -> None:
        self._pushed += 1
        heappush(self._results, (seq, self._pushed, at_us, future, value))
        self._tasks.idle.start()

    @property
    def next_seq(self) -> int | None:
        """The seq of the next delivery; None: there is nothing to deliver."""
        return self._results[0][0] if self._results else None

    def deliver_next(self) -> bool:
        """To be called when the run is idle. False if there is nothing to deliver."""
        while self._results:
            _, _, at_us, future, value = heappop(self._results)
            if not future.done():
                self.now_us = at_us
                future.set_result(value)
                return True
        return False

    def correct(self, step: pb.HistoryStep) -> None:
        """A result that has not been delivered has another value now: its wait got another signal."""
        for seq, _, _, _, value in self._results:
            if seq != step.seq:
                continue
            if isinstance(value, pb.HistoryStep):
                value.output.CopyFrom(step.output)
            elif isinstance(value, Answer) and value.detail is not None:
                value.detail.signal.payload.CopyFrom(step.output)

    def clear(self) -> None:
        self._results.clear()

    def reach_alone(self, step: pb.HistoryStep) -> bool:
        """Take a recorded result at once, if the run has one task. Otherwise returns False: await `reach`."""
        if len(self._tasks.all) > 1 or self._results or step.status == ABANDONED:
            return False
        self.now_us = step.at_us
        self.reached()
        return True

    async def reach(self, step: pb.HistoryStep) -> None:
        """Returns when it is this recorded result's turn; never for a step that a race closed."""
        if step.status == ABANDONED:
            await self._barrier.wait_in_vain(step)
        try:
            await self.turn(step.seq, step.at_us, step)
        finally:
            self.reached()  # or abandoned: the waiting task was cancelled

    async def turn(self, seq: int, at_us: int, result: pb.HistoryStep | None = None) -> None:
        """Returns when all results with a lower seq have been delivered."""
        future: asyncio.Future[pb.HistoryStep | None] = asyncio.get_running_loop().create_future()
        self.push(seq, at_us, future, result)
        await self._run.wait(future)

    def reached(self) -> None:
        ledger = self._ledger
        ledger.unreached -= 1
        if ledger.replaying and ledger.unreached <= 0:
            self._run.caught_up()


def unheard(loop: asyncio.AbstractEventLoop) -> "asyncio.Future[Any]":
    """A future for an answer that nothing waits for."""
    future: asyncio.Future[Any] = loop.create_future()
    future.cancel()
    return future
