"""An event loop inside another one: its callbacks run in iterations of the host, and its time is set from outside.

The server of a test environment runs on it. So the server's waits take no real time, while the test and the bodies of
its steps run on the host in real time. One thread does everything, in a reproducible order.
"""

import asyncio
import heapq
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context as Variables
from typing import Any, TypeVar, TypeVarTuple

logger = logging.getLogger("kagzi.testing")

Answer = TypeVar("Answer")
Args = TypeVarTuple("Args")

_CANCELLED_MAX = 100
_PASSES_MAX = 100_000


class _Ready(asyncio.Handle):
    def run(self) -> None:
        self._run()


class _Timer(asyncio.TimerHandle):
    def run(self) -> None:
        self._run()


class GuestLoop(asyncio.AbstractEventLoop):
    """`handled` counts the callbacks that have run: if it has not changed, nothing has happened.

    Call everything but `call_soon` and `call_soon_threadsafe` in the thread of the host."""

    def __init__(self, host: asyncio.AbstractEventLoop, now_s: float) -> None:
        self.host = host
        self.handled = 0
        self._now_s = now_s
        self._thread = threading.get_ident()
        self._ready: deque[_Ready | _Timer] = deque()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._cancelled = 0
        self._serial = itertools.count()
        self._pass_due = False
        self._running = self._closed = False

    # --- time ---------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now_s

    def move_to(self, now_s: float) -> None:
        """Advance the time; never backwards. Callbacks that become due run in the next iteration."""
        self._now_s = max(now_s, self._now_s)
        if self.next_timer() <= self._now_s:
            self._pass_soon()

    def next_timer(self) -> float:
        """When the next timer is due; infinity if there is none."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
            self._cancelled -= 1
        return timers[0][0] if timers else float("inf")

    # --- callbacks ----------------------------------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[*Args], object], *args: *Args, context: Variables | None = None
    ) -> asyncio.Handle:
        handle = _Ready(callback, args, self, context)
        self._ready.append(handle)
        if not self._pass_due:
            self._pass_soon()
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Args], object], *args: *Args, context: Variables | None = None
    ) -> asyncio.Handle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        if threading.get_ident() == self._thread:
            return self.call_soon(callback, *args, context=context)
        handle = _Ready(callback, args, self, context)
        self._ready.append(handle)
        self.host.call_soon_threadsafe(self._pass)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Args], object], *args: *Args, context: Variables | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Args], object], *args: *Args, context: Variables | None = None
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._serial), timer))
        if when <= self._now_s:
            self._pass_soon()
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by asyncio. Without this, cancelled timers that are far in the future would stay for long."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_MAX and self._cancelled * 2 > len(self._timers):
            self._timers = [each for each in self._timers if not each[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    # --- iterations ---------------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to do at the current time."""
        return not self._ready and self.next_timer() > self._now_s

    def _pass_soon(self) -> None:
        if not self._pass_due and not self._closed and not self.host.is_closed():
            self._pass_due = True
            # The garbage collector may end a task of this loop in any thread; then the host must be woken.
            in_thread = threading.get_ident() == self._thread
            (self.host.call_soon if in_thread else self.host.call_soon_threadsafe)(self._pass)

    def _pass(self) -> None:
        """One iteration: run what is ready or due now. Callbacks that this makes ready run in the next one."""
        self._pass_due = False
        if self._closed or self._running:
            return
        while self.next_timer() <= self._now_s:
            self._ready.append(heapq.heappop(self._timers)[2])
        host = asyncio._get_running_loop()  # noqa: SLF001  meant for event loops
        asyncio._set_running_loop(self)  # noqa: SLF001  as above
        self._running = True
        try:
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    self.handled += 1
                    handle.run()
        finally:
            self._running = False
            asyncio._set_running_loop(host)  # noqa: SLF001  as above
        if self._ready:
            self._pass_soon()

    def run_now(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        """Run the coroutine to its end, and all that is ready, without the host. It must not wait for time."""
        task = self.create_task(coroutine)
        for _ in range(_PASSES_MAX):
            if task.done():
                return task.result()
            if self.is_idle:
                break
            self._pass()
        task.cancel()
        raise RuntimeError(f"{task!r} waits for what does not happen on its own loop")

    def end_all(self) -> None:
        """Cancel every task and close. Tasks that do not end are ignored."""
        if self._closed:
            return
        for task in asyncio.all_tasks(self):
            task.cancel()
        for _ in range(_PASSES_MAX):
            if not self._ready:
                break
            self._pass()
        self.close()

    # --- the interface of an event loop -------------------------------------------------------------------------------

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: "Generator[Any, None, Answer] | Coroutine[Any, Any, Answer]",
        *,
        name: str | None = None,
        context: Variables | None = None,
        **more: Any,
    ) -> "asyncio.Task[Answer]":
        return asyncio.Task(coro, loop=self, name=name, context=context, **more)

    def run_in_executor(self, executor: Any, func: Callable[[*Args], Answer], *args: *Args) -> "asyncio.Future[Answer]":
        """Call it at once, in this thread: there is no other."""
        future: asyncio.Future[Answer] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  passed on to the caller
            future.set_exception(error)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        logger.error("in the server of a test: %s", context.get("message"), exc_info=context.get("exception"))

    def get_task_factory(self) -> None:
        return None

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._ready.clear()
        self._timers.clear()
