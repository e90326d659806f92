"""Concurrent branches of a workflow, each a task with its own scope."""

import asyncio
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any

from ..run_execution import RunExecution
from ..scopes import AnyCoroutine, Scope, spawn
from ..teardown import retrieve_exception


class Branches:
    """Tasks and scopes by name: `parallel[0]`, `race[quote]`. With a limit, only that many begin at first."""

    def __init__(
        self,
        run: RunExecution,
        scope: Scope,
        group: str,
        coroutines: Mapping[str, AnyCoroutine],
        *,
        is_race: bool = False,
        limit: int | None = None,
    ) -> None:
        self._run = run
        self.scopes = {name: scope.branch(group, name, is_race=is_race) for name in coroutines}
        self.tasks: dict[str, asyncio.Task[Any]] = {}
        self._not_begun = iter(coroutines.items())
        self.begin(len(coroutines) if limit is None else limit)

    def begin(self, count: int) -> None:
        """Begin the next branches, in the given order."""
        loop, scopes, tasks = self._run.claim.loop, self.scopes, self.tasks
        for name, coroutine in islice(self._not_begun, count):
            tasks[name] = spawn(loop, coroutine, scopes[name])

    @property
    def all_begun(self) -> bool:
        return len(self.tasks) == len(self.scopes)

    def drop_others(self) -> None:
        """Drop the branches that have not begun: they never will."""
        for _, coroutine in self._not_begun:
            coroutine.close()

    async def give_up(self) -> None:
        """End all branches: the task that awaited them was cancelled, or the run is torn down."""
        self.drop_others()
        if self._run.live:
            for task in self.tasks.values():
                task.cancel()
        await settle(self.tasks.values())


async def settle(tasks: "Collection[asyncio.Task[Any]]") -> None:
    """Wait until all tasks have ended, however they end. A cancellation of this wait is passed on to the tasks and
    raised at the end."""
    pending: set[asyncio.Task[Any]] = {task for task in tasks if not task.done()}
    cancelled: asyncio.CancelledError | None = None
    while pending:
        try:
            _, pending = await asyncio.wait(pending)
        except asyncio.CancelledError as error:
            cancelled = error
            for task in pending:
                task.cancel()
            pending = {task for task in pending if not task.done()}
    for task in tasks:
        retrieve_exception(task)
    if cancelled is not None:
        raise cancelled


async def as_coroutine(awaitable: Any) -> Any:
    """Makes a branch of a future, a task or another awaitable that is not a coroutine."""
    return await awaitable
