"""The worker's executor: accepts claimed runs, executes them, and caches parked ones for a while."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ...core.limits import Settings
from ...v1 import worker_pb2 as pb
from ..execution.calls.arguments import RecordInputs
from ..execution.calls.bodies import StepBody
from ..execution.calls.threads import StepThreads
from ..execution.claim import Claim
from ..execution.idle.outside_sources import watch_sources
from ..execution.main import start
from ..execution.ports import Answer, Execution, RunPort, Services, Timers
from ..execution.resumption import KEPT_RUNS_MAX, KEPT_S, KeptRuns, Resumption, drop, fits
from ..execution.run_execution import RunExecution
from ..execution.scopes import install_task_factory
from ..step_logs.collector import StepLogCollector
from ..tracing.tracing import stretches_of
from ..workflow.context import Context
from ..workflow.retry import Retry
from ..workflow.workflow import Workflow
from .registry import Registry

logger = logging.getLogger("kagzi.worker")

DEFAULT_THREADS = 100


class Executor:
    """Implements ports.Executor. Belongs to the event loop it is first used on.

    `retry`: the worker's default for steps; `threads`: how many sync bodies run at once; `build_id`: the build of this
    code; `encoded`: payloads are encoded, so errors must not be logged in clear text; `worker_id`: for its spans.
    `execution_type` and `context_type`: the classes of each run. For tests: `timers`, the clock in which runs wait;
    `replace_body`: replaces the body of a step attempt; `on_child`: called with the workflow of each child before it
    starts.
    """

    execution_type: type[RunExecution] = RunExecution
    context_type: type[Context] = Context

    def __init__(
        self,
        registry: Registry,
        *,
        retry: Retry | None = None,
        threads: int = DEFAULT_THREADS,
        kept_runs_max: int = KEPT_RUNS_MAX,
        kept_s: float = KEPT_S,
        resident_wait_ms: int = Settings().resident_wait_ms,
        build_id: str = "",
        record_inputs: RecordInputs = "failed",
        encoded: bool = False,
        worker_id: str = "",
        timers: Timers | None = None,
        replace_body: Callable[[str, StepBody, int], StepBody] | None = None,
        on_child: Callable[[Workflow[Any, Any]], None] | None = None,
    ) -> None:
        self._registry = registry
        self._timers = timers
        self._kept_runs_max = kept_runs_max
        self._kept_s = kept_s
        self.threads = StepThreads(threads)
        self.step_logs = StepLogCollector()
        self._services = Services(
            threads=self.threads,
            retry=retry,
            resident_wait_s=resident_wait_ms / 1_000,
            build_id=build_id,
            record_inputs=record_inputs,
            step_logs=self.step_logs,
            encoded=encoded,
            begin_stretch=stretches_of(worker_id, encoded=encoded),
            replace_body=replace_body,
            on_child=on_child,
        )
        self._active: set[RunExecution | Refusal | Resumption] = set()
        self._kept: KeptRuns | None = None
        self._idle: list[asyncio.Future[None]] = []

    def accept(self, task: pb.Task, port: RunPort) -> Execution:
        loop = asyncio.get_running_loop()
        workflow = self._registry.find(task.workflow_type, task.version)
        if workflow is None:
            refusal = Refusal(task, port, self._closed)
            self._active.add(refusal)
            refusal.start()
            return refusal
        kept = self._kept_on(loop).take(task.run_id)
        if kept is None or kept.workflow is not workflow:
            if kept is not None:
                drop(kept)
            timers = self._timers or loop
            return self._begin(Claim(task, port, loop, timers, timers.time()), workflow)
        resume = partial(self._resume, kept, task, port)
        if not task.history.has_more or not kept.is_claimed_next(task):
            return resume(task.history.steps, kept.claim.timers.time())
        resumption = Resumption(kept, task, port, resume=resume, closed=self._closed)
        self._active.add(resumption)
        resumption.start()
        return resumption

    def _resume(
        self, kept: RunExecution, task: pb.Task, port: RunPort, steps: Iterable[pb.HistoryStep], accepted_at: float
    ) -> RunExecution:
        """Continue the cached coroutine if its position matches this history. Otherwise start again."""
        if kept.is_claimed_next(task) and fits(kept, steps):
            self._active.add(kept)
            kept.resume(task, port, steps, accepted_at)
            return kept
        drop(kept)
        claim = kept.claim
        return self._begin(Claim(task, port, claim.loop, claim.timers, accepted_at), kept.workflow)

    def _begin(self, claim: Claim, workflow: Workflow[Any, Any]) -> RunExecution:
        run = self.execution_type(claim, workflow, self._services, on_closed=self._closed, on_parked=self._parked)
        self._active.add(run)
        start(run, self.context_type(run))
        return run

    def _kept_on(self, loop: asyncio.AbstractEventLoop) -> KeptRuns:
        if self._kept is None:
            install_task_factory(loop)
            watch_sources(loop)
            self._kept = KeptRuns(loop, count_max=self._kept_runs_max, age_max_s=self._kept_s)
        return self._kept

    def release_all(self, reason: str) -> None:
        if self._kept is not None:
            self._kept.drop_all()
        for run in list(self._active):
            run.release(reason)

    def abandon_all(self, reason: str) -> None:
        """Treat every lease as lost: nothing is handed back or recorded any more."""
        if self._kept is not None:
            self._kept.drop_all()
        for run in list(self._active):
            run.abandon(reason)

    @property
    def active(self) -> int:
        return len(self._active)

    @property
    def kept(self) -> int:
        """The number of parked runs whose coroutines are cached."""
        return 0 if self._kept is None else len(self._kept)

    async def drained(self) -> None:
        while self._active:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(future)
            await future

    def close(self) -> None:
        """Drop cached runs and idle threads. Must be called when no run is active any more."""
        if self._kept is not None:
            self._kept.drop_all()
        self.threads.close()

    def _parked(self, run: RunExecution, wakes_in_s: float | None) -> None:
        self._kept_on(run.claim.loop).keep(run, wakes_in_s=wakes_in_s)

    def _closed(self, run: "RunExecution | Refusal | Resumption") -> None:
        self._active.discard(run)
        if not self._active:
            idle, self._idle = self._idle, []
            for future in idle:
                if not future.done():
                    future.set_result(None)


class Refusal:
    """A run of a type that this worker does not serve, handed back at once. The server should not have sent it."""

    def __init__(self, task: pb.Task, port: RunPort, closed: "Callable[[Refusal], None]") -> None:
        self._task = task
        self._port = port
        self._closed = closed

    def start(self) -> None:
        reason = f"this worker has no workflow {self._task.workflow_type!r} version {self._task.version!r}"
        logger.error("run %s was given to the wrong worker: %s", self._task.run_id, reason)
        self._port.send(self._answered).release.reason = reason

    def abandon(self, reason: str) -> None:
        self._end()

    def cancel(self, reason: str) -> None:
        """Nothing to do: the run is being handed back, and the next worker gets the request."""

    def pause(self, reason: str) -> None:
        """Nothing to do: the run is being handed back."""

    def server_failed(self, reason: str) -> None:
        """Nothing to do: the run is being handed back."""

    def results_available(self) -> None:
        """Nothing to do: the next worker finds the results in the history."""

    def release(self, reason: str) -> None:
        """Nothing to do: the run is being handed back."""

    def _answered(self, answer: Answer) -> None:
        self._end()

    def _end(self) -> None:
        self._port.close()
        self._closed(self)
