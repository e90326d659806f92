"""Runs an environment until it can only wait, and moves its clock while a caller waits.

Time is skipped only while nothing runs: no body of a step, no run between two steps, no call.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ...core.times import US_PER_S, Timestamp
from .clock import VirtualClock, VirtualTimers
from .errors import StillRunning
from .server import TestServer
from .workers import Workers

__tracebackhide__ = True  # pytest shows the line of the test instead

PASSES = 10
"""Iterations of the loop without any event after which nothing more will happen: each hand-over takes one."""
NEAR_S = 0.12
"""The longest of the server's own delays, such as those that batch notices or events. The clock is not moved for
them."""
LAST_S = 2.0
"""Extra time for the server's own delays, such as its polls for watchers, before a wait is given up."""
STANDING_S = 0.1
"""How long a body may run in real time before the clock follows real time."""
RUNNING_MAX_S = 60.0
ADVANCE_S = 1.0
"""How long the clock stands still while a body runs: the body may be about to end."""
JUMPS_MAX = 10_000
SCHEDULES_MAX = 1_000
"""The most jumps in a row to scheduled times alone."""
_POLLS_AT_ONCE = 50
_POLL_MOST_S = 0.005


class Settling:
    def __init__(self, server: TestServer, workers: Workers, timers: VirtualTimers, clock: VirtualClock) -> None:
        self._server = server
        self._guest = server.loop
        self._workers = workers
        self._timers = timers
        self._clock = clock
        self._turn = asyncio.Lock()

    def move_to(self, now: Timestamp) -> None:
        self._server.move_to(now)
        self._timers.fire_due()

    # --- until nothing happens ----------------------------------------------------------------------------------------

    async def settle(self, until: Callable[[], bool] = lambda: False, *, running_max_s: float | None = None) -> bool:
        """Returns True when nothing more can happen until time passes, or when `until` returns True; False if bodies of
        steps have run for `running_max_s` and nothing else has happened."""
        guest, loop = self._guest, asyncio.get_running_loop()
        limit_s = RUNNING_MAX_S if running_max_s is None else running_max_s
        near = guest.time() + NEAR_S
        handled = polls = still = 0
        idle_since = moved_until = loop.time()
        while not until():
            await asyncio.sleep(0 if polls < _POLLS_AT_ONCE else min(polls * 0.000_02, _POLL_MOST_S))
            if guest.handled != handled or not guest.is_idle:
                handled, polls, still = guest.handled, 0, 0
                idle_since = moved_until = loop.time()
            elif self._workers.busy:
                polls, still = polls + 1, 0
                now = loop.time()
                if now - idle_since > limit_s:
                    return False
                if now - idle_since > STANDING_S:
                    self.move_to(self._clock.now() + int((now - moved_until) * US_PER_S))
                    moved_until = now
            else:
                still += 1
                if still >= PASSES:
                    if guest.next_timer() > near:
                        break
                    guest.move_to(guest.next_timer())
                    still = 0
        self._workers.raise_problem()
        return True

    # --- while time passes --------------------------------------------------------------------------------------------

    async def advance_to(self, end: Timestamp) -> None:
        """Move the clock to `end`; everything that becomes due meanwhile happens in order."""
        async with self._turn:
            await self.settle(running_max_s=ADVANCE_S)
            while (due := self._next_due()) is not None and due <= end:
                self.move_to(due)
                await self.settle(running_max_s=ADVANCE_S)
            self.move_to(end)
            await self.settle(running_max_s=ADVANCE_S)

    async def wait(self, future: "asyncio.Future[Any]", why: Callable[[str], Awaitable[BaseException]]) -> None:
        """Returns when `future` is done. Meanwhile the clock jumps from one due time to the next. If nothing more will
        happen, raises the error that `why` returns."""
        jumps = schedules = 0
        is_last = False
        while not future.done():
            async with self._turn:
                if not await self.settle(future.done):
                    raise StillRunning(self._workers.running(), RUNNING_MAX_S)
                if future.done():
                    return
                due = self._next_due()
                if due is None:
                    if is_last:
                        raise await why("")
                    is_last = True
                    self._guest.move_to(self._guest.time() + LAST_S)
                    continue
                is_last = False
                jumps += 1
                schedules = schedules + 1 if self._server.only_schedules_ahead else 0
                if jumps > JUMPS_MAX or schedules > SCHEDULES_MAX:
                    raise await why(f"The clock was moved {jumps:,} times, and it has not ended")
                self.move_to(due)

    def _next_due(self) -> Timestamp | None:
        """The next due time: later than now, since the server would otherwise be working on it."""
        now = self._clock.now()
        due = [at for at in (self._server.next_due(), self._timers.next_due()) if at is not None]
        if not due:
            return None
        if min(due) > now:
            return min(due)
        pause_s = self._guest.next_timer() - self._guest.time()  # the server retries after a delay
        return now + max(int(pause_s * US_PER_S), 1)
