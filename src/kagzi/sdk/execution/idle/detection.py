"""Detects that a run is idle: all its tasks wait, and nothing is scheduled that would wake one.

Results are delivered to a run one at a time, the next when it is idle. This way, tasks that observe each other (queues,
as_completed, FIRST_COMPLETED) see results in the same order live and on replay.

A task waits if it has a pending waiter. A finished task may still be about to wake another one through callbacks
(gather, TaskGroup, wait), and each callback takes one iteration of the event loop. So the tasks must be found waiting
in several consecutive iterations, plus one for each gather inside a gather.

Tasks that wait for Kagzi or are in the body of a step are not watched: they leave the watched set, and return with
`disturb` when they continue. So the cost of a result does not depend on how many tasks wait for theirs.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

PASSES = 3
_NESTINGS_MAX = 64
_WAITER = "_fut_waiter"
"""The future a task waits for. Every asyncio.Task has it, in C and in Python, on every loop."""


class IdleDetector:
    """Calls `on_idle` once, when the tasks are idle. `start` while watching restarts the count."""

    __slots__ = ("_clean_passes", "_loop", "_nestings", "_on_idle", "_tasks", "_timer", "_watching")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, tasks: "Collection[asyncio.Future[Any]]", on_idle: Callable[[], None]
    ) -> None:
        """`tasks` is read at each poll."""
        self._loop = loop
        self._tasks = tasks
        self._on_idle = on_idle
        self._watching = False
        self._timer: asyncio.TimerHandle | None = None
        self._clean_passes = 0
        self._nestings: dict[asyncio.Future[Any], int] = {}

    def start(self) -> None:
        self._clean_passes = 0
        if not self._watching:
            self._watching = True
            self._loop.call_soon(self._poll)

    def start_in(self, seconds: float) -> bool:
        """Start after this time. Returns False if it starts earlier anyway."""
        when = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() <= when:
            return False
        self.stop_timer()
        self._timer = self._loop.call_at(when, self._on_timer)
        return True

    def _on_timer(self) -> None:
        self._timer = None
        self.start()

    def stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def disturb(self) -> None:
        """A task that was not watched continues."""
        self._clean_passes = 0

    def _poll(self) -> None:
        """Called several times for each result, so everything is in one function."""
        for task in self._tasks:
            waiter: asyncio.Future[Any] | None = getattr(task, _WAITER, None)
            if (waiter is None or waiter.done()) and not task.done():
                self._clean_passes = 0
                break
        else:
            self._clean_passes = passes = self._clean_passes + 1
            if passes >= PASSES and passes >= PASSES + self._passes_for_gathers():
                self._watching = False
                self._on_idle()
                return
        self._loop.call_soon(self._poll)

    def _passes_for_gathers(self) -> int:
        most, nestings = 0, self._nestings
        for task in self._tasks:
            waiter: asyncio.Future[Any] | None = getattr(task, _WAITER, None)
            if waiter is None:
                continue
            nested = nestings.get(waiter)
            if nested is None:
                if len(nestings) >= _NESTINGS_MAX:
                    nestings.clear()
                nested = nestings[waiter] = _nesting(waiter)
            most = max(most, nested)
        return most


def waiter_of(task: "asyncio.Future[Any]") -> "asyncio.Future[Any] | None":
    """The future a task waits for."""
    return getattr(task, _WAITER, None)


def children_of(future: "asyncio.Future[Any]") -> "list[asyncio.Future[Any]] | None":
    """The futures that a gather() waits for; None for other futures."""
    return getattr(future, "_children", None)


def _nesting(future: "asyncio.Future[Any]") -> int:
    """How deeply gathers are nested in this one, finished or not: each takes an iteration to pass a result on."""
    nested = [child for child in children_of(future) or () if children_of(child) is not None]
    return 1 + max(map(_nesting, nested)) if nested else 0
