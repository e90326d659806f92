"""One run of a workflow, with its worker killed or its results delayed as planned."""

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import Context as Variables
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.errors import Diverged, RunError
from ...sdk.client.run import Run
from ...sdk.execution.calls.bodies import StepBody
from ...sdk.execution.run_execution import RunExecution
from ...sdk.execution.scopes import Scope, spawn
from ...sdk.workflow.current import place
from ...sdk.workflow.signals import Signal
from ...sdk.workflow.workflow import Workflow
from ..env.errors import StillRunning, WaitsForever
from .boundaries import Boundary
from .hooks import observing
from .observation import Execution, Observer
from .reordering import Turns, reordered

if TYPE_CHECKING:
    from ..env.environment import Environment

AnyWorkflow: TypeAlias = Workflow[Any, Any]
Sent: TypeAlias = tuple[Signal[Any] | str, Any]
Drive: TypeAlias = Callable[["Environment", Run[Any]], Awaitable[None]]

_DELAY_MAX_S = 5.0  # a body that waits for another one is not delayed forever


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run differs from an undisturbed one. `seen` describes it in a report, after the word "seen"."""

    seen: str = "in a run without crashes"
    kill_at: Boundary | None = None
    kill_after_each: bool = False  # start a fresh worker for every result
    last_first: bool = False  # deliver the last of several results that are ready at the same time first
    layered: bool = False  # call the function in a task of its own
    backwards: Turns | None = None  # which sets to iterate backwards when the function is executed again
    early_signals: bool = False  # send signals before the run waits for them
    watched: bool = False


@dataclass(slots=True)
class Ended:
    """How a run ended: with `value`, with an error, or stuck."""

    value: Any = None
    failed: str = ""
    stuck: str = ""


class Performance:
    """Implements observation.Director. Call `play` once."""

    def __init__(
        self,
        env: "Environment",
        workflow: AnyWorkflow,
        input: Any,
        plan: Plan,
        *,
        workflow_id: str,
        signals: Sequence[Sent] = (),
        drive: Drive | None = None,
    ) -> None:
        self._env = env
        self._workflow = workflow
        self._input = input
        self._workflow_id = workflow_id
        self._signals = list(signals)
        self._answered: set[tuple[str, str]] = set()
        self._drive = drive
        self._tasks: set[asyncio.Task[Any]] = set()
        self._started: asyncio.Future[Run[Any]] = asyncio.get_running_loop().create_future()
        self._delayed: list[asyncio.Future[None]] = []
        self.plan = plan
        self.observer = Observer(workflow_id, self)
        self.kills = 0
        self.diverged: asyncio.Future[tuple[RunExecution, Diverged]] = asyncio.get_running_loop().create_future()

    # --- the run ------------------------------------------------------------------------------------------------------

    async def play(self) -> Ended:
        """Execute the run until it ends, diverges or is stuck."""
        env = self._env
        with ExitStack() as entered:
            entered.enter_context(_without_warnings())
            entered.enter_context(observing(self.observer))
            entered.enter_context(self._variant())
            run: Run[Any] = await self._start()
            self._started.set_result(run)
            ending = asyncio.ensure_future(self._end_of(run))
            try:
                await asyncio.wait((ending, self.diverged), return_when=asyncio.FIRST_COMPLETED)
                ended = ending.result() if ending.done() else Ended()
            finally:
                await self._leave(ending)
            if self.diverged.done() or ended.stuck:
                await run.terminate("crash_everywhere has seen enough")
            await env.settle()
        return ended

    async def _start(self) -> Run[Any]:
        start: Any = self._env.start
        inputs = () if self._input is ... else (self._input,)
        run: Run[Any] = await start(self._workflow, *inputs, id=self._workflow_id)
        return run

    async def _end_of(self, run: Run[Any]) -> Ended:
        if self.plan.early_signals:
            signals, self._signals = self._signals, []
            for signal, value in signals:
                await run.signal(signal, value)
        if self._drive is not None:
            await self._drive(self._env, run)
        try:
            return Ended(await run.result())
        except RunError as error:
            return Ended(failed=str(error))
        except (WaitsForever, StillRunning) as error:
            return Ended(stuck=str(error))

    async def _leave(self, ending: "asyncio.Task[Ended]") -> None:
        self._release_all()
        if not ending.done():
            ending.cancel()
        await asyncio.wait({*self._tasks, ending})
        for task in self._tasks:
            task.result()

    def _in_background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a task outside of the workflow, whose code may be running: a task created there would belong to it."""
        task: asyncio.Task[Any] = Variables().run(asyncio.get_running_loop().create_task, work)
        self._tasks.add(task)

    # --- the plan -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _variant(self) -> Generator[None]:
        fn = self._workflow.fn
        with ExitStack() as entered:
            if self.plan.layered:
                self._fn_again = self._fn_first = _layered(fn)
            elif self.plan.backwards is not None:
                self._fn_again = entered.enter_context(reordered(fn, self.plan.backwards))
            yield

    _fn_first: Callable[..., Any] | None = None
    _fn_again: Callable[..., Any] | None = None

    def began(self, run: RunExecution, execution: Execution) -> None:
        fn = self._fn_first if execution.number == 1 else self._fn_again
        if fn is not None and run.workflow.fn is self._workflow.fn:
            run.workflow = copy.copy(run.workflow)
            run.workflow.fn = fn

    def at(self, boundary: Boundary, *, at_claim: bool) -> None:
        plan = self.plan
        if boundary == plan.kill_at or (plan.kill_after_each and boundary.moment == "after"):
            if at_claim:
                asyncio.get_running_loop().call_soon(self._kill, context=Variables())
            else:
                self._kill()

    def _kill(self) -> None:
        workers = self._env._workers  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  within the test kit
        self.kills += 1
        workers.kill()
        self._in_background(workers.start())

    async def body_ended(self, boundary: Boundary, run: RunExecution, body: StepBody) -> None:
        if boundary == self.plan.kill_at and not self.kills:
            with _in_step(run):
                await _begun(run)
            self._kill()
        elif self.plan.last_first and not body.scope.race:
            with _in_step(run):
                await self._delay()

    def waits_for(self, signal: str, run: RunExecution, step_id: str) -> None:
        if (run.run_id, step_id) in self._answered:
            return
        for place_, (sent, value) in enumerate(self._signals):
            if (sent if isinstance(sent, str) else sent.name) == signal:
                self._answered.add((run.run_id, step_id))
                del self._signals[place_]
                self._in_background(self._send(run.run_id, sent, value))
                return

    async def _send(self, run_id: str, signal: Signal[Any] | str, value: Any) -> None:
        await self._started
        run: Run[Any] = self._env.get(run_id)
        await run.signal(signal, value)

    def diverges(self, run: RunExecution, error: Diverged) -> None:
        if not self.diverged.done():
            self.diverged.set_result((run, error))

    # --- results in another order -------------------------------------------------------------------------------------

    async def _delay(self) -> None:
        """Returns when all concurrent bodies have ended and those that ended later have been released."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._delayed.append(future)
        loop.call_later(_DELAY_MAX_S, _set, future)
        self._check_delayed(_DELAY_PASSES)
        await future

    def _check_delayed(self, passes: int) -> None:
        """Release the last body, after some iterations of the event loop in which other bodies may begin."""
        if passes:
            asyncio.get_running_loop().call_soon(self._check_delayed, passes - 1)
        elif self._delayed and not self.observer.bodies_running:
            _set(self._delayed.pop())
            self._check_delayed(_DELAY_PASSES)

    def _release_all(self) -> None:
        while self._delayed:
            _set(self._delayed.pop())


_DELAY_PASSES = 3
_LOGGERS = ("kagzi.worker", "kagzi.engine")


@contextmanager
def _without_warnings() -> Generator[None]:
    """Suppress warnings: the many lost workers are intended."""

    def is_error(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(is_error)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_error)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


@contextmanager
def _in_step(run: RunExecution) -> Generator[None]:
    """Count the wait as part of the body."""
    task = asyncio.current_task()
    assert task is not None
    run.tasks.in_step.add(task)
    watched = run.tasks.block(task)
    try:
        yield
    finally:
        run.tasks.in_step.discard(task)
        if watched:
            run.tasks.unblock(task)


async def _begun(run: RunExecution) -> None:
    """Returns when everything that the run has sent is recorded, including the begin of the step."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    operation = run.claim.port.send(lambda _: _set(future))
    operation.fetch_results.known_seq = run.ledger.known_seq
    await future


def _layered(fn: Callable[..., Any]) -> Callable[..., Any]:
    async def layered(*args: Any) -> Any:
        scope = place.get()
        assert type(scope) is Scope
        return await spawn(asyncio.get_running_loop(), fn(*args), scope)

    return layered
