"""A time limit for blocks that run in quick succession: one timer serves many of them.

`asyncio.timeout` sets and cancels a timer for each block, which costs a small commit as much as a statement does.
"""

import asyncio
from types import TracebackType


class TimeLimit:
    """Use `with` around an await: if it takes longer than `limit_s`, it is cancelled and TimeoutError is raised. One
    block at a time."""

    __slots__ = ("_cancelling", "_expired", "_limit_s", "_loop", "_over_at", "_task", "_timer")

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._over_at: float | None = None  # None: not inside a block
        self._expired = False
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a time limit needs a task that it can cancel")
        self._task = task
        self._cancelling = task.cancelling()
        self._over_at = loop.time() + self._limit_s
        if self._timer is None:
            self._timer = loop.call_at(self._over_at, self._check)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over_at = None
        if self._expired:
            self._expired = False
            if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def close(self) -> None:
        """Call it after the last block."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        """The timer may belong to an earlier block: then it is reset for the current block, if any."""
        self._timer = None
        over_at = self._over_at
        if over_at is None:
            return
        if self._loop.time() < over_at:
            self._timer = self._loop.call_at(over_at, self._check)
        else:
            self._expired = True
            self._task.cancel()
