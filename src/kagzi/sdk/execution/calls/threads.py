"""Threads for sync step bodies. Daemon threads: a body that never returns must not keep the process alive."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from queue import SimpleQueue
from typing import Any, NamedTuple

_MUCH_S = 0.2  # of CPU time
_SPENT = 100


class Job(NamedTuple):
    """A sync body that waits for a thread or runs. Cancelling `done` does not stop the thread, which is impossible."""

    loop: asyncio.AbstractEventLoop
    call: Callable[[], Any]
    variables: Variables
    started: "asyncio.Future[None] | None"  # done when it has a thread
    done: "asyncio.Future[Any]"
    step: str  # a description for messages
    queued_at: float


class Busy(NamedTuple):
    """A thread that executes a body. `cpu_s`: the CPU time of the thread when the body began."""

    thread: int
    step: str
    since: float
    cpu_s: float


class Spent(NamedTuple):
    """A body that has ended, and the CPU time of its thread at that point."""

    body: Busy
    cpu_s: float


class Crowd(NamedTuple):
    """Bodies that wait for a thread. `oldest_at`: since when the first of them waits."""

    waiting: int
    oldest_at: float
    busy: tuple[Busy, ...]


class StepThreads:
    """Executes at most `size` sync bodies at once; others wait. An abandoned body keeps its thread until it returns."""

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0  # idle threads; negative: jobs without a thread
        self._waiting: dict[int, Job] = {}
        self._busy: dict[int, Busy] = {}
        self._spent: deque[Spent] = deque(maxlen=_SPENT)

    def begin(self, call: Callable[[], Any], variables: Variables, *, report_start: bool, step: str = "") -> Job:
        """Execute `call` in a thread, with these context variables."""
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] | None = loop.create_future() if report_start else None
        job = Job(loop, call, variables, started, loop.create_future(), step, time.monotonic())
        with self._lock:
            self._waiting[id(job)] = job
            if self._free <= 0 and self._threads < self.size:
                self._threads += 1
                name = f"kagzi-step-{self._threads}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            else:
                self._free -= 1
        self._jobs.put(job)
        return job

    def busy(self) -> tuple[Busy, ...]:
        """May be called from any thread."""
        with self._lock:
            return tuple(self._busy.values())

    def spent(self) -> list[Spent]:
        """Bodies that used much CPU time and ended since the last call. May be called from any thread."""
        if not self._spent:
            return []
        with self._lock:
            spent = list(self._spent)
            self._spent.clear()
        return spent

    def crowd(self) -> Crowd | None:
        """None: no body waits. May be called from any thread."""
        with self._lock:
            waiting = [job for job in self._waiting.values() if not job.done.cancelled()]
            if not waiting:
                return None
            return Crowd(len(waiting), waiting[0].queued_at, tuple(self._busy.values()))

    def close(self) -> None:
        """Idle threads end now, busy ones when their bodies return."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)

    def _work(self) -> None:
        me = threading.get_ident()
        while (job := self._jobs.get()) is not None:
            with self._lock:
                self._waiting.pop(id(job), None)
                self._busy[me] = Busy(me, job.step, time.monotonic(), time.thread_time())
            if not job.done.cancelled():
                _perform(job)
            del job
            cpu_s = time.thread_time()
            with self._lock:
                self._free += 1
                body = self._busy.pop(me)
                if cpu_s - body.cpu_s > _MUCH_S:
                    self._spent.append(Spent(body, cpu_s))


def _perform(job: Job) -> None:
    if job.started is not None:
        _report(job, job.started, None, None)
    try:
        value, error = job.variables.run(job.call), None
    except BaseException as raised:  # noqa: BLE001  any exception of a body is its result
        value, error = None, raised
    _report(job, job.done, value, error)


def _report(job: Job, future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
    if not job.loop.is_closed():
        try:
            job.loop.call_soon_threadsafe(_settle, future, value, error)
        except RuntimeError:
            return  # the loop was just closed: the result is not needed


def _settle(future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future cannot hold it
        future.set_exception(RuntimeError(f"the step raised StopIteration({error.value!r})"))
    else:
        future.set_exception(error)
