"""What the tiny server of `fake` does with the operations of a run."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import HistoryStep, Lease, Payload, RunKey
from kagzi.core.retry.policy import SERVER_DEFAULT, RetryAt, RetryPolicy, after_failure
from kagzi.core.run.commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    CancelRun,
    CompleteRun,
    CompleteStep,
    ContinueAsNew,
    DecideRace,
    FailRun,
    FailStep,
    FetchResults,
    FinishSleep,
    Park,
    PauseDiverged,
    RecordPatch,
    ReleaseRun,
    SetStatus,
    StartChild,
    WaitSignal,
)
from kagzi.core.run.outcomes import (
    Begun,
    ChildStarted,
    Fetched,
    NotParked,
    Outcome,
    Parked,
    Recorded,
    Refused,
    RetryScheduled,
    RunClosed,
    SignalBound,
    StepFailed,
    TimerSet,
)
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.operations import read_operation

if TYPE_CHECKING:
    from .fake import FakePort

_replace = msgspec.structs.replace


class NoRng:
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
    workflow_id: str = ""
    status: RunStatus = RunStatus.PENDING
    lease: int = 0
    seq: int = 0
    steps: dict[str, HistoryStep] = field(default_factory=dict)
    policies: dict[str, RetryPolicy] = field(default_factory=dict)
    output: Payload | None = None
    error: ErrorDetail | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    problem: ErrorDetail | None = None
    status_text: tuple[str, float | None] | None = None
    beats: list[tuple[str, Any]] = field(default_factory=list)
    signals: list[tuple[str, Payload]] = field(default_factory=list)  # sent and not consumed
    signal_names: dict[str, str] = field(default_factory=dict)  # of waiting steps
    begins: dict[str, Any] = field(default_factory=dict)  # the commands that began the steps
    parent: "tuple[FakeRun, str] | None" = None
    continued_as: "FakeRun | None" = None
    port: "FakePort | None" = None
    due_at: int | None = None
    log: list[str] = field(default_factory=list)  # what was committed, in order
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    on_change: Callable[[], None] = lambda: None

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
        if status is RunStatus.PENDING and self.pause_requested:
            status = RunStatus.PAUSED
        self.status = status
        self.changed.set()
        self.on_change()
        if status.ended:
            self.ended.set()


class Operations:
    """Part of FakeServer."""

    runs: list[FakeRun]
    refuse: Callable[[Any], ErrorDetail | None]
    latency: Callable[[], int]
    notice_latency: Callable[[], int]
    results_page = 1  # every run shows that pages are joined

    @property
    def now(self) -> int:
        raise NotImplementedError

    def later(self, passes: int, action: Callable[[], None]) -> None:
        raise NotImplementedError

    def start(self, workflow: Any, input: Any = ..., *, raw: bytes | None = None) -> FakeRun:
        raise NotImplementedError

    def _fire_due(self, run: FakeRun) -> None:
        for step in list(run.steps.values()):
            if step.wake_at is not None and not step.seq and step.wake_at <= self.now:
                done = _replace(step, seq=run.next_seq(), at=self.now)
                if step.kind is StepKind.SIGNAL:
                    error = ErrorDetail(
                        code=ErrorCode.TIMEOUT, kind=ErrorKind.TIMEOUT, type="TimeoutError", message="late"
                    )
                    run.steps[step.step_id] = _replace(done, status=StepStatus.FAILED, error=error)
                else:
                    run.steps[step.step_id] = _replace(done, status=StepStatus.COMPLETED)

    def _stir(self, run: FakeRun) -> None:
        if run.status is RunStatus.SLEEPING:
            run.become(RunStatus.PENDING)
        elif run.status is RunStatus.RUNNING and run.port is not None and run.port.execution is not None:
            port = run.port
            self.later(
                self.notice_latency(), lambda: None if port.closed.is_set() else port.execution.results_available()
            )

    def children_of(self, run: FakeRun) -> list[FakeRun]:
        """Those that have not ended."""
        return [each for each in self.runs if each.parent and each.parent[0] is run and not each.status.ended]

    def _apply(self, run: FakeRun, operation: pb.Operation) -> Outcome:
        command = read_operation(operation, RunKey("default", run.run_id), Lease(run.lease, 7))
        assert not isinstance(command, Refused), command
        refused = self.refuse(command)
        if refused is not None:
            return Refused(refused)
        if isinstance(command, CompleteStep | FailStep | BeatStep) and command.step_id not in run.steps:
            assert run.cancel_requested, f"{command.step_id} was never begun"
            return Refused(ErrorDetail(code=ErrorCode.PRECONDITION_FAILED, message="its begin was refused"))
        run.log.append(f"{type(command).__name__} {getattr(command, 'step_id', '')}".strip())
        doers: Mapping[type[Any], Callable[[FakeRun, Any], Outcome]] = {
            BeginStep: self._begin_step,
            CompleteStep: self._complete_step,
            FailStep: self._fail_step,
            BeginSleep: self._begin_sleep,
            FinishSleep: self._finish_sleep,
            Park: self._park,
            FetchResults: self._fetch,
            WaitSignal: self._wait_signal,
            StartChild: self._start_child,
            DecideRace: self._decide_race,
            RecordPatch: self._note,
            SetStatus: self._note,
            BeatStep: self._note,
        }
        return doers.get(type(command), self._close)(run, command)

    def _complete_step(self, run: FakeRun, command: CompleteStep) -> Outcome:
        step = self._current(run, command.step_id, command.attempt)
        done = _replace(step, status=StepStatus.COMPLETED, seq=run.next_seq(), at=self.now, output=command.output)
        run.steps[step.step_id] = done
        return Recorded(done.seq, done.at)

    def _may_begin(self, run: FakeRun, command: Any) -> Refused | None:
        if run.cancel_requested and not command.cleanup and command.step_id not in run.steps:
            return Refused(ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message="not needed"))
        run.begins.setdefault(command.step_id, command)
        return None

    def _wait_signal(self, run: FakeRun, command: WaitSignal) -> Outcome:
        assert command.step_id not in run.steps, f"{command.step_id} is begun twice"
        if (refused := self._may_begin(run, command)) is not None:
            return refused
        seq = run.next_seq()
        step = HistoryStep(step_id=command.step_id, kind=StepKind.SIGNAL, status=StepStatus.RUNNING, begun_seq=seq)
        run.signal_names[command.step_id] = command.signal_name
        for index, (name, payload) in enumerate(run.signals):
            if name == command.signal_name:
                del run.signals[index]
                run.steps[command.step_id] = _replace(
                    step, status=StepStatus.COMPLETED, seq=seq, at=self.now, output=payload
                )
                return SignalBound(seq, self.now, payload)
        wake_at = None if command.timeout_us is None else self.now + command.timeout_us
        run.steps[command.step_id] = _replace(step, wake_at=wake_at)
        return TimerSet(seq, self.now, wake_at)

    def _start_child(self, run: FakeRun, command: StartChild) -> Outcome:
        assert command.step_id not in run.steps, f"{command.step_id} is begun twice"
        if (refused := self._may_begin(run, command)) is not None:
            return refused
        seq = run.next_seq()
        step = HistoryStep(step_id=command.step_id, kind=StepKind.CHILD, status=StepStatus.RUNNING, begun_seq=seq)
        if any(each.workflow_id == command.start.workflow_id != "" and not each.status.ended for each in self.runs):
            error = ErrorDetail(code=ErrorCode.CONFLICT, kind=ErrorKind.PERMANENT, message="taken", subject="run")
            run.steps[command.step_id] = _replace(step, status=StepStatus.FAILED, seq=seq, at=self.now, error=error)
            return StepFailed(seq, self.now, 1, error)
        child = self.start(command.start.workflow_type)
        child.workflow_id = command.start.workflow_id
        child.input, child.parent = command.start.input, (run, command.step_id)
        run.steps[command.step_id] = _replace(step, child_run_id=child.run_id)
        return ChildStarted(seq, self.now, child.run_id, True, child.status)

    def _tell_parent(self, run: FakeRun) -> None:
        if run.parent is None:
            return
        parent, step_id = run.parent
        step = parent.steps[step_id]
        if parent.status.ended or step.seq:
            return
        done = _replace(step, seq=parent.next_seq(), at=self.now)
        if run.status is RunStatus.COMPLETED:
            parent.steps[step_id] = _replace(done, status=StepStatus.COMPLETED, output=run.output)
        else:
            assert run.error is not None
            code = ErrorCode.CANCELLED if run.status is RunStatus.CANCELLED else ErrorCode.USER
            error = ErrorDetail(
                code=code,
                kind=run.error.kind,
                type="kagzi.ChildError",
                message=f"run {run.run_id} failed: {run.error.text}",
                subject="run",
                subject_id=run.run_id,
                cause=run.error,
            )
            parent.steps[step_id] = _replace(done, status=StepStatus.FAILED, error=error)
        self._stir(parent)

    def _decide_race(self, run: FakeRun, command: DecideRace) -> Outcome:
        assert command.step_id not in run.steps, f"{command.step_id} is decided twice"
        unknown = set(command.losers) - set(run.steps)
        assert not unknown or run.cancel_requested, (command, unknown)  # in a cancelled run they may not have begun
        seq = run.next_seq()
        for step_id in command.losers:
            step = run.steps.get(step_id)
            if step is not None and not step.seq:
                run.steps[step_id] = _replace(step, status=StepStatus.ABANDONED, seq=seq, at=self.now, retry_at=None)
                for child in self.children_of(run):
                    if child.parent == (run, step_id):
                        child.error = ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message="lost")
                        child.become(RunStatus.CANCELLED)
        run.steps[command.step_id] = HistoryStep(
            step_id=command.step_id,
            kind=StepKind.RACE,
            status=StepStatus.COMPLETED,
            begun_seq=seq,
            seq=seq,
            at=self.now,
            output=Payload(msgspec.json.encode(command.winner)),
        )
        return Recorded(seq, self.now)

    def _note(self, run: FakeRun, command: Any) -> Outcome:
        match command:
            case SetStatus(text=text, progress=progress):
                run.status_text = (text, progress)
            case BeatStep(step_id=step_id, details=details):
                step = self._current(run, step_id, command.attempt)
                run.beats.append((step_id, msgspec.json.decode(details.data)))
                run.steps[step_id] = _replace(step, details=details)
            case RecordPatch(step_id=step_id):
                assert step_id not in run.steps, f"{step_id} is recorded twice"
                seq = run.next_seq()
                run.steps[step_id] = HistoryStep(
                    step_id=step_id,
                    kind=StepKind.PATCH,
                    status=StepStatus.COMPLETED,
                    begun_seq=seq,
                    seq=seq,
                    at=self.now,
                )
            case _:
                raise AssertionError(command)
        return Recorded(run.seq if isinstance(command, RecordPatch) else 0, self.now)

    def _current(self, run: FakeRun, step_id: str, attempt: int) -> HistoryStep:
        step = run.steps[step_id]
        assert step.status is StepStatus.RUNNING, f"{step_id} is {step.status}"
        assert step.attempt == attempt, f"{step_id}: attempt {attempt}, but {step.attempt} is the current one"
        return step

    def _begin_step(self, run: FakeRun, command: BeginStep) -> Outcome:
        if (refused := self._may_begin(run, command)) is not None:
            return refused
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
        decision = after_failure(policy, step.attempt, command.error, self.now, rng=NoRng())
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
        if (refused := self._may_begin(run, command)) is not None:
            return refused
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

    def _fetch(self, run: FakeRun, command: FetchResults) -> Outcome:
        self._fire_due(run)
        come = tuple(
            sorted((step for step in run.steps.values() if step.seq > command.known_seq), key=lambda step: step.seq)
        )
        return Fetched(self.now, come[: self.results_page], more=len(come) > self.results_page)

    def _park(self, run: FakeRun, command: Park) -> Outcome:
        self._fire_due(run)
        news = (step for step in run.steps.values() if step.seq > command.known_seq)
        come = tuple(sorted(news, key=lambda step: step.seq))
        waiting = [step for step in run.steps.values() if not step.seq]
        times = [at for step in waiting if (at := step.wake_at or step.retry_at) is not None]
        if come or any(at <= self.now for at in times):
            return NotParked(self.now, come[: self.results_page], more=len(come) > self.results_page)
        external = any(step.kind in (StepKind.SIGNAL, StepKind.CHILD) for step in waiting)
        assert times or external, "nothing to wait for"
        assert set(command.waits) <= set(run.steps), command.waits
        run.due_at = min(times, default=None)
        run.become(RunStatus.PAUSED if run.pause_requested else RunStatus.SLEEPING)
        return Parked(self.now, run.due_at)

    def _close(self, run: FakeRun, command: Any) -> Outcome:
        after = getattr(command, "after_step", "")
        if run.cancel_requested and after and (after not in run.steps or not run.steps[after].seq):
            return Refused(ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message="not needed"))
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
            case PauseDiverged(problem=problem):
                run.problem = problem
                run.become(RunStatus.PAUSED)
            case ContinueAsNew(input=input_):
                new = run.continued_as = self.start(run.workflow_type)
                new.version, new.input, new.parent, new.signals = run.version, input_, run.parent, run.signals
                run.parent = None
                run.become(RunStatus.COMPLETED)
            case _:
                raise AssertionError(command)
        if run.status.ended:
            self._tell_parent(run)
        return RunClosed(run.next_seq(), self.now, run.status)
