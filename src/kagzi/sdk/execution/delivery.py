"""Results reach workflow code in the order of their seqs, one at a time, the next when the run is quiet: live as on replay.

A run with one task needs none of this: nobody in it can see any other order, so a recorded result is taken at once.
"""

import asyncio
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from ...v1 import worker_pb2 as pb
from .ledger import ABANDONED
from .state import State

if TYPE_CHECKING:
    from .run_execution import Run


class Delivery:
    def __init__(self, run: "Run") -> None:
        self._run = run
        self._results: list[tuple[int, int, int, asyncio.Future[Any], Any]] = []
        self._pushed = 0
        self.restarting: set[str] = (
            set()
        )  # steps whose recorded begin waits for the server: what comes after them waits, too

    def give(self, seq: int, at_us: int, future: "asyncio.Future[Any]", value: Any) -> None:
        """A result has come for whoever awaits `future`."""
        run = self._run
        if run.state not in (State.RUNNING, State.PARKING):
            return
        if future.done():
            run.quiet.start()  # nobody waits for it, but perhaps it was the last thing on its way
            return
        if len(run.tasks) <= 1 and not self._results:
            run.now_us = at_us
            future.set_result(value)
        else:
            self.push(seq, at_us, future, value)

    def push(self, seq: int, at_us: int, future: "asyncio.Future[Any]", value: Any) -> None:
        self._pushed += 1
        heappush(self._results, (seq, self._pushed, at_us, future, value))
        self._run.quiet.start()

    def deliver_next(self) -> bool:
        """To be called when the run is quiet. False if there is nothing to deliver."""
        while self._results:
            _, _, at_us, future, value = heappop(self._results)
            if not future.done():
                self._run.now_us = at_us
                future.set_result(value)
                return True
        return False

    def clear(self) -> None:
        self._results.clear()

    def reach_alone(self, step: pb.HistoryStep) -> bool:
        """Take a recorded result at once, if the run has one task. Otherwise False: await `reach`."""
        if len(self._run.tasks) > 1 or self._results or step.status == ABANDONED:
            return False
        self._run.now_us = step.at_us
        self.reached()
        return True

    async def reach(self, step: pb.HistoryStep) -> None:
        """Returns when it is this recorded result's turn; never for a step that was closed by a race."""
        if step.status == ABANDONED:
            await self._run.gate.wait_in_vain(step)
        try:
            await self.turn(step.seq, step.at_us)
        finally:
            self.reached()  # or given up: whoever waited for it was cancelled

    async def turn(self, seq: int, at_us: int) -> None:
        """Returns when everything with a lower number was delivered."""
        future: asyncio.Future[None] = self._run.loop.create_future()
        self.push(seq, at_us, future, None)
        await self._run.wait(future)

    def reached(self) -> None:
        run = self._run
        run.ledger.unreached -= 1
        if run.replaying and run.ledger.unreached <= 0:
            run.caught_up()
