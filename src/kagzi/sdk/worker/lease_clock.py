"""Whether a lease may have ended, by this worker's own clock; and asking the server if it has.

A worker that was stopped (SIGSTOP, a suspended machine, a loop that was blocked for too long) comes back to results and tasks that were
on their way to it. Its runs may be in other hands by now. So nothing begins in a run whose lease was not renewed in time until
the server has said that the run is still this worker's.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..execution.state import State
from ..execution.teardown import send_release
from .ports import Answer

if TYPE_CHECKING:
    from ..execution.run_execution import Run

logger = logging.getLogger("kagzi.worker")


class LeaseClock:
    """Of one session. Times are monotonic seconds; `renewed` may be called from another thread."""

    __slots__ = ("_gap_at", "_renewed_at", "lease_s", "now")

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.lease_s = math.inf
        self._renewed_at = now()
        self._gap_at = -math.inf

    def renewed(self, at: float) -> None:
        """A heartbeat for all runs that are held left at this time. One that left too late renews nothing for sure."""
        if at - self._renewed_at > self.lease_s:
            self._gap_at = at
        self._renewed_at = max(at, self._renewed_at)

    def is_over(self, accepted_at: float, asked_at: float) -> bool:
        """Whether a run's lease may have ended: it was accepted then, and the server confirmed it by what was asked then.

        What is accepted soon after a gap may have been sent before it.
        """
        renewed_at = self._renewed_at
        if max(asked_at, accepted_at - self.lease_s / 2) < self._gap_at:
            renewed_at = asked_at
        return self.now() - max(renewed_at, asked_at) > self.lease_s


class LeaseCheck:
    """Of one run."""

    __slots__ = ("_run", "_waiting")

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._waiting: list[asyncio.Future[None]] = []

    async def confirm(self) -> None:
        """Returns when the server has said that the lease is still this worker's. If it is not, the run is abandoned."""
        run = self._run
        future: asyncio.Future[None] = run.loop.create_future()
        self._waiting.append(future)
        if len(self._waiting) == 1:
            logger.warning("run %s: its lease may be over, so nothing begins before the server was asked", run.run_id)
            run.in_flight += 1
            run.arrivals.fill(run.port.send(partial(self._answered, run.port.ask_about_lease())).park)
        await run.wait(future)

    def _answered(self, kept: Callable[[], None], answer: Answer) -> None:
        run = self._run
        run.in_flight -= 1
        waiting, self._waiting = self._waiting, []
        if run.state not in (State.RUNNING, State.PARKING) or answer.detail is None:
            return
        if answer.detail.WhichOneof("kind") == "refused":
            if not run.taken_away(answer.detail.refused):
                run.unwind(partial(send_release, run, "whether its lease is over could not be asked"))
            return
        kept()
        run.arrivals.take_in(answer.detail.not_parked.results)
        for future in waiting:
            if not future.done():
                run.quiet.disturb()
                future.set_result(None)
        run.quiet.start()
