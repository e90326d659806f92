"""Background tasks are watched: one that dies is started again, and one that keeps dying stops the engine."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from .outages import backoff_s

logger = logging.getLogger("kagzi.engine")

DEATHS = 5
WINDOW_S = 60.0


class Supervisor:
    """Every task is given as the function that makes its coroutine, so that it can be made again."""

    def __init__(self, *, deaths: int = DEATHS, window_s: float = WINDOW_S, pause_s: float = 0.1) -> None:
        self._deaths = deaths
        self._window_s = window_s
        self._pause_s = pause_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed: asyncio.Event = asyncio.Event()
        self.failure: BaseException | None = None

    def watch(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks[name] = asyncio.create_task(self._keep_alive(name, work), name=f"kagzi-{name}")

    async def wait_failed(self) -> BaseException:
        """Returns when a task has died more often than it may."""
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
        while True:
            try:
                await work()
                error: BaseException = RuntimeError(f"{name} returned, which it never should")
                logger.error("the background task %r ended and is started again", name)
            except Exception as death:
                logger.exception("the background task %r died and is started again", name)
                error = death
            now = loop.time()
            deaths = [at for at in deaths if now - at < self._window_s]
            deaths.append(now)
            if len(deaths) >= self._deaths:
                logger.critical("the background task %r died %d times: giving up", name, len(deaths))
                self.failure = error
                self._failed.set()
                return
            await asyncio.sleep(backoff_s(len(deaths), first_s=self._pause_s))
