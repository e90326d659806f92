"""Threads for sync step bodies. Daemons: a body that never returns must not keep the process from ending."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context as Variables
from queue import SimpleQueue
from typing import Any, NamedTuple


class Job(NamedTuple):
    """A sync body on its way. Cancelling `done` leaves the thread alone: a thread cannot be stopped."""

    loop: asyncio.AbstractEventLoop
    call: Callable[[], Any]
    variables: Variables
    started: "asyncio.Future[None] | None"  # it has a thread now
    done: "asyncio.Future[Any]"


class StepThreads:
    """At most `size` sync bodies at once; more wait. An abandoned body keeps its thread until it returns by itself."""

    def __init__(self, size: int) -> None:
        self._size = max(size, 1)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0  # threads without work; below zero: jobs without thread

    def begin(self, call: Callable[[], Any], variables: Variables, *, tell_start: bool) -> Job:
        """Run `call` in a thread, with these context variables."""
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] | None = loop.create_future() if tell_start else None
        job = Job(loop, call, variables, started, loop.create_future())
        with self._lock:
            if self._free <= 0 and self._threads < self._size:
                self._threads += 1
                name = f"kagzi-step-{self._threads}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            else:
                self._free -= 1
        self._jobs.put(job)
        return job

    def close(self) -> None:
        """Idle threads end now, busy ones when their bodies return."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not job.done.cancelled():
                _perform(job)
            del job
            with self._lock:
                self._free += 1


def _perform(job: Job) -> None:
    if job.started is not None:
        _tell(job, job.started, None, None)
    try:
        value, error = job.variables.run(job.call), None
    except BaseException as raised:  # noqa: BLE001  whatever a body raises is its result
        value, error = None, raised
    _tell(job, job.done, value, error)


def _tell(job: Job, future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
    if not job.loop.is_closed():
        try:
            job.loop.call_soon_threadsafe(_settle, future, value, error)
        except RuntimeError:
            return  # closed at this moment: nobody is interested any more


def _settle(future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future cannot carry it
        future.set_exception(RuntimeError(f"the step raised StopIteration({error.value!r})"))
    else:
        future.set_exception(error)
