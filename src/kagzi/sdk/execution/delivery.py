"""Delivers results to workflow code in the order of their seqs, one at a time, the next when the run is idle: live as
on replay.

A run with one task needs none of this: nobody in it can see any other order, so a recorded result is taken at once.
"""

import asyncio
from heapq import heappop, heappush
from typing import Any

from ...v1 import worker_pb2 as pb
from .idle.tasks import RunTasks
from .ledger import ABANDONED, Ledger
from .ports import RunControl
from .replay_barrier import ReplayBarrier


class Delivery:
    """Of one run. Not a dataclass, whose typed factories (`list[X]`) cost as much as all else in making one."""

    __slots__ = ("_barrier", "_ledger", "_pushed", "_results", "_run", "_tasks", "now_us", "restarting")

    def __init__(
        self, run: RunControl, tasks: RunTasks, ledger: Ledger, barrier: ReplayBarrier, now_us: int | None
    ) -> None:
        self._run = run
        self._tasks = tasks
        self._ledger = ledger
        self._barrier = barrier
        self.now_us = now_us  # the time of the last result; None: it is not known yet
        self.restarting: set[str] = set()  # begun again and not acknowledged: what is next waits, too
        self._results: list[tuple[int, int, int, asyncio.Future[Any], Any]] = []
        self._pushed = 0

    def give(self, seq: int, at_us: int, future: "asyncio.Future[Any]", value: Any) -> None:
        """A result has come for whoever awaits `future`."""
        if not self._run.live:
            return
        if future.done():
            self._tasks.idle.start()  # nobody waits for it, but perhaps it was the last thing in flight
        elif len(self._tasks.all) <= 1 and not self._results:
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
        """The number of what is delivered next; None: there is nothing."""
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

    def clear(self) -> None:
        self._results.clear()

    def reach_alone(self, step: pb.HistoryStep) -> bool:
        """Take a recorded result at once, if the run has one task. Otherwise False: await `reach`."""
        if len(self._tasks.all) > 1 or self._results or step.status == ABANDONED:
            return False
        self.now_us = step.at_us
        self.reached()
        return True

    async def reach(self, step: pb.HistoryStep) -> None:
        """Returns when it is this recorded result's turn; never for a step that was closed by a race."""
        if step.status == ABANDONED:
            await self._barrier.wait_in_vain(step)
        try:
            await self.turn(step.seq, step.at_us)
        finally:
            self.reached()  # or given up: whoever waited for it was cancelled

    async def turn(self, seq: int, at_us: int) -> None:
        """Returns when everything with a lower number was delivered."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.push(seq, at_us, future, None)
        await self._run.wait(future)

    def reached(self) -> None:
        ledger = self._ledger
        ledger.unreached -= 1
        if ledger.replaying and ledger.unreached <= 0:
            self._run.caught_up()


def unheard(loop: asyncio.AbstractEventLoop) -> "asyncio.Future[Any]":
    """In place of the future of an answer that nobody waits for."""
    future: asyncio.Future[Any] = loop.create_future()
    future.cancel()
    return future
