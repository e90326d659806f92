"""A store in memory, for tests of the SDK: the state machine of `kagzi.core.run`, and what a server does around it.

What a worker may send but never should, this refuses with AssertionError: most operations are sent once, for steps that
are begun.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from kagzi.core.error_details import Child, ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import Payload, RunKey
from kagzi.core.run.children import child_error
from kagzi.core.run.commands import (
    BeatStep,
    BeginSleep,
    BeginStep,
    Command,
    ContinueAsNew,
    DecideRace,
    FetchResults,
    Park,
    RecordPatch,
    RecordStep,
    StartChild,
    WaitSignal,
)
from kagzi.core.run.control import after_cancel, after_pause, cancelled_error, refuse_signal
from kagzi.core.run.decide import decide
from kagzi.core.run.outcomes import (
    ChildStarted,
    DeadlinePassed,
    Fetched,
    Known,
    LeaseLost,
    NotParked,
    Outcome,
    Refused,
)
from kagzi.core.run.state import OUTPUT_STEP, Relative, Relatives, SignalState, StepState
from kagzi.core.states import RUN_STATUS_OF_CODE, KindCode, RunCode, RunStatus, StepCode
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.operations import read_operation
from tests.support.providers import LoadedRng

from .fake_run import NAMESPACE, FakeRun

_replace = msgspec.structs.replace
_ALL_KNOWN = 2**62
_NO_JITTER = LoadedRng()
_SENT_ONCE = (BeginSleep, WaitSignal, StartChild, DecideRace, RecordPatch)


class FakeStore:
    """Runs, and what may happen to them. `notice`: something has come for a run that a worker holds."""

    def __init__(
        self, clock: Callable[[], int], on_change: Callable[[], None], notice: Callable[[FakeRun], None]
    ) -> None:
        self.runs: list[FakeRun] = []
        self.refuse: Callable[[Any], ErrorDetail | None] = lambda command: None
        self.results_page = 1  # every run shows that pages are joined
        self._clock = clock
        self._frozen_at: int | None = None
        self._on_change = on_change
        self._notice = notice

    @property
    def now(self) -> int:
        """While an operation is applied it stands still."""
        return self._frozen_at or self._clock()

    # --- runs ---------------------------------------------------------------------------------------------------------

    def insert(self, workflow_type: str, version: str, input: Payload | None) -> FakeRun:
        run_id = f"00000000-0000-7000-8000-{len(self.runs):012d}"
        run = FakeRun(run_id, workflow_type, version, self.now, self._on_change)
        run.input = input
        self.runs.append(run)
        self._on_change()
        return run

    def children_of(self, run: FakeRun) -> list[FakeRun]:
        """Those that have not ended."""
        return [each for each in self.runs if each.parent and each.parent[0] is run and not each.status.ended]

    def lease(self, run: FakeRun) -> None:
        """To the next worker. Timers that are due fire first."""
        run.lease += 1
        run.become(RunStatus.RUNNING)
        run.changed.clear()
        key, lease = run.state.run, run.state.lease
        self._decide(run, FetchResults(run=key, lease=lease, waits=(), known_seq=_ALL_KNOWN))

    def end(
        self, run: FakeRun, status: RunStatus, *, output: bytes = b"null", error: ErrorDetail | None = None
    ) -> None:
        """Without its worker."""
        run.state.error = error
        if status is RunStatus.COMPLETED:
            run.state.steps[OUTPUT_STEP] = self._step(run, OUTPUT_STEP, KindCode.OUTPUT, Payload(output))
        run.become(status)
        self._notify_watchers(run)

    def _step(self, run: FakeRun, step_id: str, kind: KindCode, output: Payload) -> StepState:
        seq = run.state.next_result_seq()
        return StepState(
            step_id=step_id,
            name=step_id,
            kind=kind,
            status=StepCode.COMPLETED,
            begun_seq=seq,
            seq=seq,
            lease=run.state.lease,
            created_at=self.now,
            output=output,
        )

    # --- what others do to a run --------------------------------------------------------------------------------------

    def signal(self, run: FakeRun, name: str, value: Any) -> None:
        payload = Payload(msgspec.json.encode(value))
        waits = [step for step in run.steps_of(KindCode.SIGNAL) if not step.has_result and step.name == name]
        assert refuse_signal(run.run_id, run.state.status, waited_for=bool(waits), unread=len(run.signals)) is None
        run.state.next_seq()
        number = 1 + max((signal.number for signal in run.state.signals), default=0)
        signal = SignalState(number=number, name=name, payload=payload)
        run.state.signals.append(signal)
        if waits:
            step = min(waits, key=lambda step: step.begun_seq)
            signal.step_id = step.step_id
            self._end_step(run, step, payload, None)
            self._wake(run)

    def cancel(self, run: FakeRun, reason: str = "not needed") -> bool:
        """Whether a worker that holds the run is to be notified."""
        status = after_cancel(run.state.status, run.lease)
        if status is None:
            return False
        run.state.next_seq()
        run.state.cancel_requested_at, run.state.cancel_reason = self.now, reason
        if status == RunCode.CANCELLED:
            self.end(run, RunStatus.CANCELLED, error=cancelled_error(reason))
        elif status != run.state.status:
            run.become(RUN_STATUS_OF_CODE[status])
        return status == RunCode.RUNNING

    def pause(self, run: FakeRun) -> bool:
        """As `cancel`."""
        state = run.state
        status = after_pause(
            state.status, pause_requested=state.pause_requested, cancel_requested=state.cancel_requested_at is not None
        )
        if status is None:
            return False
        state.next_seq()
        state.pause_requested = status == RunCode.RUNNING
        if not state.pause_requested:
            run.become(RunStatus.PAUSED)
        return state.pause_requested

    def resume(self, run: FakeRun) -> None:
        run.state.pause_requested = False
        run.become(RunStatus.PENDING)

    def wake(self, run: FakeRun, step_id: str) -> None:
        """A sleep, or a step until its next attempt, is due now."""
        run.state.next_seq()
        step = run.state.steps[step_id]
        if step.kind == KindCode.SLEEP:
            step.wake_at = self.now
        else:
            step.retry_at = self.now
        self._wake(run)

    def _end_step(self, run: FakeRun, step: StepState, output: Payload | None, error: ErrorDetail | None) -> None:
        step.seq = run.state.next_result_seq()
        step.status = StepCode.COMPLETED if error is None else StepCode.FAILED
        step.finished_at, step.output, step.error = self.now, output, error

    def _wake(self, run: FakeRun) -> None:
        if run.status is RunStatus.SLEEPING:
            run.become(RunStatus.PENDING)
        elif run.status is RunStatus.RUNNING:
            self._notice(run)

    def _notify_watchers(self, run: FakeRun) -> None:
        child = Child(run.run_id, run.workflow_type, run.workflow_id or run.run_id)
        for watcher, step_id in run.watchers:
            step = watcher.state.steps[step_id]
            if watcher.status.ended or step.has_result:
                continue
            completed = run.status is RunStatus.COMPLETED
            error = None if completed else child_error(child, run.state.status, run.error)
            self._end_step(watcher, step, run.output if completed else None, error)
            self._wake(watcher)

    # --- operations ---------------------------------------------------------------------------------------------------

    def apply(self, run: FakeRun, operation: pb.Operation) -> Outcome:
        command = read_operation(operation, run.state.run, run.state.lease)
        assert not isinstance(command, Refused), command
        refused = self.refuse(command)
        if refused is not None:
            return Refused(refused)
        self._frozen_at = self._clock()
        try:
            return self._apply(run, command)
        finally:
            self._frozen_at = None

    def _apply(self, run: FakeRun, command: Any) -> Outcome:
        self._check(run, command)
        if isinstance(command, StartChild):
            command = self._with_relatives(run, command)
        status = run.state.status
        outcome = self._decide(run, command)
        assert self._is_allowed(run, command, outcome), f"{command} came to {outcome}"
        if isinstance(outcome, Refused | LeaseLost):
            return outcome
        names = ("BeginStep", "CompleteStep") if isinstance(command, RecordStep) else (type(command).__name__,)
        run.log += [f"{name} {getattr(command, 'step_id', '')}".strip() for name in names]
        if hasattr(command, "cleanup"):
            run.begins.setdefault(command.step_id, command)
        self._follow_up(run, command, outcome)
        if run.state.status != status:
            run.notify()
        if isinstance(outcome, Fetched | NotParked) and len(outcome.results) > self.results_page:
            return _replace(outcome, results=outcome.results[: self.results_page], more=True)
        return outcome

    def _decide(self, run: FakeRun, command: Command) -> Outcome:
        run.state.answer_bytes = 0
        return decide(run.state, command, self.now, _NO_JITTER)

    def _check(self, run: FakeRun, command: Any) -> None:
        steps = run.state.steps
        if isinstance(command, _SENT_ONCE) and not _changes_timeout(steps.get(command.step_id), command):
            assert command.step_id not in steps, f"{command.step_id} is recorded twice"
        if isinstance(command, DecideRace):
            unknown = set(command.losers) - set(steps)
            assert not unknown or run.cancel_requested, (command, unknown)  # in a cancelled run they may not have begun
        if isinstance(command, Park):
            assert set(command.waits) <= set(steps), command.waits

    def _is_allowed(self, run: FakeRun, command: Any, outcome: Outcome) -> bool:
        """Whether a worker that keeps the rules may get this answer."""
        if isinstance(outcome, Refused):  # what did not begin in a cancelled run cannot end
            return run.cancel_requested and outcome.error.code in (ErrorCode.CANCELLED, ErrorCode.PRECONDITION_FAILED)
        if isinstance(outcome, Known):
            # Begun by a worker that is lost; or the wait ended before the server knew its new timeout.
            return isinstance(command, WaitSignal) or (isinstance(command, BeginStep) and command.once)
        return not isinstance(outcome, DeadlinePassed)

    def _with_relatives(self, run: FakeRun, command: StartChild) -> StartChild:
        """As the engine draws the ids, and a store reads the runs that the decision depends on."""
        run_id = f"00000000-0000-7000-8000-{len(self.runs):012d}"
        workflow_id = command.start.workflow_id or run_id
        active = {
            each.workflow_id: Relative(each.run_id, each.workflow_type, each.state.status)
            for each in self.runs
            if each.workflow_id and not each.status.ended
        }
        run.state.relatives = Relatives(active=active)
        start = _replace(command.start, run=RunKey(NAMESPACE, run_id), request_id=run_id, workflow_id=workflow_id)
        return _replace(command, start=start)

    def _follow_up(self, run: FakeRun, command: Any, outcome: Outcome) -> None:
        if isinstance(command, StartChild) and isinstance(outcome, ChildStarted):
            self._follow_child(run, command, outcome)
        elif isinstance(command, DecideRace):
            self._cancel_children(run, set(command.losers))
        elif isinstance(command, BeatStep):
            run.heartbeats.append((command.step_id, msgspec.json.decode(command.details.data)))
        elif isinstance(command, ContinueAsNew):
            new = run.continued_as = self.insert(run.workflow_type, run.version, command.input)
            new.parent, new.watchers = run.parent, run.watchers
            new.state.signals = [signal for signal in run.state.signals if not signal.step_id]
            run.parent, run.watchers = None, []
        if run.state.ended:
            self._notify_watchers(run)

    def _follow_child(self, run: FakeRun, command: StartChild, outcome: ChildStarted) -> None:
        if outcome.created:
            child = self.insert(command.start.workflow_type, "1", command.start.input)
            child.workflow_id, child.parent = command.start.workflow_id, (run, command.step_id)
        else:
            child = next(each for each in self.runs if each.run_id == outcome.child_run_id)
        child.watchers.append((run, command.step_id))

    def _cancel_children(self, run: FakeRun, losers: set[str]) -> None:
        lost = ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message="lost")
        for child in self.children_of(run):
            assert child.parent is not None
            step = run.state.steps[child.parent[1]]
            if step.step_id in losers and step.status == StepCode.ABANDONED:
                self.end(child, RunStatus.CANCELLED, error=lost)


def _changes_timeout(step: StepState | None, command: Command) -> bool:
    """Of a wait under way. The worker may learn only from the answer that the wait has ended."""
    if step is None or not isinstance(command, WaitSignal):
        return False
    wake_at = None if command.timeout_us is None else (step.started_at or 0) + command.timeout_us
    return step.wake_at != wake_at
