"""Ends a replay whose code waits for something that will not happen.

It counts its own ticks rather than time: in a debugger, while the code is stopped, nothing ticks.
"""

import asyncio

from .port import ReplayPort, Verdict

_TICK_S = 0.1


class Watchdog:
    """Watches one replay. `outside_wait_s`: how long the code may do nothing that the replay can see."""

    def __init__(self, port: ReplayPort, outside_wait_s: float) -> None:
        self._port = port
        self._ticks_max = max(int(outside_wait_s / _TICK_S), 1)
        self._ticks = 0
        self._events = -1
        self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        port = self._port
        if port.observation.events != self._events or port.is_busy:
            self._events = port.observation.events
            self._ticks = 0
        self._ticks += 1
        if self._ticks > self._ticks_max:
            self._give_up()
            return
        if port.execution is not None:
            port.execution.check_idle()
        self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _give_up(self) -> None:
        execution = self._port.execution
        outside = "" if execution is None else execution.outside_wait()
        words = [*self._port.pending.values(), outside or "code that does not come to rest"]
        self._port.stop(Verdict("open", waits_for=", ".join(words)))
