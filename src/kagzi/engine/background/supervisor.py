"""Supervises background tasks: a task that dies is restarted, and one that keeps dying stops the engine.

A restart can repair a problem in this process, but not one of the store: however long the store is unavailable, locked
or broken, the task is retried and the engine keeps running.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ...core.errors import StatementFailed, Unavailable
from ..commit.outages import backoff_s

logger = logging.getLogger("kagzi.engine")

DEATHS = 5
WINDOW_S = 60.0
LONGEST_PAUSE_S = 30.0
STORE_TROUBLE = (Unavailable, StatementFailed, TimeoutError)
"""What the store may raise: these never stop the engine."""


class Supervisor:
    """Each task is given as a function that creates its coroutine, so that it can be restarted."""

    def __init__(self, *, deaths: int = DEATHS, window_s: float = WINDOW_S, pause_s: float = 0.1) -> None:
        self._deaths = deaths
        self._window_s = window_s
        self._pause_s = pause_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed: asyncio.Event = asyncio.Event()
        self.failure: BaseException | None = None

    @property
    def alive(self) -> frozenset[str]:
        """The names of the tasks that are supervised."""
        return frozenset(name for name, task in self._tasks.items() if not task.done())

    def watch(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks[name] = asyncio.create_task(self._keep_alive(name, work), name=f"kagzi-{name}")

    async def wait_failed(self) -> BaseException:
        """Returns when a task has died more often than allowed."""
        await self._failed.wait()
        assert self.failure is not None
        return self.failure

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_alive(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        deaths: list[float] = []
        store_failures: list[float] = []
        while True:
            try:
                await work()
                error: BaseException = RuntimeError(f"{name} returned, which it never should")
                logger.error("the background task %r ended and is started again", name)
            except STORE_TROUBLE:
                logger.exception("the background task %r failed because of the store and is restarted", name)
                store_failures = [*self._recent(store_failures), loop.time()]
                await asyncio.sleep(backoff_s(len(store_failures), first_s=self._pause_s, most_s=LONGEST_PAUSE_S))
                continue
            except Exception as death:
                logger.exception("the background task %r died and is started again", name)
                error = death
            deaths = [*self._recent(deaths), loop.time()]
            if len(deaths) >= self._deaths:
                logger.critical("the background task %r died %d times: giving up", name, len(deaths))
                self.failure = error
                self._failed.set()
                return
            await asyncio.sleep(backoff_s(len(deaths), first_s=self._pause_s))

    def _recent(self, times: list[float]) -> list[float]:
        now = asyncio.get_running_loop().time()
        return [at for at in times if now - at < self._window_s]
