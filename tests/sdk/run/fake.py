"""A tiny server in memory, for tests of the runner without a network: it answers operations as the real one does.

Letters are read and written by `kagzi.wire`, so that a run sees just what it would see on a session. Time is the loop's, plus what
a test skips with `advance`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kagzi.core.commands import (
    BeginSleep,
    BeginStep,
    CancelRun,
    CompleteRun,
    CompleteStep,
    FailRun,
    FailStep,
    FinishSleep,
    Park,
    ReleaseRun,
)
from kagzi.core.errors import ErrorCode, ErrorDetail
from kagzi.core.outcomes import (
    Begun,
    NotParked,
    Outcome,
    Parked,
    Recorded,
    Refused,
    RetryScheduled,
    RunClosed,
    StepFailed,
    TimerSet,
)
from kagzi.core.records import ClaimedRun, HistoryPage, HistoryStep, Lease, Payload, RunKey
from kagzi.core.retry import SERVER_DEFAULT, RetryAt, RetryPolicy, after_failure
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.sdk.executor import Executor
from kagzi.sdk.ports import Answer, Execution, OnAnswer
from kagzi.sdk.registry import AnyWorkflow, Registry
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.operations import read_operation, write_answer
from kagzi.wire.tasks import write_history_step, write_task

START_US = 1_700_000_000_000_000
TIMEOUT_S = 20.0
_replace = msgspec.structs.replace


class NoDice:
    def fraction(self) -> float:
        return 0.0


@dataclass
class FakeRun:
    """What the server knows of a run."""

    run_id: str
    workflow_type: str
    version: str
    input: Payload | None
    created_at: int
    status: RunStatus = RunStatus.PENDING
    lease: int = 0
    seq: int = 0
    steps: dict[str, HistoryStep] = field(default_factory=dict)
    policies: dict[str, RetryPolicy] = field(default_factory=dict)
    output: Payload | None = None
    error: ErrorDetail | None = None
    cancel_requested: bool = False
    due_at: int | None = None
    log: list[str] = field(default_factory=list)  # what was committed, in order
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def result(self) -> Any:
        assert self.output is not None, (self.status, self.error)
        return msgspec.json.decode(self.output.data)

    @property
    def step_ids(self) -> list[str]:
        return [step.step_id for step in sorted(self.steps.values(), key=lambda step: step.begun_seq)]

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def become(self, status: RunStatus) -> None:
        self.status = status
        self.changed.set()
        if status.ended:
            self.ended.set()


class Cut(Exception):
    """The worker is gone: the server hears nothing more from it."""


class FakePort:
    """One lease of a run. `cut_after` commits it falls silent: the worker hears no more answers, the server no operations."""

    def __init__(self, server: "FakeServer", run: FakeRun, cut_after: int | None, lose_last_answer: bool) -> None:
        self._server = server
        self.run = run
        self.lease = run.lease
        self.execution: Execution | None = None
        self.closed = asyncio.Event()
        self.was_cut = asyncio.Event()
        self.sends = 0
        self._cut_after = cut_after
        self._lose_last_answer = lose_last_answer
        self._commits = 0
        self._queue: list[tuple[pb.Operation, OnAnswer | None]] = []
        self._on_their_way: list[list[tuple[pb.Operation, OnAnswer | None]]] = []
        self._scheduled = False

    def announce(self) -> pb.Operation:
        return self._add(None)

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        self.sends += 1
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._leave)
        return self._add(on_answer)

    def _add(self, on_answer: OnAnswer | None) -> pb.Operation:
        assert not self.closed.is_set(), "an operation after close()"
        operation = pb.Operation()
        self._queue.append((operation, on_answer))
        return operation

    async def fetch_history(self, after: int) -> Sequence[pb.HistoryStep]:
        await asyncio.sleep(0)
        steps = sorted(self.run.steps.values(), key=lambda step: step.begun_seq)
        return [write_history_step(step) for step in steps if step.begun_seq > after]

    def close(self) -> None:
        self.closed.set()

    def _leave(self) -> None:
        """The message leaves at the end of the pass; answers come after `server.latency` passes of the loop."""
        self._scheduled = False
        batch, self._queue = self._queue, []
        self._server.messages += 1
        self._on_their_way.append(batch)
        self._server.later(self._server.latency(), self._arrived)

    def _arrived(self) -> None:
        """Messages are slow or quick, but they never overtake each other: the first on its way is the one that arrives."""
        try:
            self._commit(self._on_their_way.pop(0))
        except AssertionError as broken:
            self._server.broken.append(broken)
            self.was_cut.set()

    def _commit(self, batch: list[tuple[pb.Operation, OnAnswer | None]]) -> None:
        answers: list[tuple[OnAnswer, Answer]] = []
        for operation, on_answer in batch:
            if self.was_cut.is_set() or self.run.lease != self.lease:
                break
            outcome = self._server.apply(self, operation)
            self._commits += 1
            cut = self._cut_after is not None and self._commits >= self._cut_after
            if on_answer is not None and not (cut and self._lose_last_answer):
                answers.append((on_answer, self._answer(outcome)))
            if cut:
                self.was_cut.set()
        for on_answer, answer in answers:
            if not self.closed.is_set():
                on_answer(answer)

    def _answer(self, outcome: Outcome) -> Answer:
        if isinstance(outcome, Recorded | Begun):
            return Answer(outcome.seq, outcome.at, None)
        letter = write_answer(1, outcome, self._server.now)
        return Answer(letter.seq, letter.at_us, letter)


class FakeServer:
    """Runs and their leases. `dice` may delay answers by some passes of the loop."""

    def __init__(self, *workflows: AnyWorkflow, latency: Callable[[], int] = lambda: 0, **options: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.latency = latency
        self.workflows = workflows
        self.options = options
        self.executor = self.new_executor()
        self.runs: list[FakeRun] = []
        self.messages = 0
        self.broken: list[AssertionError] = []  # rules that a worker broke
        self.refuse: Callable[[Any], ErrorDetail | None] = lambda command: None
        self._skipped_us = 0
        self._frozen_at: int | None = None
        self._began_at = self.loop.time()

    def new_executor(self) -> Executor:
        return Executor(Registry(self.workflows), **self.options)

    @property
    def now(self) -> int:
        """The server's time; while an operation is applied it stands still."""
        return self._frozen_at or self._time()

    def _time(self) -> int:
        return START_US + self._skipped_us + int((self.loop.time() - self._began_at) * 1_000_000)

    def advance(self, seconds: float) -> None:
        self._skipped_us += int(seconds * 1_000_000)

    def later(self, passes: int, action: Callable[[], None]) -> None:
        if passes <= 0:
            action()
        else:
            self.loop.call_soon(self.later, passes - 1, action)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def start(self, workflow: Any, input: Any = ..., *, raw: bytes | None = None) -> FakeRun:
        data = raw if raw is not None else None if input is ... else msgspec.json.encode(input)
        run = FakeRun(
            run_id=f"00000000-0000-7000-8000-{len(self.runs):012d}",
            workflow_type=workflow if isinstance(workflow, str) else workflow.name,
            version="1" if isinstance(workflow, str) else workflow.version,
            input=None if data is None else Payload(data),
            created_at=self.now,
        )
        self.runs.append(run)
        return run

    def claim(
        self,
        run: FakeRun,
        *,
        cut_after: int | None = None,
        lose_last_answer: bool = False,
        page: int = 10_000,
        executor: Executor | None = None,
    ) -> FakePort:
        """Hand the run to the executor, as the server does."""
        self._fire_due(run)
        run.lease += 1
        run.become(RunStatus.RUNNING)
        run.changed.clear()
        port = FakePort(self, run, cut_after, lose_last_answer)
        port.execution = (executor or self.executor).accept(write_task(self._claimed(run, page)), port)
        return port

    def _claimed(self, run: FakeRun, page: int) -> ClaimedRun:
        steps = sorted(run.steps.values(), key=lambda step: step.begun_seq)
        first = tuple(steps[:page])
        more = len(steps) > page
        return ClaimedRun(
            run=RunKey("default", run.run_id),
            lease=Lease(run.lease, 7),
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
        )

    def _fire_due(self, run: FakeRun) -> list[HistoryStep]:
        fired: list[HistoryStep] = []
        for step in list(run.steps.values()):
            if step.wake_at is not None and not step.seq and step.wake_at <= self.now:
                done = _replace(step, status=StepStatus.COMPLETED, seq=run.next_seq(), at=self.now)
                run.steps[step.step_id] = done
                fired.append(done)
        return fired

    async def run(self, workflow: Any, input: Any = ...) -> FakeRun:
        """Start it and see it through, waking it whenever it sleeps."""
        run = self.start(workflow, input)
        await self.finish(run)
        return run

    async def finish(self, run: FakeRun, **claim: Any) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not run.status.ended:
                self.claim(run, **claim)
                await self.until_left(run)
                if run.status is RunStatus.SLEEPING and run.due_at is not None:
                    self.advance(max(run.due_at - self.now, 0) / 1_000_000)

    async def until_left(self, run: FakeRun) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while run.status is RunStatus.RUNNING:
                run.changed.clear()
                await run.changed.wait()

    # --- operations -----------------------------------------------------------------------------------------------------

    def apply(self, port: FakePort, operation: pb.Operation) -> Outcome:
        self._frozen_at = self._time()
        try:
            return self._apply(port.run, operation)
        finally:
            self._frozen_at = None

    def _apply(self, run: FakeRun, operation: pb.Operation) -> Outcome:
        command = read_operation(operation, RunKey("default", run.run_id), Lease(run.lease, 7))
        assert not isinstance(command, Refused), command
        refused = self.refuse(command)
        if refused is not None:
            return Refused(refused)
        run.log.append(f"{type(command).__name__} {getattr(command, 'step_id', '')}".strip())
        match command:
            case BeginStep():
                return self._begin_step(run, command)
            case CompleteStep():
                step = self._current(run, command.step_id, command.attempt)
                done = _replace(
                    step, status=StepStatus.COMPLETED, seq=run.next_seq(), at=self.now, output=command.output
                )
                run.steps[step.step_id] = done
                return Recorded(done.seq, done.at)
            case FailStep():
                return self._fail_step(run, command)
            case BeginSleep():
                return self._begin_sleep(run, command)
            case FinishSleep():
                return self._finish_sleep(run, command)
            case Park():
                return self._park(run, command)
            case _:
                return self._close(run, command)

    def _current(self, run: FakeRun, step_id: str, attempt: int) -> HistoryStep:
        step = run.steps[step_id]
        assert step.status is StepStatus.RUNNING, f"{step_id} is {step.status}"
        assert step.attempt == attempt, f"{step_id}: attempt {attempt}, but {step.attempt} is the current one"
        return step

    def _begin_step(self, run: FakeRun, command: BeginStep) -> Outcome:
        step = run.steps.get(command.step_id)
        if step is None:
            assert command.attempt == 1, command
            step = HistoryStep(
                step_id=command.step_id, kind=StepKind.FUNCTION, status=StepStatus.RUNNING, begun_seq=run.next_seq()
            )
            run.policies[command.step_id] = command.retry or SERVER_DEFAULT
        else:
            assert not step.seq, f"{command.step_id} is begun although it has a result"
            assert step.attempt == command.attempt, (step, command)
            step = _replace(step, status=StepStatus.RUNNING, retry_at=None)
        run.steps[command.step_id] = step
        return Begun(step.begun_seq, self.now, step.attempt)

    def _fail_step(self, run: FakeRun, command: FailStep) -> Outcome:
        step = self._current(run, command.step_id, command.attempt)
        policy = run.policies[step.step_id]
        decision = after_failure(policy, step.attempt, command.error, self.now, dice=NoDice())
        seq = run.next_seq()
        if isinstance(decision, RetryAt):
            run.steps[step.step_id] = _replace(
                step, status=StepStatus.PENDING, attempt=decision.attempt, retry_at=decision.at
            )
            return RetryScheduled(seq, self.now, decision.attempt, decision.at)
        run.steps[step.step_id] = _replace(step, status=StepStatus.FAILED, seq=seq, at=self.now, error=decision.error)
        return StepFailed(seq, self.now, step.attempt, decision.error)

    def _begin_sleep(self, run: FakeRun, command: BeginSleep) -> Outcome:
        assert command.step_id not in run.steps, f"{command.step_id} is begun twice"
        wake_at = command.until if command.until is not None else self.now + (command.duration_us or 0)
        seq = run.next_seq()
        step = HistoryStep(
            step_id=command.step_id, kind=StepKind.SLEEP, status=StepStatus.RUNNING, begun_seq=seq, wake_at=wake_at
        )
        if wake_at <= self.now:
            step = _replace(step, status=StepStatus.COMPLETED, seq=seq, at=self.now)
        run.steps[command.step_id] = step
        return Recorded(seq, self.now) if step.seq else TimerSet(seq, self.now, wake_at)

    def _finish_sleep(self, run: FakeRun, command: FinishSleep) -> Outcome:
        step = run.steps[command.step_id]
        assert step.wake_at is not None
        if step.seq:
            return Recorded(step.seq, step.at)
        if step.wake_at > self.now:
            return TimerSet(step.begun_seq, self.now, step.wake_at)
        run.steps[step.step_id] = done = _replace(step, status=StepStatus.COMPLETED, seq=run.next_seq(), at=self.now)
        return Recorded(done.seq, done.at)

    def _park(self, run: FakeRun, command: Park) -> Outcome:
        self._fire_due(run)
        come = tuple(step for step in run.steps.values() if step.seq > command.known_seq)
        times = [
            at
            for step in run.steps.values()
            if not step.seq and (at := step.wake_at if step.kind is StepKind.SLEEP else step.retry_at) is not None
        ]
        if come or any(at <= self.now for at in times):
            return NotParked(self.now, come)
        assert times, "nothing to wait for"
        assert set(command.waits) <= set(run.steps), command.waits
        run.due_at = min(times)
        run.become(RunStatus.SLEEPING)
        return Parked(self.now, run.due_at)

    def _close(self, run: FakeRun, command: Any) -> Outcome:
        match command:
            case CompleteRun(output=output):
                run.output = output
                run.become(RunStatus.COMPLETED)
            case FailRun(error=error):
                run.error = error
                run.become(RunStatus.FAILED)
            case CancelRun(error=error):
                assert run.cancel_requested
                run.error = error
                run.become(RunStatus.CANCELLED)
            case ReleaseRun():
                run.become(RunStatus.PENDING)
            case _:
                raise AssertionError(command)
        return RunClosed(run.next_seq(), self.now, run.status)


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
