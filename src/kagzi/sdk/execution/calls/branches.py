"""Branches of a workflow that go on at the same time, each a task with a scope of its own."""

import asyncio
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any

from ..run_execution import RunExecution
from ..scopes import AnyCoroutine, Scope, spawn
from ..teardown import retrieve_exception


class Branches:
    """Tasks and scopes by name: `parallel[0]`, `race[quote]`. With a limit, only so many are begun at first."""

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
        """Begin the next ones, in the order given."""
        loop, scopes, tasks = self._run.claim.loop, self.scopes, self.tasks
        for name, coroutine in islice(self._not_begun, count):
            tasks[name] = spawn(loop, coroutine, scopes[name])

    @property
    def all_begun(self) -> bool:
        return len(self.tasks) == len(self.scopes)

    def drop_others(self) -> None:
        """Those that were not begun will never be."""
        for _, coroutine in self._not_begun:
            coroutine.close()

    async def give_up(self) -> None:
        """Whoever waited for them was cancelled, or the run is torn down: end them all."""
        self.drop_others()
        if self._run.live:
            for task in self.tasks.values():
                task.cancel()
        await settle(self.tasks.values())


async def settle(tasks: "Collection[asyncio.Task[Any]]") -> None:
    """Wait until all of them have ended, whatever with. A cancellation of the waiting is passed on to them, and raised
    at the end."""
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
    """Futures, tasks and other awaitables may be branches, too, not only coroutines."""
    return await awaitable
