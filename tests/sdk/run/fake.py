"""A tiny server in memory, for tests of executions without a network: its store is `fake_store`.

Messages are read and written by `kagzi.wire`, so that a run sees just what it would see on a session. Time is the
loop's, plus what a test skips with `advance`.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from kagzi.core.error_details import ErrorCode, ErrorDetail
from kagzi.core.errors import REASON
from kagzi.core.records import ClaimedRun, HistoryPage, Payload
from kagzi.core.run.outcomes import Begun, LeaseLost, Outcome, Recorded, Refused
from kagzi.core.states import RunStatus
from kagzi.sdk.execution.ports import Answer, Execution, Fill, OnAnswer
from kagzi.sdk.worker.executor import Executor
from kagzi.sdk.worker.lease_clock import LeaseClock
from kagzi.sdk.worker.registry import AnyWorkflow, Registry
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.operations import write_answer
from kagzi.wire.tasks import write_history_step, write_task
from tests.support.timeouts import LOADED_MACHINE_S

from .fake_run import FakeRun
from .fake_store import FakeStore

START_US = 1_700_000_000_000_000
TIMEOUT_S = LOADED_MACHINE_S
_replace = msgspec.structs.replace


class FakePort:
    """One lease of a run. `cut_after` commits it falls silent: the worker hears no more answers, the server no
    operations."""

    def __init__(self, server: "FakeServer", run: FakeRun, crash_after: int | None, drop_last_answer: bool) -> None:
        self._server = server
        self.run = run
        self.lease = run.lease
        self.execution: Execution | None = None
        self.closed = asyncio.Event()
        self.crashed = asyncio.Event()
        self.sends = 0
        self.last_seq = run.seq
        self.foreign_seq = 0
        self.accepted_at = server.monotonic()
        self.requested_at = -math.inf
        self._crash_after = crash_after
        self._drop_last_answer = drop_last_answer
        self._commits = 0
        self._queue: list[tuple[pb.Operation, OnAnswer | None]] = []
        self._begins: dict[str, tuple[int, Fill]] = {}  # places in the queue
        self._on_their_way: list[list[tuple[pb.Operation, OnAnswer | None]]] = []
        self._scheduled = False

    def announce(self) -> pb.Operation:
        self._fill_begins()
        return self._add(None)

    def begin(self, step_id: str, fill: Fill) -> None:
        self._begins[step_id] = len(self._queue), fill
        self._add(None)

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        self._fill_begins()
        self._schedule()
        return self._add(on_answer)

    def complete(self, step_id: str, on_answer: OnAnswer) -> tuple[pb.Operation, bool]:
        self._schedule()
        place, fill = self._begins.pop(step_id, (None, None))
        if place is None or fill is None:
            return self._add(on_answer), False
        operation, _ = self._queue[place]
        if not self._server.records_whole_steps:
            fill(operation)
            return self._add(on_answer), False
        self._queue[place] = operation, on_answer
        return operation, True

    def _schedule(self) -> None:
        self.sends += 1
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._leave)

    def _fill_begins(self) -> None:
        for place, fill in self._begins.values():
            fill(self._queue[place][0])
        self._begins.clear()

    def _add(self, on_answer: OnAnswer | None) -> pb.Operation:
        assert not self.closed.is_set(), "an operation after close()"
        operation = pb.Operation()
        self._queue.append((operation, on_answer))
        return operation

    def lease_is_over(self) -> bool:
        return self._server.clock is not None and self._server.clock.is_over(self.accepted_at, self.requested_at)

    def ask_about_lease(self) -> Callable[[], None]:
        return partial(setattr, self, "requested_at", self._server.monotonic())

    async def fetch_history(self, after: int, known_seq: int = 0) -> Sequence[pb.HistoryStep]:
        await asyncio.sleep(0)
        await self._server.fetching(self)
        self._server.fetches.append((after, known_seq))
        return [
            write_history_step(
                _replace(step, output=None, error=None, details=None) if 0 < step.seq <= known_seq else step
            )
            for step in self.run.history
            if step.begun_seq > after
        ]

    def close(self) -> None:
        self.closed.set()

    def _leave(self) -> None:
        """The message leaves at the end of the pass; answers come after `server.latency` passes of the loop."""
        self._scheduled = False
        self._fill_begins()
        batch, self._queue = self._queue, []
        self._server.messages += 1
        self._on_their_way.append(batch)
        self._server.later(self._server.latency(), self._arrived)

    def _arrived(self) -> None:
        """Messages are slow or quick, but they never overtake each other: the first on its way is the one that
        arrives."""
        try:
            self._commit(self._on_their_way.pop(0))
        except (AssertionError, LookupError) as broken:
            self._server.broken.append(broken)
            self._server.changes.set()
            self.crashed.set()

    def _commit(self, batch: list[tuple[pb.Operation, OnAnswer | None]]) -> None:
        answers: list[tuple[OnAnswer, Answer]] = []
        for operation, on_answer in batch:
            if self.crashed.is_set():
                break
            outcome = LeaseLost() if self.run.lease != self.lease else self._apply(operation)
            if outcome is None:
                return
            if isinstance(outcome, LeaseLost):
                assert self.execution is not None
                self.execution.abandon("its lease was lost")
                break
            self._commits += 1
            answer = self._answer(outcome, 2 if operation.HasField("record_step") else 1)
            crashes = self._crash_after is not None and self._commits >= self._crash_after
            if on_answer is None and isinstance(outcome, Refused):
                self._announcement_refused(outcome.error)
            if on_answer is not None and not (crashes and self._drop_last_answer):
                answers.append((on_answer, answer))
            if crashes:
                self.crashed.set()
        for on_answer, answer in answers:
            if not self.closed.is_set():
                on_answer(answer)

    def _announcement_refused(self, error: ErrorDetail) -> None:
        assert self.execution is not None
        if error.code is ErrorCode.INTERNAL:
            self._queue.clear()
            self._begins.clear()
            self.execution.server_failed(error.message)
        else:
            assert error.code is ErrorCode.CANCELLED, error
            self.execution.cancel(error.metadata.get(REASON, ""))

    def _apply(self, operation: pb.Operation) -> Outcome | None:
        """None: the worker is cut off just before or just after it."""
        kind = operation.WhichOneof("kind")
        self._server.moment(self, f"before {kind}")
        outcome = None if self.crashed.is_set() else self._server.apply(self.run, operation)
        if outcome is not None:
            self._server.moment(self, f"after {kind}")
        return None if self.crashed.is_set() else outcome

    def _answer(self, outcome: Outcome, numbers: int) -> Answer:
        message = write_answer(1, outcome, self._server.now)
        self._acknowledged(message.seq, numbers)
        plain = isinstance(outcome, Recorded | Begun)
        return Answer(message.seq, message.at_us, None if plain else message)

    def _acknowledged(self, seq: int, numbers: int) -> None:
        if seq > self.last_seq:
            if seq - numbers > self.last_seq:
                self.foreign_seq = seq - numbers
            self.last_seq = seq


class FakeServer(FakeStore):
    """Runs and their leases. `latency`: how many passes of the loop a message takes."""

    def __init__(self, *workflows: AnyWorkflow, latency: Callable[[], int] = lambda: 0, **options: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.changes = asyncio.Event()  # the status of a run has changed
        super().__init__(self._time, self.changes.set, self._notify)
        self.latency = self.notice_latency = latency
        self.registry = Registry(workflows)
        self.options = options
        self.executor = self.new_executor()
        self.messages = 0
        self.records_whole_steps = True
        self.fetches: list[tuple[int, int]] = []  # of histories: after which number, and what was known
        self.fetching: Callable[[FakePort], Awaitable[None]] = _at_once
        self.clock: LeaseClock | None = None  # None: leases never end by themselves
        self.broken: list[Exception] = []  # rules that a worker broke
        self.moment: Callable[[FakePort, str], None] = lambda port, what: None  # just before and after each commit
        self._skipped_us = 0
        self._began_at = self.loop.time()

    def new_executor(self) -> Executor:
        return Executor(self.registry, **self.options)

    def _time(self) -> int:
        return START_US + self._skipped_us + int((self.loop.time() - self._began_at) * 1_000_000)

    def advance(self, seconds: float) -> None:
        self._skipped_us += int(seconds * 1_000_000)

    def monotonic(self) -> float:
        """By the worker's clock."""
        return self.loop.time() if self.clock is None else self.clock.now()

    def later(self, passes: int, action: Callable[[], None]) -> None:
        if passes <= 0:
            action()
        else:
            self.loop.call_soon(self.later, passes - 1, action)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def start(self, workflow: Any, input: Any = ..., *, raw: bytes | None = None) -> FakeRun:
        data = raw if raw is not None else None if input is ... else msgspec.json.encode(input)
        name, version = (workflow, "1") if isinstance(workflow, str) else (workflow.name, workflow.version)
        return self.insert(name, version, None if data is None else Payload(data))

    def claim(
        self,
        run: FakeRun,
        *,
        crash_after: int | None = None,
        drop_last_answer: bool = False,
        page: int = 10_000,
        executor: Executor | None = None,
    ) -> FakePort:
        """Hand the run to the executor, as the server does."""
        self.lease(run)
        port = run.port = FakePort(self, run, crash_after, drop_last_answer)
        port.execution = (executor or self.executor).accept(write_task(self._claimed(run, page)), port)
        return port

    def _claimed(self, run: FakeRun, page: int) -> ClaimedRun:
        steps = run.history
        first = tuple(steps[:page])
        more = len(steps) > page
        return ClaimedRun(
            run=run.state.run,
            lease=run.state.lease,
            worker_id="w",
            workflow_id="wid",
            workflow_type=run.workflow_type,
            version=run.version,
            attempt=1,
            input=run.input,
            labels={"team": "a"},
            created_at=run.created_at,
            claimed_at=self.now,
            last_seq=run.seq,
            history=HistoryPage(first, more, first[-1].begun_seq if first and more else 0),
            cancel_requested=run.cancel_requested,
            pause_requested=run.state.pause_requested,
        )

    # --- what others do to a run --------------------------------------------------------------------------------------

    def cancel(self, run: FakeRun, reason: str = "not needed") -> bool:
        holds = super().cancel(run, reason)
        execution = _holder(run)
        if holds and execution is not None:
            execution.cancel(reason)
        return holds

    def pause(self, run: FakeRun) -> bool:
        holds = super().pause(run)
        execution = _holder(run)
        if holds and execution is not None:
            execution.pause("")
        return holds

    def _notify(self, run: FakeRun) -> None:
        port = run.port
        if port is not None and port.execution is not None:
            execution = port.execution
            self.later(self.notice_latency(), lambda: None if port.closed.is_set() else execution.results_available())

    async def run(self, workflow: Any, input: Any = ...) -> FakeRun:
        """Start it and see it through, waking it whenever it sleeps."""
        run = self.start(workflow, input)
        await self.finish(run)
        return run

    async def finish(self, run: FakeRun, **claim: Any) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not run.status.ended:
                await self.finish_children(run)
                self.claim(run, **claim)
                await self.until_left(run)
                if run.status is RunStatus.SLEEPING and self.children_of(run):
                    continue
                if run.status is RunStatus.SLEEPING and run.due_at is not None:
                    self.advance(max(run.due_at - self.now, 0) / 1_000_000)

    async def finish_children(self, run: FakeRun) -> None:
        for child in self.children_of(run):
            await self.finish(child)

    async def until_left(self, run: FakeRun) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while run.status is RunStatus.RUNNING:
                run.changed.clear()
                await run.changed.wait()


def _holder(run: FakeRun) -> Execution | None:
    """Who is to hear what others do to the run. A worker forgets an execution when it closes its port, which may be
    before the server knows that the lease is free: nobody hears what is sent to it then."""
    port = run.port
    return None if port is None or port.closed.is_set() else port.execution


async def _at_once(_: FakePort) -> None: ...


def refused(code: ErrorCode, message: str = "no") -> ErrorDetail:
    return ErrorDetail(code=code, message=message)


@contextlib.asynccontextmanager
async def fake_server(*workflows: AnyWorkflow, **options: Any) -> AsyncIterator[FakeServer]:
    """A server whose executor is emptied afterwards: no task of any run may be left."""
    server = FakeServer(*workflows, **options)
    try:
        yield server
    finally:
        server.executor.release_all("the test is over")
        async with asyncio.timeout(TIMEOUT_S):
            await server.executor.drained()
        server.executor.close()
    assert not server.broken, server.broken
