"""The workers of a test environment: the SDK's own executor and session, in the loop of the test."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context as Variables
from functools import partial
from typing import Any

import msgspec

from ...core.errors import Unavailable
from ...core.providers import Clock, Ids
from ...core.records import Served, WorkerRecord
from ...core.version import __version__
from ...sdk.execution.calls.bodies import StepBody
from ...sdk.schemas.registered import registered_schemas
from ...sdk.step_logs.sender import StepLogSender
from ...sdk.transport.payload_codec import Codec
from ...sdk.worker.executor import Executor
from ...sdk.worker.registry import Registry
from ...sdk.worker.session import Session
from ...sdk.workflow.retry import Retry
from ...sdk.workflow.workflow import Workflow
from ...wire.calls.call import OpenCall
from ...wire.requests import write_register
from ...wire.schemas import add_schemas
from .boundaries import Boundary, ObservedCalls, OnBoundary
from .clock import VirtualTimers
from .connection import InProcessConnection
from .mocks import Mocks

BUILD_ID = "test"
MAX_CONCURRENT = 1_000
AnyWorkflow = Workflow[Any, Any]


class Workers:
    """The workers of one environment. Workflows that are registered later get their own worker.

    `kill` and `start` are for tests of crashes. `on_boundary`, if set before a worker starts, receives every boundary
    that its runs reach, and may call `kill` there.
    """

    def __init__(
        self,
        find_server: Callable[[], OpenCall],
        *,
        clock: Clock,
        ids: Ids,
        timers: VirtualTimers,
        mocks: Mocks,
        retry: Retry | None = None,
        codec: Codec | None = None,
    ) -> None:
        self.on_boundary: OnBoundary | None = None
        self.bodies: dict[tuple[str, str], int] = {}
        """How many bodies are running, by run and step."""
        self._find_server = find_server
        self._clock = clock
        self._ids = ids
        self._timers = timers
        self._mocks = mocks
        self._retry = retry
        self._codec = codec
        self._known: dict[str, dict[Served, AnyWorkflow]] = {}  # by namespace
        self._served: set[tuple[str, Served]] = set()
        self._workers: list[_Worker] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._problem: BaseException | None = None

    # --- what is served -----------------------------------------------------------------------------------------------

    def know(self, namespace: str, workflows: Iterable[AnyWorkflow]) -> None:
        """A workflow of the same name and version replaces the previous one when the workers are restarted."""
        known = self._known.setdefault(namespace, {})
        for workflow in workflows:
            known[Served(workflow.name, workflow.version)] = workflow

    def known(self, namespace: str) -> list[AnyWorkflow]:
        return list(self._known.get(namespace, {}).values())

    async def serve(self) -> None:
        """Returns when all known workflows are served. Raises the server's error if it refuses one."""
        await self._serve_new()
        while self._under_way:
            await asyncio.wait(set(self._under_way))
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem

    async def _serve_new(self) -> None:
        for namespace, known in list(self._known.items()):
            new = [workflow for key, workflow in known.items() if (namespace, key) not in self._served]
            if new:
                self._served.update((namespace, Served(workflow.name, workflow.version)) for workflow in new)
                worker = _Worker(self, namespace, Registry(new))
                self._workers.append(worker)
                await worker.start()

    def _serve_soon(self, namespace: str, workflow: AnyWorkflow) -> None:
        """Called when a child is about to be started."""
        if (namespace, Served(workflow.name, workflow.version)) not in self._served:
            self.know(namespace, (workflow,))
            self._in_background(self._serve_new())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        create = asyncio.get_running_loop().create_task
        task = Variables().run(
            create, work, name="kagzi-test-worker"
        )  # in a run's context it would become one of the run's tasks
        self._under_way.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._problem = task.exception()

    # --- start and kill -----------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End all workers as SIGKILL would: nothing is handed back, sent or received any more. May be called at any
        boundary. The server sees their streams break."""
        workers, self._workers = self._workers, []
        self._served.clear()
        for worker in workers:
            worker.kill()
            self._in_background(worker.clean_up())

    async def start(self) -> None:
        """Start new workers for all known workflows, as after `kill`."""
        await self.serve()

    async def close(self) -> None:
        self.kill()
        while self._under_way:
            await asyncio.wait(set(self._under_way))
        self._problem = None

    def drop(self) -> None:
        """Like `close`, for callers that cannot await: the loop is not running, or closed."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.drop()

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a worker holds a run or is being started. A run that can only wait for Kagzi is not held."""
        return bool(self._under_way) or any(worker.executor.active for worker in self._workers)

    def running(self) -> list[str]:
        """Descriptions of the steps whose bodies are running."""
        threads = [body.step for worker in self._workers for body in worker.executor.threads.busy()]
        return sorted({*(f"{step_id} of run {run_id}" for run_id, step_id in self.bodies), *threads})

    def raise_problem(self) -> None:
        """Raises the error because of which a worker could not be started for a child, or cannot serve any longer."""
        for worker in self._workers:
            worker.raise_problem()
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem

    def options(self, worker: "_Worker") -> dict[str, Any]:
        """The options that all executors have in common."""
        return {
            "retry": self._retry,
            "build_id": BUILD_ID,
            "encoded": self._codec is not None,
            "resident_wait_ms": 0,
            "timers": self._timers,
            "replace_body": worker.replaced,
            "on_child": partial(self._serve_soon, worker.namespace),
        }

    def connect(self, observe: Callable[[OpenCall], OpenCall]) -> InProcessConnection:
        return InProcessConnection(lambda: observe(self._find_server()), self._clock, self._codec)

    def new_id(self) -> str:
        return self._ids.token()

    def mocked(self, body: StepBody) -> StepBody:
        return self._mocks.replace(body)


class _Worker:
    """One session."""

    def __init__(self, workers: Workers, namespace: str, registry: Registry) -> None:
        self.namespace = namespace
        self._workers = workers
        self._is_dead = False
        self._calls: ObservedCalls | None = None
        self._connection = workers.connect(self._observe)
        record = WorkerRecord(
            worker_id=workers.new_id(),
            namespace=namespace,
            served=registry.served,
            max_concurrent=MAX_CONCURRENT,
            hostname="test",
            sdk_version=__version__,
            build_id=BUILD_ID,
        )
        self.executor = Executor(registry, worker_id=record.worker_id, **workers.options(self))
        self._session = Session(
            self._connection,
            add_schemas(write_register(record), registered_schemas(registry)),
            self.executor,
            on_welcome=_nothing,
            on_drain=_nothing,
        )
        self._logs = StepLogSender(self._session.report_diagnostics, self.executor.step_logs)

    def _observe(self, open_call: OpenCall) -> OpenCall:
        if self._workers.on_boundary is None:
            return open_call
        self._calls = ObservedCalls(open_call, self._report)
        return self._calls

    def _report(self, boundary: Boundary) -> None:
        if self._workers.on_boundary is not None and not self._is_dead:
            Variables().run(self._workers.on_boundary, boundary)  # tasks that it starts are not part of the run

    async def start(self) -> None:
        """Raises the server's error if it refuses the worker. Returns if the worker is killed meanwhile."""
        try:
            await self._session.start()
        except (asyncio.CancelledError, Unavailable):
            task = asyncio.current_task()
            if not self._is_dead or (task is not None and task.cancelling()):
                raise
        if not self._is_dead:
            self._logs.start()

    def raise_problem(self) -> None:
        ended = self._session.ended
        if ended.done() and not ended.cancelled():
            ended.result()

    # --- bodies -------------------------------------------------------------------------------------------------------

    def replaced(self, run_id: str, body: StepBody, attempt: int) -> StepBody:
        """The body to execute: that of the mock, if there is one, wrapped so that it reports its boundaries."""
        body = self._workers.mocked(body)
        if self._workers.on_boundary is None and not body.is_async:
            return body  # the thread pool tracks it
        fn = body.fn if body.is_async else partial(_in_thread, body.fn)
        observed = partial(self._observed, run_id, body.step_id, attempt, fn)
        return msgspec.structs.replace(body, is_async=True, fn=observed)

    async def _observed(
        self, run_id: str, step_id: str, attempt: int, fn: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        boundary = Boundary("body", "before", run_id, step_id, attempt)
        await self._reach(boundary)
        bodies, key = self._workers.bodies, (run_id, step_id)
        bodies[key] = bodies.get(key, 0) + 1
        try:
            return await fn(*args, **kwargs)
        finally:
            bodies[key] -= 1
            if not bodies[key]:
                del bodies[key]
            await self._reach(boundary._replace(when="after"))

    async def _reach(self, boundary: Boundary) -> None:
        """Report a boundary. Does not return if the worker is killed there."""
        self._report(boundary)
        if self._is_dead:
            await asyncio.get_running_loop().create_future()  # cancelled with the run

    # --- stopping -----------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        self._is_dead = True
        if self._calls is not None:
            self._calls.break_off()
        self.executor.abandon_all("the worker was killed")
        self._session.ended.cancel()

    async def clean_up(self) -> None:
        self._logs.stop()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._session.close()
        self.executor.close()
        await self._connection.close()

    def drop(self) -> None:
        self._is_dead = True
        self._logs.stop()
        self.executor.threads.close()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._session.ended.cancel()


async def _in_thread(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    value = await asyncio.to_thread(fn, *args, **kwargs)
    return await value if inspect.isawaitable(value) else value


def _nothing(*_: object) -> None: ...
