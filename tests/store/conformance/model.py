"""The main verbs of a store, told with dictionaries: small enough to be believed, exact enough to be compared with.

For each command the model answers what may happen: one or more shapes of the outcome, each with the change that goes with it.
More than one is allowed only where the promise leaves the choice free; the state after it is always compared exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kagzi.core import commands as c
from kagzi.core import outcomes as o
from kagzi.core.errors import ErrorCode
from kagzi.core.records import Lease, RunKey
from kagzi.core.retry import SERVER_DEFAULT, RetryAt, RetryPolicy, after_failure
from kagzi.core.states import RunStatus, StepKind, StepStatus
from tests.support.seams import LoadedDice

Shape = tuple[object, ...]
Change = Callable[[], object]
Choices = dict[Shape, Change]

LOST: Shape = ("LeaseLost",)
REFUSED: Shape = ("Refused", ErrorCode.PRECONDITION_FAILED)


def nothing() -> None:
    """A repeat or a refusal."""


def shape(outcome: o.Outcome) -> Shape:
    """What can be foretold of an outcome. Seqs have gaps, so they are checked by the invariants instead."""
    match outcome:
        case o.Begun():
            return ("Begun", outcome.attempt)
        case o.Known():
            return ("Known", outcome.step.status, outcome.step.attempt)
        case o.RetryScheduled():
            return ("RetryScheduled", outcome.next_attempt, outcome.retry_at)
        case o.StepFailed():
            return ("StepFailed", outcome.attempts)
        case o.TimerSet():
            return ("TimerSet", outcome.wake_at)
        case o.Parked():
            return ("Parked", outcome.wake_at)
        case o.NotParked():
            return ("NotParked", frozenset(step.step_id for step in outcome.results))
        case o.RunClosed():
            return ("RunClosed", outcome.status, outcome.retry_at)
        case o.Refused():
            return ("Refused", outcome.error.code)
        case _:
            return (type(outcome).__name__,)


@dataclass
class Step:
    kind: StepKind
    lease: Lease
    status: StepStatus = StepStatus.RUNNING
    attempt: int = 1
    policy: RetryPolicy = SERVER_DEFAULT
    output: bytes | None = None
    retry_at: int | None = None
    wake_at: int | None = None

    @property
    def finished(self) -> bool:
        return self.status in (StepStatus.COMPLETED, StepStatus.FAILED)


@dataclass
class Run:
    key: RunKey
    workflow_id: str
    priority: int
    retry: RetryPolicy | None
    ready_at: int
    status: RunStatus = RunStatus.PENDING
    lease: Lease = field(default_factory=lambda: Lease(0, 0))
    attempt: int = 1
    lost_leases: int = 0
    due_at: int | None = None
    steps: dict[str, Step] = field(default_factory=dict[str, Step])

    @property
    def open_sleeps(self) -> dict[str, Step]:
        return {name: step for name, step in self.steps.items() if step.kind == StepKind.SLEEP and not step.finished}

    @property
    def retries(self) -> list[int]:
        return [step.retry_at for step in self.steps.values() if step.retry_at is not None]

    def pend(self, now: int) -> None:
        self.status, self.ready_at, self.due_at = RunStatus.PENDING, now, None

    def finish_due_sleeps(self, now: int) -> None:
        for step in self.open_sleeps.values():
            if step.wake_at is not None and step.wake_at <= now:
                step.status = StepStatus.COMPLETED
                self.lost_leases = 0


def expect(run: Run | None, command: c.Command, now: int) -> Choices:
    """What may become of a worker's command."""
    assert not isinstance(command, c.StartRun)
    if run is None:
        return {("RunNotFound",): nothing}
    holds = run.lease == command.lease
    if not (holds and run.status == RunStatus.RUNNING):
        # Nothing changes. What was recorded under this very lease may be told again; other leases learn nothing new.
        return dict.fromkeys([LOST, *_repeats(run, command, holds)], nothing)
    match command:
        case c.BeginStep():
            return _begin(run, command, now)
        case c.CompleteStep():
            return _complete(run, command)
        case c.FailStep():
            return _fail(run, command, now)
        case c.BeginSleep():
            return _sleep(run, command, now)
        case c.FinishSleep():
            return _finish(run, command, now)
        case c.Park():
            return _park(run, command, now)
        case _:
            return _close(run, command, now)


def _repeats(run: Run, command: c.Command, holds: bool) -> list[Shape]:
    if isinstance(command, c.Park | c.CompleteRun | c.FailRun | c.CancelRun | c.ReleaseRun):
        if not holds:
            return []
        if isinstance(command, c.Park):
            return [("Parked", run.due_at)]
        return [("RunClosed", run.status, at) for at in (run.due_at, run.ready_at)]
    assert not isinstance(command, c.StartRun)
    step = run.steps.get(command.step_id)
    if step is None or step.lease != command.lease:
        return []
    known: Shape = ("Known", step.status, step.attempt)
    match command:
        case c.BeginStep():
            return [known, ("Begun", command.attempt or step.attempt), REFUSED]
        case c.BeginSleep() | c.FinishSleep():
            return [("TimerSet", step.wake_at), ("Recorded",), known, REFUSED]
        case c.CompleteStep():
            return (
                [("Recorded",), REFUSED]
                if step.status == StepStatus.COMPLETED
                else [REFUSED, ("StepFailed", step.attempt)]
            )
        case _:
            return [
                ("StepFailed", step.attempt),
                ("RetryScheduled", step.attempt, step.retry_at),
                REFUSED,
                ("Recorded",),
            ]


def _begin(run: Run, command: c.BeginStep, now: int) -> Choices:
    step = run.steps.get(command.step_id)
    if step is None:
        if command.attempt > 1:
            return {REFUSED: nothing}
        policy = command.retry or SERVER_DEFAULT
        new = Step(StepKind.FUNCTION, command.lease, policy=policy)
        return {("Begun", 1): lambda: run.steps.__setitem__(command.step_id, new)}
    if step.kind != StepKind.FUNCTION:
        return {REFUSED: nothing}
    known: Shape = ("Known", step.status, step.attempt)
    current = command.attempt in (0, step.attempt)
    if step.finished:
        return {known: nothing} if current else {known: nothing, REFUSED: nothing, ("Begun", command.attempt): nothing}
    if not current:
        repeat = step.lease == command.lease and command.attempt < step.attempt
        return {known: nothing, ("Begun", command.attempt): nothing} if repeat else {REFUSED: nothing}
    if command.attempt == 0 and step.retry_at is not None and step.retry_at > now:
        return {known: nothing}

    def begin() -> None:
        step.status, step.lease, step.retry_at = StepStatus.RUNNING, command.lease, None

    return {("Begun", step.attempt): begin}


def _complete(run: Run, command: c.CompleteStep) -> Choices:
    step = run.steps.get(command.step_id)
    if step is None or step.kind != StepKind.FUNCTION:
        return {REFUSED: nothing}
    if command.attempt not in (0, step.attempt):
        # Of an attempt that failed, that may be told again.
        return {REFUSED: nothing, ("RetryScheduled", command.attempt + 1, step.retry_at): nothing}
    if step.status == StepStatus.COMPLETED:
        mine = step.lease == command.lease
        return {("Recorded",): nothing} if mine else {REFUSED: nothing, ("Recorded",): nothing}
    if step.status == StepStatus.FAILED:
        return {REFUSED: nothing, ("StepFailed", step.attempt): nothing}
    if step.status == StepStatus.PENDING:
        return {REFUSED: nothing}

    def complete() -> None:
        step.status, step.output, step.lease = StepStatus.COMPLETED, command.output.data, command.lease
        run.lost_leases = 0

    # The step was begun under an older lease: the newer holder should have begun it again.
    return {("Recorded",): complete} if step.lease == command.lease else {("Recorded",): complete, REFUSED: nothing}


def _fail(run: Run, command: c.FailStep, now: int) -> Choices:
    step = run.steps.get(command.step_id)
    if step is None or step.kind != StepKind.FUNCTION:
        return {REFUSED: nothing}
    mine = step.lease == command.lease
    if step.status == StepStatus.PENDING:
        again: Shape = ("RetryScheduled", step.attempt, step.retry_at)
        if mine and command.attempt == step.attempt - 1:
            return {again: nothing}
        return {REFUSED: nothing, again: nothing} if command.attempt == 0 else {REFUSED: nothing}
    if command.attempt not in (0, step.attempt):
        # A failure that was followed by another attempt is in the archive: to be told again, or refused.
        return {REFUSED: nothing, ("RetryScheduled", command.attempt + 1, step.retry_at): nothing}
    if step.status == StepStatus.FAILED:
        final: Shape = ("StepFailed", step.attempt)
        return {final: nothing} if mine else {final: nothing, REFUSED: nothing}
    if step.status == StepStatus.COMPLETED:
        return {REFUSED: nothing, ("Recorded",): nothing}
    decision = after_failure(step.policy, step.attempt, command.error, now, dice=LoadedDice())

    def fail() -> None:
        step.lease, run.lost_leases = command.lease, 0
        if isinstance(decision, RetryAt):
            step.status, step.attempt, step.retry_at = StepStatus.PENDING, decision.attempt, decision.at
        else:
            step.status = StepStatus.FAILED

    told: Shape = (
        ("RetryScheduled", decision.attempt, decision.at)
        if isinstance(decision, RetryAt)
        else ("StepFailed", step.attempt)
    )
    return {told: fail} if mine else {told: fail, REFUSED: nothing}


def _sleep(run: Run, command: c.BeginSleep, now: int) -> Choices:
    step = run.steps.get(command.step_id)
    if step is not None and step.kind != StepKind.SLEEP:
        return {REFUSED: nothing}
    if step is not None and step.finished:
        return {("Recorded",): nothing, ("Known", step.status, 1): nothing}
    wake_at = step.wake_at if step else command.until if command.until is not None else now + (command.duration_us or 0)
    assert wake_at is not None
    over = wake_at <= now

    def begin() -> None:
        found = run.steps.setdefault(command.step_id, Step(StepKind.SLEEP, command.lease, wake_at=wake_at))
        found.status = StepStatus.COMPLETED if over else StepStatus.RUNNING
        if over:
            run.lost_leases = 0

    return {("Recorded",) if over else ("TimerSet", wake_at): begin}


def _finish(run: Run, command: c.FinishSleep, now: int) -> Choices:
    step = run.steps.get(command.step_id)
    if step is None or step.kind != StepKind.SLEEP:
        return {REFUSED: nothing}
    if step.finished:
        return {("Recorded",): nothing}
    assert step.wake_at is not None
    if step.wake_at > now:
        return {("TimerSet", step.wake_at): nothing}

    def finish() -> None:
        step.status, run.lost_leases = StepStatus.COMPLETED, 0

    return {("Recorded",): finish}


def _park(run: Run, command: c.Park, now: int) -> Choices:
    due = {name for name, step in run.open_sleeps.items() if step.wake_at is not None and step.wake_at <= now}
    known = command.known_seq > 0  # the test knows all or nothing
    news = due if known else due | {name for name, step in run.steps.items() if step.finished}
    if news or any(at <= now for at in run.retries):
        return {("NotParked", frozenset(news)): lambda: run.finish_due_sleeps(now)}
    waits = [step.wake_at for step in run.open_sleeps.values() if step.wake_at is not None] + run.retries
    if not waits:
        return {REFUSED: nothing}

    def park() -> None:
        run.status, run.due_at = RunStatus.SLEEPING, min(waits)

    return {("Parked", min(waits)): park}


def _close(run: Run, command: c.Command, now: int) -> Choices:
    match command:
        case c.CompleteRun():
            return {("RunClosed", RunStatus.COMPLETED, None): lambda: setattr(run, "status", RunStatus.COMPLETED)}
        case c.ReleaseRun():
            return {("RunClosed", RunStatus.PENDING, None): lambda: run.pend(now)}
        case c.CancelRun():
            return {REFUSED: nothing}  # nobody asks for a cancellation here
        case _:
            return _fail_run(run, command, now)


def _fail_run(run: Run, command: c.Command, now: int) -> Choices:
    assert isinstance(command, c.FailRun)
    decision = run.retry and after_failure(run.retry, run.attempt, command.error, now, dice=LoadedDice())
    if not isinstance(decision, RetryAt):
        return {("RunClosed", RunStatus.FAILED, None): lambda: setattr(run, "status", RunStatus.FAILED)}

    def again() -> None:
        run.attempt += 1
        if decision.at <= now:
            run.pend(now)
        else:
            run.status, run.due_at = RunStatus.SLEEPING, decision.at

    if decision.at <= now:
        return {("RunClosed", RunStatus.PENDING, at): again for at in (None, decision.at)}
    return {("RunClosed", RunStatus.SLEEPING, decision.at): again}
