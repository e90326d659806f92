"""Ends a run's tasks: when it parks and is not cached, when its lease is lost, when the worker stops, when the function
has ended."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from .idle.await_chain import AnyFuture
from .idle.tasks import RunTasks
from .state import Suspended

logger = logging.getLogger("kagzi.worker")

GRACE_S = 5.0
_SELF_ENDING_S = 0.1


@dataclass(slots=True, eq=False)
class Teardown:
    """Raises Suspended in every waiting ctx call, cancels every other task, and calls `after` when all have ended.

    Code that does not end is left behind after a grace time: it cannot record anything any more.
    """

    _tasks: RunTasks
    _run_id: str
    _after: Callable[[], None]
    _finished: bool = field(init=False, default=False)
    _ending: "asyncio.Task[None] | None" = field(init=False, default=None)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        tasks = self._tasks
        outside = tasks.waiting_outside()
        for task in tasks.all:
            task.add_done_callback(retrieve_exception)
        for future in list(tasks.awaited):
            if not future.done():
                future.set_exception(Suspended())
                future.exception()  # retrieved here: if its task was cancelled, nothing else would
        current = asyncio.current_task()
        for task in outside:
            if task is not current:
                task.cancel()
        self._ending = loop.create_task(self._end(set(tasks.all)), name=f"kagzi-teardown-{self._run_id}")

    def then(self, after: Callable[[], None]) -> None:
        """Call this when all have ended, instead of the earlier callback; at once if they have."""
        self._after = after
        if self._finished:
            after()

    async def _end(self, tasks: set[AnyFuture]) -> None:
        for task in await _stop(tasks):
            logger.error(
                "run %s: %r does not end although it was cancelled. It cannot record anything; it must not swallow "
                "CancelledError.",
                self._run_id,
                task,
            )
        self._finished = True
        self._after()


def retrieve_exception(task: AnyFuture) -> None:
    """The task was abandoned: nothing else retrieves its exception, and the loop must not complain about that."""
    if task.done() and not task.cancelled():
        task.exception()


async def _stop(tasks: set[AnyFuture]) -> set[AnyFuture]:
    """Wait for the tasks to end, and cancel those that do not end by themselves. Returns those that still have not."""
    pending = tasks
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=_SELF_ENDING_S)
    deadline = asyncio.get_running_loop().time() + GRACE_S
    while pending and asyncio.get_running_loop().time() < deadline:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=GRACE_S / 10)
    for task in tasks - pending:
        retrieve_exception(task)
    return pending
