"""The tasks of a run: which of them execute code, are in a step, or wait for Kagzi."""

import asyncio
import math
from collections.abc import Callable

from .await_chain import AnyFuture
from .await_graph import foreign_tasks, whereabouts
from .detection import IdleDetector
from .outside_sources import OutsideSources

_LEFT_MAX = 64
_LEFT_PER_TASK = 4


class RunTasks:
    """The tasks of one run. `on_idle` is called when all of them wait, `on_done` when one has ended."""

    __slots__ = ("_left", "_on_done", "all", "awaited", "idle", "in_step", "main", "outside", "runnable")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_idle: Callable[[], None], on_done: Callable[[], None]
    ) -> None:
        self._on_done = on_done
        self.main: asyncio.Task[None] | None = None  # the task that executes the function
        self.all: set[AnyFuture] = set()
        self.in_step: set[AnyFuture] = set()
        self.runnable: set[AnyFuture] = set()  # neither in a step nor waiting for Kagzi
        self._left = 0  # how many left `runnable` since it was last rebuilt
        self.awaited: set[AnyFuture] = set()  # the futures that ctx calls wait for
        self.idle = IdleDetector(loop, self.runnable, on_idle)
        self.outside = OutsideSources(loop)

    @property
    def main_is_done(self) -> bool:
        return self.main is None or self.main.done()

    def adopt_main(self, task: "asyncio.Task[None]") -> None:
        self.main = task
        self.adopt(task)

    def adopt(self, task: AnyFuture) -> None:
        """The run's own code created a task."""
        if task.done():
            return
        self.all.add(task)
        self.runnable.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: AnyFuture) -> None:
        self.all.discard(task)
        self.block(task)
        self._on_done()

    def block(self, task: AnyFuture | None) -> bool:
        """The task waits for Kagzi, enters a step, or has ended. Returns False if it does not belong to the run, or was
        blocked already."""
        runnable = self.runnable
        if task not in runnable:
            return False
        runnable.discard(task)
        self._left = left = self._left + 1
        if left > _LEFT_MAX and left > _LEFT_PER_TASK * len(runnable):
            self._shrink()
        return True

    def _shrink(self) -> None:
        """A set that was large keeps its size and is iterated in each loop iteration while a run becomes idle: with
        thousands of branches, that would cost more than their work."""
        self._left = 0
        rest = tuple(self.runnable)
        self.runnable.clear()
        self.runnable.update(rest)

    def unblock(self, task: AnyFuture | None) -> None:
        """The task continues workflow code."""
        if task is not None:
            self.runnable.add(task)
            self.idle.disturb()

    def waiting_outside(self) -> list[AnyFuture]:
        """The tasks that wait for something outside Kagzi, in a step or not."""
        return foreign_tasks(self.all, (), self.awaited)

    def outside_wait(self, *, due_by: float = math.inf) -> str | None:
        """A description of what the code itself awaits outside Kagzi; None if nothing. Steps are not counted."""
        foreign = foreign_tasks(self.all, self.in_step, self.awaited)
        if foreign:
            return f"something outside Kagzi at {whereabouts(foreign[0])}"
        return self.outside.describe(due_by=due_by) or None
