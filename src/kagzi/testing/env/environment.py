"""The environment of a test: a client, with its server and workers in the same process.

The server (engine, store, services) is the real one, on SQLite in memory and on its own event loop inside the loop of
the test (`guest_loop`, `server`). The workers are the SDK's executor and session on the loop of the test itself, so
that bodies of steps can use the test's objects (`workers`). The in-process transport connects them. All of them use one
clock, which moves only when the test moves it or waits for a run (`settling`).

For tests of crashes, inside the kit:

* `env._workers.kill()` ends all workers as SIGKILL would; `await env._workers.start()` starts new ones for the same
  workflows. The leases of the killed workers end 10 ms later by the clock, so `await run.result()`, or
  `await env.settle()` after `await env.advance("1s")`, lets the new workers take over their runs.
* `env._workers.on_boundary = hook`, set before the first start, receives every `boundaries.Boundary`: before and after
  each body, before and after each operation (step, sleep, signal, child, race, park, end of the run). The hook is
  called in the loop of the test and may call `kill()`.
* `env._workers.running()` names the bodies that are running.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument, PreconditionFailed
from ...core.records import DEFAULT_NAMESPACE
from ...core.times import from_datetime, to_datetime, us_from_timedelta
from ...sdk.client.backend import Backend
from ...sdk.client.client import Kagzi
from ...sdk.client.run import Run
from ...sdk.client.start_batching import Starter
from ...sdk.garbage import none_collected
from ...sdk.transport.connection import Connection
from ...sdk.transport.payload_codec import Codec
from ...sdk.workflow.retry import Retry
from ...sdk.workflow.step import Step
from ...sdk.workflow.workflow import Workflow
from ...wire.calls.call import OpenCall
from .client import TestBackend, TestStarter, schedules_operation
from .clock import SeededIds, VirtualClock, VirtualTimers
from .connection import InProcessConnection
from .errors import WaitsForever
from .mocks import Mocks
from .workers import Workers

if TYPE_CHECKING:
    from ...sdk.client.operations.schedules import Schedules
    from ..crash.report import CrashReport
    from .server import TestServer
    from .settling import Settling

__tracebackhide__ = True  # pytest shows the line of the test instead

O = TypeVar("O")  # noqa: E741  output, as in the documentation

START = datetime(2026, 1, 1, tzinfo=UTC)
"""The initial time of the clock."""


class Environment(Kagzi):
    """TestEnv without `crash_everywhere`. Use `TestEnv.open`, whose arguments are `workflows`, `namespace`, `start_at`,
    `retry` and `codec`."""

    __test__ = False
    schedules: "Schedules" = schedules_operation()  #: the client's schedules; they fire by this clock

    def __init__(
        self,
        *workflows: Workflow[Any, Any],
        namespace: str = DEFAULT_NAMESPACE,
        start_at: datetime = START,
        retry: Retry | None = None,
        codec: Codec | None = None,
    ) -> None:
        self._clock = VirtualClock(0)
        self._start_at = from_datetime(start_at, what="start_at")
        self.timers = VirtualTimers(self._clock)
        self._mocks = Mocks()
        self._codec = codec
        self._workers = Workers(
            self._find_server,
            clock=self._clock,
            ids=SeededIds(),
            timers=self.timers,
            mocks=self._mocks,
            retry=retry,
            codec=codec,
        )
        self._host: asyncio.AbstractEventLoop | None = None
        self._server: TestServer | None = None
        self._settling: Settling | None = None
        self._is_closed = False
        self.instead_of_run: Callable[[Workflow[Any, Any], Any], Awaitable[CrashReport]] | None = None
        super().__init__(InProcessConnection(self._find_server, self._clock, codec), namespace)
        self.register(*workflows)

    def _make_backend(self, connection: Connection) -> Backend:
        return TestBackend(connection, self)

    def _make_starter(self, backend: Backend, namespace: str) -> Starter:
        return TestStarter(backend, namespace, self)

    # --- life ---------------------------------------------------------------------------------------------------------

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *workflows: Workflow[Any, Any],
        namespace: str = DEFAULT_NAMESPACE,
        start_at: datetime = START,
        retry: Retry | None = None,
        codec: Codec | None = None,
    ) -> "AsyncGenerator[Self]":
        """Open an environment for the duration of the block.

        Args:
            workflows: Workflows to execute. Only workflows that are started by name have to be listed; the others, and
                their children, are found when they are started.
            namespace: The namespace of the client.
            start_at: The initial time of the clock. Default: 2026-01-01 00:00 UTC.
            retry: The default retry policy of steps, as for a worker.
            codec: As in `Kagzi.connect`.
        """
        env = cls(*workflows, namespace=namespace, start_at=start_at, retry=retry, codec=codec)
        try:
            yield env
        finally:
            await env.close()

    def _opened(self) -> "tuple[TestServer, Settling]":
        """Open the environment on first use, in the event loop that runs."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            raise PreconditionFailed("A TestEnv needs asyncio. Use it in an async test that asyncio runs.") from None
        if self._is_closed:
            raise PreconditionFailed("This TestEnv is closed. Open another one.")
        if self._server is None or self._settling is None:
            with none_collected():
                from .server import TestServer  # noqa: PLC0415  importing kagzi.testing loads no server
                from .settling import Settling  # noqa: PLC0415  as above

                self._host = here
                self._server = TestServer(here, self._clock, self._start_at)
            self._settling = Settling(self._server, self._workers, self.timers, self._clock)
        elif here is not self._host:
            raise PreconditionFailed(
                "This TestEnv was first used in another event loop. Give tests and fixture the same loop: with "
                'pytest-asyncio, @pytest.mark.asyncio(loop_scope="session") for an environment of the session.'
            )
        return self._server, self._settling

    def _find_server(self) -> OpenCall:
        return self._opened()[0].open_call

    async def close(self) -> None:
        """Stop the workers and the server. Nothing is kept."""
        if self._is_closed:
            return
        if self._server is not None:
            await self._workers.close()
            await super().close()
        self._is_closed = True
        if self._server is not None:
            self._server.close()

    def drop(self) -> None:
        """Like `close`, for callers that cannot await: a fixture whose event loop may be closed."""
        if not self._is_closed and self._server is not None:
            self._workers.drop()
            self._server.close()
        self._is_closed = True

    # --- workflows and steps ------------------------------------------------------------------------------------------

    def register(self, *workflows: Workflow[Any, Any]) -> None:
        """Execute these `workflows`, too. Needed only for workflows that are started by name."""
        for workflow in workflows:
            if not isinstance(workflow, Workflow):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
                raise InvalidArgument(f"{workflow!r} is not a workflow. Decorate it with @workflow.", field="workflows")
        self._workers.know(self._namespace, workflows)

    async def serve(self, workflow: Workflow[Any, Any] | str | None, namespace: str | None) -> None:
        """Returns when a worker serves the workflow."""
        self._opened()
        if isinstance(workflow, Workflow):
            self._workers.know(namespace or self._namespace, (workflow,))
        await self._workers.serve()

    def mock(
        self,
        step: str | Step[..., Any],
        *,
        returns: Any = None,
        raises: Sequence[BaseException] | None = None,
        calls: Callable[..., Any] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Replace a step.

        Args:
            step: Its name; the id of one of its executions (`"llm#2"`, `"enrich[3]"`); or the `@step` function.
            returns: What it returns.
            raises: What its first attempts raise, one each. After that, `returns` or `calls` applies.
            calls: A function, sync or async, that is called instead with the arguments of the step.

        Returns the list of its calls, each a tuple of arguments; it grows as the step is executed. A second mock of the
        same step replaces the first. Raises InvalidArgument.
        """
        return self._mocks.add(step, returns, raises, calls)

    # --- time ---------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The time of the clock."""
        return to_datetime(max(self._clock.now(), self._start_at))

    async def advance(self, duration: Duration) -> None:
        """Move the clock by exactly this `duration`. Everything that becomes due meanwhile happens in order; runs that
        can continue do so until they wait again."""
        _, settling = self._opened()
        by_us = us_from_timedelta(parse_duration(duration, what="duration"))
        await self._workers.serve()
        await settling.advance_to(self._clock.now() + by_us)

    async def settle(self) -> None:
        """Let everything happen that needs no time. Returns when all runs wait or have ended."""
        _, settling = self._opened()
        await self._workers.serve()
        await settling.settle()

    async def wait_for_run(self, future: "asyncio.Future[Any]", namespace: str, run_id: str) -> None:
        """Advance the clock until `future` is done: the run has ended, or its next event has happened. Raises
        WaitsForever."""
        _, settling = self._opened()
        await self._workers.serve()

        async def why(remark: str) -> BaseException:
            return await self._waits_forever(namespace, run_id, remark)

        await settling.wait(future, why)

    async def _waits_forever(self, namespace: str, run_id: str, remark: str) -> WaitsForever:
        explanation = await self.get(run_id, namespace=namespace).explain()
        lines = [remark or "Nothing will happen any more, and the run has not ended", str(explanation)]
        return WaitsForever(f"run {run_id}: " + ". ".join(line.rstrip(".") for line in lines) + ".")

    # --- replay -------------------------------------------------------------------------------------------------------

    async def replay(self, run: Run[O]) -> O:
        """Execute the workflow again from the history of `run` alone, as after a crash: no body of a step runs, and the
        code must make the recorded calls.

        Returns or raises what the run ended with. Raises Diverged, which names the line, if the code does not match the
        history; AssertionError if it ends differently; PreconditionFailed if the run has not ended.
        """
        from .replaying import replay  # noqa: PLC0415  many tests never replay

        return await replay(self, run, self._workers.known(str(run.namespace)), self._codec)
