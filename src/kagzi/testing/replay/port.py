"""The port of a replayed run, without a server: it answers from the history and executes nothing beyond it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

from ...core.error_details import ErrorDetail
from ...core.records import Payload
from ...core.times import US_PER_S, Timestamp
from ...sdk.execution.ledger import WITHDRAWN
from ...sdk.execution.ports import Answer, Fill, OnAnswer
from ...v1 import worker_pb2 as pb
from ...wire.common import read_error, read_payload
from .observation import Observation, TimeoutChange
from .result import Outcome

ENDINGS: dict[str, Outcome] = {
    "complete_run": "completed",
    "fail_run": "failed",
    "cancel_run": "cancelled",
    "continue_as_new": "continued",
    "diverged": "diverged",
}
_SILENT = ("set_status", "set_state", "step_heartbeat", "patch")  # the code does not wait for the response
_NOT_YET_US = 365 * 86_400 * US_PER_S
_WORDS = {
    "begin_step": "step {!r} to be executed",
    "complete_step": "the result of step {!r} to be recorded",
    "record_step": "the result of step {!r} to be recorded",
    "fail_step": "the failure of step {!r} to be recorded",
    "sleep": "sleep {!r}",
    "wait_signal": "signal {!r}",
    "start_child": "child {!r} to be started",
    "race": "race {!r} to be decided",
}


class Verdict(NamedTuple):
    """How a replay ended, as the run reported it."""

    outcome: Outcome
    payload: Payload | None = None  # the output, or the input of the successor
    error: ErrorDetail | None = None
    waits_for: str = ""


class Replaying(Protocol):
    """The execution, as its port sees it."""

    def hold(self, step_id: str) -> Coroutine[Any, Any, None]:
        """Never returns: the body of this step must not run."""
        ...

    def check_idle(self) -> None:
        """An operation was sent that gets no response: check whether the run can only wait."""
        ...

    @property
    def runs_bodies(self) -> bool:
        """Whether bodies of steps are running."""
        ...

    def outside_wait(self) -> str:
        """Describes what outside Kagzi the code waits for."""
        ...

    def release(self, reason: str) -> None: ...

    def results_available(self) -> None: ...


class ReplayPort:
    """Implements kagzi.sdk.execution.ports.RunPort. Accepts the end of the run; holds and records everything that the
    code would do for the first time."""

    def __init__(self, task: pb.Task, observation: Observation, until: str = "") -> None:
        self.task = task
        self.observation = observation
        self.until = until  # the step to stop at
        self.last_seq = task.last_seq
        self.foreign_seq = 0
        self.pending: dict[str, str] = {}  # a description of what the code would do, by step
        self.executed: list[str] = []
        self.verdict: Verdict | None = None
        self.release_reason = ""
        self.left_with: BaseException | None = None  # what the function raised
        self.is_live = False  # whether the run continues beyond the history
        self.waits_outside = True  # whether the code may continue after a wait outside Kagzi
        self.loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self.execution: Replaying | None = None

    def stop(self, verdict: Verdict) -> None:
        """End the replay with this verdict, unless it already has one."""
        if self.verdict is None:
            self.verdict = verdict
        if self.execution is not None:
            self.execution.release("the replay is over")

    @property
    def is_busy(self) -> bool:
        """Whether the run waits for something that is in progress here, such as bodies of steps."""
        return False

    def now_us(self) -> Timestamp:
        """The run's current time."""
        return self.task.claimed_at_us

    async def end_children(self) -> None:
        """Returns when everything that was started for the run has ended."""

    def skip(self, seconds: float) -> None:
        """Move the clock forward. Only for a port that is live."""
        raise AssertionError("the time of a history does not pass")

    # --- RunPort ------------------------------------------------------------------------------------------------------

    def lease_is_over(self) -> bool:
        return False

    def ask_about_lease(self) -> Callable[[], None]:
        raise AssertionError("its lease is never over")

    def announce(self) -> pb.Operation:
        return pb.Operation()

    def begin(self, step_id: str, fill: Fill) -> Coroutine[Any, Any, None] | None:
        return self.hold(step_id, _WORDS["begin_step"].format(step_id))

    def hold(self, step_id: str, words: str) -> Coroutine[Any, Any, None]:
        assert self.execution is not None
        self.pending[step_id] = words
        return self.execution.hold(step_id)

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        operation = pb.Operation()
        self.loop.call_soon(self.left, operation, on_answer)
        return operation

    def complete(self, step_id: str, on_answer: OnAnswer) -> tuple[pb.Operation, bool]:
        return self.send(on_answer), False

    async def fetch_history(self, after: int, known_seq: int = 0) -> Sequence[pb.HistoryStep]:
        return ()

    def close(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    # --- operations ---------------------------------------------------------------------------------------------------

    def left(self, operation: pb.Operation, on_answer: OnAnswer) -> None:
        """Process an operation that the caller has filled in."""
        if self.closed.done():
            return
        kind = operation.WhichOneof("kind") or ""
        if kind in ENDINGS:
            self._ended(kind, operation)
            on_answer(self.acknowledged(pb.OperationAnswer(closed=pb.RunClosed())))
        elif kind == "release":
            self.release_reason = operation.release.reason
            on_answer(self.acknowledged(pb.OperationAnswer(closed=pb.RunClosed())))
        else:
            self.answer(kind, operation, on_answer)

    def answer(self, kind: str, operation: pb.Operation, on_answer: OnAnswer) -> None:
        """Answer an operation that does not end the run, or hold it."""
        if kind in _SILENT or (kind == "race" and operation.race.step_id.endswith(WITHDRAWN)):
            on_answer(Answer(0, self.task.claimed_at_us, None))
        elif kind == "finish_sleep":
            on_answer(self.acknowledged(pb.OperationAnswer(timer=pb.TimerSet(wake_at_us=1, remaining_us=_NOT_YET_US))))
        elif kind == "wait_signal" and operation.wait_signal.step_id in self.observation.taken:
            self._note_timeout(operation.wait_signal)
            on_answer(self.acknowledged(pb.OperationAnswer(timer=pb.TimerSet())))
        elif kind == "fetch_results":
            on_answer(self.acknowledged(pb.OperationAnswer(fetched=pb.Fetched())))
        else:
            step_id: str = getattr(operation, kind).step_id
            self.pending[step_id] = _WORDS.get(kind, "{!r}").format(step_id)
            if self.execution is not None:
                self.execution.check_idle()

    def _note_timeout(self, wait: pb.WaitSignalOperation) -> None:
        (step,) = [step for step in self.task.history.steps if step.step_id == wait.step_id]
        before_us = step.wake_at_us - step.at_us if step.wake_at_us else None
        after_us = wait.timeout_us if wait.HasField("timeout_us") else None
        self.observation.timeouts[wait.step_id] = TimeoutChange(before_us, after_us)

    def acknowledged(self, detail: pb.OperationAnswer) -> Answer:
        return Answer(detail.seq or self.last_seq, detail.at_us or self.task.claimed_at_us, detail)

    def _ended(self, kind: str, operation: pb.Operation) -> None:
        if self.verdict is not None:
            return
        self.observation.events += 1
        payload: Payload | None = None
        error: ErrorDetail | None = None
        match kind:
            case "complete_run":
                payload = read_payload(operation.complete_run.output)
            case "continue_as_new":
                payload = read_payload(operation.continue_as_new.input)
            case "fail_run":
                error = read_error(operation.fail_run.error)
            case "cancel_run":
                error = read_error(operation.cancel_run.error)
            case _:
                error = read_error(operation.diverged.problem)
        self.verdict = Verdict(ENDINGS[kind], payload, error)
