"""The event loop of the clients without await: one thread for all of them in a process."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any, TypeVar

from ..core.errors import PreconditionFailed

T = TypeVar("T")
S = TypeVar("S")

_STOP_S = 10.0
_lock = threading.Lock()


class Background:
    """An event loop on a thread. Any number of threads may call it at once."""

    _current: "Background | None" = None

    def __init__(self) -> None:
        self._pid = os.getpid()
        self.users = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="kagzi-sync", daemon=True)
        self._thread.start()

    @classmethod
    def acquire(cls) -> "Background":
        """The event loop of this process, valid until `release`."""
        with _lock:
            current = cls._current
            if current is None or not current.is_of_this_process:
                current = cls._current = cls()
            current.users += 1
            return current

    @property
    def is_of_this_process(self) -> bool:
        """False after a fork, which does not copy threads."""
        return self._pid == os.getpid()

    def release(self) -> None:
        """The last user to release it ends the thread."""
        with _lock:
            self.users -= 1
            if self.users or not self.is_of_this_process:
                return
            if Background._current is self:
                Background._current = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)

    def call(self, act: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Returns or raises the result of the coroutine. A caller that is interrupted (Ctrl-C) cancels it. Raises
        PreconditionFailed where waiting would never end, or would block an event loop."""
        self.check()
        future = asyncio.run_coroutine_threadsafe(act(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, make: Callable[[], AsyncIterator[T]], convert: Callable[[T], S]) -> Generator[S]:
        """Yield one row after the other, each converted; closing the iterator closes the source."""
        rows = make()
        close = getattr(rows, "aclose", None)

        async def following() -> tuple[T] | None:
            try:
                return (await anext(rows),)
            except StopAsyncIteration:  # a future cannot hold it
                return None

        try:
            while (row := self.call(following)) is not None:
                yield convert(row[0])
        finally:
            if close is not None:
                self.call(close)

    def check(self) -> None:
        if not self.is_of_this_process:
            raise PreconditionFailed(
                "this client was connected before the process was forked, and its connection belongs to the parent. "
                "Connect in the child: with gunicorn in post_fork, with Celery in worker_process_init, or at first use."
            )
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise PreconditionFailed(
            "kagzi.sync waits for answers, which would stop the event loop that runs in this thread. Use kagzi.Kagzi "
            "with await here, or call it from another thread: await asyncio.to_thread(...)."
        )

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


def same(value: T) -> T:
    """A row that needs no conversion."""
    return value
