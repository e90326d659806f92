"""A model of the main verbs of a store, in dictionaries: small enough to be believed, exact enough to be compared with.

For each command the model answers what happens: the shape of the outcome, and the change that goes with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kagzi.core.error_details import ErrorCode
from kagzi.core.records import Lease, RunKey
from kagzi.core.retry.policy import SERVER_DEFAULT, RetryAt, RetryPolicy, after_failure
from kagzi.core.run import commands as c
from kagzi.core.run import outcomes as o
from kagzi.core.states import RunStatus, StepKind, StepStatus
from tests.support.providers import LoadedRng

Shape = tuple[object, ...]
Change = Callable[[], object]
Expected = tuple[Shape, Change]

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
    failures: dict[int, tuple[Lease, int]] = field(default_factory=dict[int, tuple[Lease, int]])
    """Attempts that were followed by another: who said so, and when the next one was due."""

    @property
    def finished(self) -> bool:
        return self.status in (StepStatus.COMPLETED, StepStatus.FAILED)

    def failed_under(self, attempt: int) -> Lease | None:
        return self.failures[attempt][0] if attempt in self.failures else None

    def is_result_of(self, command: c.OpenAttempt | c.CompleteStep | c.FailStep) -> bool:
        return self.finished and self.lease == command.lease and command.attempt in (0, self.attempt)


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
    retrying: bool = False  # it sleeps until its own next try
    steps: dict[str, Step] = field(default_factory=dict[str, Step])

    @property
    def open_sleeps(self) -> dict[str, Step]:
        return {name: step for name, step in self.steps.items() if step.kind == StepKind.SLEEP and not step.finished}

    @property
    def retries(self) -> list[int]:
        return [step.retry_at for step in self.steps.values() if step.retry_at is not None]

    def pend(self, now: int) -> None:
        self.status, self.ready_at, self.due_at = RunStatus.PENDING, now, None

    def take(self, now: int) -> None:
        """PENDING by nobody's word: nothing that its last holder repeats is taken for its own."""
        self.pend(now)
        self.lease = Lease(self.lease.counter, 0)

    def finish_due_sleeps(self, now: int, lease: Lease | None = None) -> None:
        """Their holder has asked, or nobody."""
        for step in self.open_sleeps.values():
            if step.wake_at is not None and step.wake_at <= now:
                step.status, step.lease = StepStatus.COMPLETED, lease or step.lease
                self.lost_leases = 0


def predict(run: Run | None, command: c.Command, now: int) -> Expected:
    """What becomes of a worker's command."""
    assert not isinstance(command, c.StartRun)
    if run is None:
        return ("RunNotFound",), nothing
    if not (run.lease == command.lease and run.status == RunStatus.RUNNING):
        # Nothing changes. What was recorded under this very lease is told again; others learn nothing.
        return _repeat(run, command) or LOST, nothing
    match command:
        case c.BeginStep():
            return _begin(run, command, now)
        case c.RecordStep():
            return _record(run, command, now)
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


def _repeat(run: Run, command: c.Command) -> Shape | None:
    if isinstance(command, c.Park | c.CompleteRun | c.FailRun | c.CancelRun | c.ReleaseRun):
        return _repeated_end(run, command) if run.lease == command.lease else None
    assert not isinstance(command, c.StartRun)
    step = run.steps.get(command.step_id)
    if step is None:
        return None
    match command:
        case c.BeginStep():
            return _repeated_begin(step, command)
        case c.CompleteStep() | c.RecordStep():
            return _repeated_completion(step, command)
        case c.FailStep():
            return _repeated_failure(step, command)
        case _:
            return _repeated_sleep(step, command)


def _repeated_end(run: Run, command: c.Command) -> Shape | None:
    match command:
        case c.Park():
            return ("Parked", run.due_at) if run.status == RunStatus.SLEEPING else None
        case c.ReleaseRun():
            return ("RunClosed", run.status, None) if run.status == RunStatus.PENDING else None
        case c.FailRun() if run.status == RunStatus.SLEEPING and run.retrying:
            return ("RunClosed", run.status, run.due_at)
        case _:
            return ("RunClosed", run.status, None) if run.status.ended else None


def _repeated_begin(step: Step, command: c.OpenAttempt) -> Shape | None:
    if step.failed_under(command.attempt) == command.lease:
        return ("Begun", command.attempt)
    return _known(step) if step.is_result_of(command) and step.kind == StepKind.FUNCTION else None


def _repeated_completion(step: Step, command: c.CompleteStep | c.RecordStep) -> Shape | None:
    done = step.kind == StepKind.FUNCTION and step.status == StepStatus.COMPLETED
    return ("Recorded",) if done and step.is_result_of(command) else None


def _repeated_failure(step: Step, command: c.FailStep) -> Shape | None:
    if step.status == StepStatus.FAILED and step.is_result_of(command):
        return ("StepFailed", step.attempt)
    attempt = command.attempt or (step.attempt - 1 if step.status == StepStatus.PENDING else 0)
    if step.failed_under(attempt) != command.lease:
        return None
    return ("RetryScheduled", attempt + 1, step.failures[attempt][1])


def _repeated_sleep(step: Step, command: c.Command) -> Shape | None:
    assert isinstance(command, c.BeginSleep | c.FinishSleep)
    if step.kind != StepKind.SLEEP or step.lease != command.lease:
        return None
    if step.finished:
        return ("Recorded",)
    return ("TimerSet", step.wake_at) if isinstance(command, c.BeginSleep) else None


def _known(step: Step) -> Shape:
    return ("Known", step.status, step.attempt)


def _begin(run: Run, command: c.OpenAttempt, now: int) -> Expected:
    step = run.steps.get(command.step_id)
    if step is None:
        if command.attempt > 1:
            return REFUSED, nothing
        policy = command.retry or SERVER_DEFAULT
        new = Step(StepKind.FUNCTION, command.lease, policy=policy)
        return ("Begun", 1), lambda: run.steps.__setitem__(command.step_id, new)
    if step.kind != StepKind.FUNCTION:
        return REFUSED, nothing
    if (repeated := _repeated_begin(step, command)) is not None:
        return repeated, nothing
    if step.finished:
        return _known(step), nothing
    if command.attempt not in (0, step.attempt):
        return REFUSED, nothing
    if command.attempt == 0 and step.retry_at is not None and step.retry_at > now:
        return _known(step), nothing

    def begin() -> None:
        step.status, step.lease, step.retry_at = StepStatus.RUNNING, command.lease, None

    return ("Begun", step.attempt), begin


def _record(run: Run, command: c.RecordStep, now: int) -> Expected:
    """A begin, and if that is accepted a completion."""
    (kind, *_), begin = begun = _begin(run, command, now)
    if kind not in ("Begun", "Known"):
        return begun
    if begin is nothing:
        return _complete(run, command)

    def record() -> None:
        begin()
        _, complete = _complete(run, command)
        complete()

    return ("Recorded",), record


def _complete(run: Run, command: c.CompleteStep | c.RecordStep) -> Expected:
    step = run.steps.get(command.step_id)
    if step is None or step.kind != StepKind.FUNCTION:
        return REFUSED, nothing
    if (repeated := _repeated_completion(step, command)) is not None:
        return repeated, nothing
    if step.status != StepStatus.RUNNING or command.attempt not in (0, step.attempt):
        return REFUSED, nothing

    def complete() -> None:
        step.status, step.output, step.lease = StepStatus.COMPLETED, command.output.data, command.lease
        run.lost_leases = 0

    return ("Recorded",), complete  # also of an attempt that was begun under an older lease


def _fail(run: Run, command: c.FailStep, now: int) -> Expected:
    step = run.steps.get(command.step_id)
    if step is None or step.kind != StepKind.FUNCTION:
        return REFUSED, nothing
    if (repeated := _repeated_failure(step, command)) is not None:
        return repeated, nothing
    if step.status != StepStatus.RUNNING or command.attempt not in (0, step.attempt):
        return REFUSED, nothing
    decision = after_failure(step.policy, step.attempt, command.error, now, rng=LoadedRng())

    def fail() -> None:
        step.lease, run.lost_leases = command.lease, 0
        if isinstance(decision, RetryAt):
            step.failures[step.attempt] = command.lease, decision.at
            step.status, step.attempt, step.retry_at = StepStatus.PENDING, decision.attempt, decision.at
        else:
            step.status = StepStatus.FAILED

    if isinstance(decision, RetryAt):
        return ("RetryScheduled", decision.attempt, decision.at), fail
    return ("StepFailed", step.attempt), fail


def _sleep(run: Run, command: c.BeginSleep, now: int) -> Expected:
    step = run.steps.get(command.step_id)
    if step is not None and step.kind != StepKind.SLEEP:
        return REFUSED, nothing
    if step is not None and step.finished:
        return ("Recorded",), nothing
    wake_at = step.wake_at if step else command.until if command.until is not None else now + (command.duration_us or 0)
    assert wake_at is not None
    over = wake_at <= now

    def begin() -> None:
        sleeping = run.steps.setdefault(command.step_id, Step(StepKind.SLEEP, command.lease, wake_at=wake_at))
        sleeping.status = StepStatus.COMPLETED if over else StepStatus.RUNNING
        if over:
            run.lost_leases, sleeping.lease = 0, command.lease

    return ("Recorded",) if over else ("TimerSet", wake_at), begin


def _finish(run: Run, command: c.FinishSleep, now: int) -> Expected:
    step = run.steps.get(command.step_id)
    if step is None or step.kind != StepKind.SLEEP:
        return REFUSED, nothing
    if step.finished:
        return ("Recorded",), nothing
    assert step.wake_at is not None
    if step.wake_at > now:
        return ("TimerSet", step.wake_at), nothing

    def finish() -> None:
        step.status, step.lease, run.lost_leases = StepStatus.COMPLETED, command.lease, 0

    return ("Recorded",), finish


def _park(run: Run, command: c.Park, now: int) -> Expected:
    due = {name for name, step in run.open_sleeps.items() if step.wake_at is not None and step.wake_at <= now}
    known = command.known_seq > 0  # the test knows all or nothing
    results = due if known else due | {name for name, step in run.steps.items() if step.finished}
    if results or any(at <= now for at in run.retries):
        return ("NotParked", frozenset(results)), lambda: run.finish_due_sleeps(now, command.lease)
    waits = [step.wake_at for step in run.open_sleeps.values() if step.wake_at is not None] + run.retries
    if not waits:
        return REFUSED, nothing

    def park() -> None:
        run.status, run.due_at, run.retrying = RunStatus.SLEEPING, min(waits), False

    return ("Parked", min(waits)), park


def _close(run: Run, command: c.Command, now: int) -> Expected:
    match command:
        case c.CompleteRun():
            return ("RunClosed", RunStatus.COMPLETED, None), lambda: setattr(run, "status", RunStatus.COMPLETED)
        case c.ReleaseRun():
            return ("RunClosed", RunStatus.PENDING, None), lambda: run.pend(now)
        case c.CancelRun():
            return REFUSED, nothing  # nobody asks for a cancellation here
        case _:
            return _fail_run(run, command, now)


def _fail_run(run: Run, command: c.Command, now: int) -> Expected:
    assert isinstance(command, c.FailRun)
    decision = run.retry and after_failure(run.retry, run.attempt, command.error, now, rng=LoadedRng())
    if not isinstance(decision, RetryAt):
        return ("RunClosed", RunStatus.FAILED, None), lambda: setattr(run, "status", RunStatus.FAILED)

    def again() -> None:
        run.attempt += 1
        if decision.at <= now:
            run.pend(now)
        else:
            run.status, run.due_at, run.retrying = RunStatus.SLEEPING, decision.at, True

    status = RunStatus.PENDING if decision.at <= now else RunStatus.SLEEPING
    return ("RunClosed", status, decision.at), again
