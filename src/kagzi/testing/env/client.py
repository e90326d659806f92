"""The parts of a client that differ in a test: waiting advances the clock, and workflows that it starts are served."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...core.duration import Duration, parse_duration
from ...core.records import RunEnd, RunKey
from ...sdk.client.backend import Backend
from ...sdk.client.run import Run
from ...sdk.client.start import StartOptions
from ...sdk.client.start_batching import Starter
from ...sdk.client.waits import Waits
from ...sdk.transport.connection import Connection
from ...sdk.workflow.signals import Signal
from ...sdk.workflow.workflow import Workflow
from .clock import VirtualTimers

if TYPE_CHECKING:
    from ...sdk.client.operations.schedule_options import ScheduleOptions
    from ...sdk.client.operations.schedules import Schedules
    from ..crash.report import CrashReport


T = TypeVar("T")

__tracebackhide__ = True  # pytest shows the line of the test instead


class Waiting(Protocol):
    """What the environment does while a client waits."""

    timers: VirtualTimers

    async def wait_for_run(self, future: "asyncio.Future[Any]", namespace: str, run_id: str) -> None: ...
    @property
    def instead_of_run(self) -> "Callable[[Workflow[Any, Any], Any], Awaitable[CrashReport]] | None": ...
    async def serve(self, workflow: Workflow[Any, Any] | str | None, namespace: str | None) -> None: ...


async def _let_time_pass(waiting: Coroutine[Any, Any, T], run: RunKey, env: Waiting) -> T:
    """Await something of this run while the clock advances. Raises WaitsForever."""
    future = asyncio.ensure_future(waiting)
    try:
        await env.wait_for_run(future, run.namespace, run.run_id)
    finally:
        if not future.done():
            future.cancel()
            await asyncio.wait((future,))
    return future.result()


class TestWaits(Waits):
    __test__ = False

    def __init__(self, connection: Connection, new_id: Callable[[], str], env: Waiting) -> None:
        super().__init__(connection, new_id)
        self._env = env

    async def ended(self, namespace: str, run_id: str) -> RunEnd:
        return await _let_time_pass(super().ended(namespace, run_id), RunKey(namespace, run_id), self._env)


class TestBackend(Backend):
    __test__ = False

    def __init__(self, connection: Connection, env: Waiting) -> None:
        super().__init__(connection)
        self._env = env
        self.waits = TestWaits(connection, self.new_id, env)

    async def events(self, run: RunKey, after: int) -> AsyncGenerator[dict[str, Any]]:
        async with aclosing(super().events(run, after)) as events:
            while (event := await _let_time_pass(_next(events), run, self._env)) is not None:
                yield event

    def time_limit(self, limit: Duration | None, what: str) -> AbstractAsyncContextManager[object]:
        return nullcontext() if limit is None else _TimeLimit(limit, what, self._env)


async def _next(events: AsyncGenerator[dict[str, Any]]) -> dict[str, Any] | None:
    """The next event, or None after the last one: a future cannot hold StopAsyncIteration."""
    return await anext(events, None)


class _TimeLimit(AbstractAsyncContextManager[None]):
    """A timeout by the clock of the environment."""

    def __init__(self, limit: Duration, what: str, env: Waiting) -> None:
        self._limit = limit
        self._seconds = parse_duration(limit, what="timeout").total_seconds()
        self._what = what
        self._env = env
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._timer = self._env.timers.call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self._timeout.reschedule(asyncio.get_running_loop().time())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise TimeoutError(f"{self._what} has not ended within {self._limit}. It continues.") from None


class TestStarter(Starter):
    __test__ = False

    def __init__(self, backend: Backend, namespace: str, env: Waiting) -> None:
        super().__init__(backend, namespace)
        self._env = env

    async def start(self, options: StartOptions, request_id: str | None = None) -> Run[Any]:
        await self._env.serve(options.workflow, options.namespace or self._namespace)
        return await super().start(options, request_id)

    async def run(self, options: StartOptions) -> Any:
        await self._env.serve(options.workflow, options.namespace or self._namespace)
        if self._env.instead_of_run is not None and isinstance(options.workflow, Workflow):
            report = await self._env.instead_of_run(options.workflow, options.input)
            if not report.failed:
                return report.result
        return await super().run(options)

    async def signal_with_start(self, options: StartOptions, signal: Signal[Any] | str, value: Any) -> Run[Any]:
        await self._env.serve(options.workflow, options.namespace or self._namespace)
        return await super().signal_with_start(options, signal, value)


class _Client(Waiting, Protocol):
    _backend: Backend
    _namespace: str


class _SchedulesOperation:
    def __get__(self, client: _Client | None, owner: type) -> Any:
        if client is None:
            return self
        return _schedules_of(client._backend, client._namespace, client)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  within the kit


def schedules_operation() -> Any:
    """An attribute of a client: its schedules. The workflows that they start are served."""
    return _SchedulesOperation()


def _schedules_of(backend: Backend, namespace: str, env: Waiting) -> "Schedules":
    from ...sdk.client.operations.schedule_records import Schedule  # noqa: PLC0415  most tests have none
    from ...sdk.client.operations.schedules import Schedules  # noqa: PLC0415  as above

    class TestSchedules(Schedules):
        async def create(self, options: "ScheduleOptions", request_id: str) -> Schedule:
            await env.serve(options.workflow, options.namespace)
            return await super().create(options, request_id)

        async def upsert(self, options: "ScheduleOptions", request_id: str) -> Schedule:
            await env.serve(options.workflow, options.namespace)
            return await super().upsert(options, request_id)

    return TestSchedules(backend, namespace)
