"""A run in memory, for tests of the SDK without a server: its state as `kagzi.core.run` sees it, and what tests ask
about it."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from kagzi.core.error_details import ErrorDetail
from kagzi.core.records import HistoryStep, Lease, Payload, RunKey
from kagzi.core.retry.policy import SERVER_DEFAULT, RetryPolicy
from kagzi.core.run.state import OUTPUT_STEP, RunState, StepState
from kagzi.core.states import CODE_OF_RUN_STATUS, RUN_STATUS_OF_CODE, KindCode, RunStatus

if TYPE_CHECKING:
    from .fake import FakePort

NAMESPACE = "default"
_NONCE = 7


class FakeRun:
    """Tests read it, and write what they could not bring about otherwise."""

    def __init__(
        self, run_id: str, workflow_type: str, version: str, created_at: int, on_change: Callable[[], None]
    ) -> None:
        self.run_id = run_id
        self.workflow_type = workflow_type
        self.version = version
        self.created_at = created_at
        self.workflow_id = ""
        self.input: Payload | None = None
        self.state = RunState(
            run=RunKey(NAMESPACE, run_id),
            status=CODE_OF_RUN_STATUS[RunStatus.PENDING],
            lease=Lease(0, _NONCE),
            read_seq=0,
            seq=0,
            deadline_at=None,
            worker_id="w",
        )
        self.parent: tuple[FakeRun, str] | None = None
        self.watchers: list[tuple[FakeRun, str]] = []  # runs with a step that gets its end
        self.continued_as: FakeRun | None = None
        self.port: FakePort | None = None
        self.begins: dict[str, Any] = {}  # the commands that began the steps
        self.heartbeats: list[tuple[str, Any]] = []
        self.log: list[str] = []  # what was committed, in order
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()
        self._on_change = on_change

    @property
    def status(self) -> RunStatus:
        return RUN_STATUS_OF_CODE[self.state.status]

    @status.setter
    def status(self, status: RunStatus) -> None:
        """Whatever it was before: a test may reopen a run that has ended."""
        self.state.status = CODE_OF_RUN_STATUS[status]

    def become(self, status: RunStatus) -> None:
        if status is RunStatus.PENDING and self.state.pause_requested:
            status = RunStatus.PAUSED
        self.status = status
        self.notify()

    def notify(self) -> None:
        """Its status has changed."""
        self.changed.set()
        self._on_change()
        if self.status.ended:
            self.ended.set()

    @property
    def lease(self) -> int:
        return self.state.lease.counter

    @lease.setter
    def lease(self, counter: int) -> None:
        self.state.lease = Lease(counter, _NONCE)

    @property
    def seq(self) -> int:
        return self.state.seq

    @property
    def cancel_requested(self) -> bool:
        return self.state.cancel_requested_at is not None

    @cancel_requested.setter
    def cancel_requested(self, requested: bool) -> None:
        self.state.cancel_requested_at = self.created_at if requested else None
        self.state.cancel_reason = "not needed" if requested else ""

    @property
    def steps(self) -> dict[str, HistoryStep]:
        """Of the history, as they are now. To change one, change `state.steps`."""
        return {step.step_id: step.as_history() for step in self.state.steps.values() if step.kind < KindCode.INPUT}

    @property
    def history(self) -> list[HistoryStep]:
        return sorted(self.steps.values(), key=lambda step: step.begun_seq)

    @property
    def step_ids(self) -> list[str]:
        return [step.step_id for step in self.history]

    def steps_of(self, kind: KindCode) -> list[StepState]:
        return [step for step in self.state.steps.values() if step.kind == kind]

    @property
    def signal_names(self) -> dict[str, str]:
        return {step.step_id: step.name for step in self.steps_of(KindCode.SIGNAL)}

    @property
    def policies(self) -> dict[str, RetryPolicy]:
        return {step.step_id: step.retry or SERVER_DEFAULT for step in self.steps_of(KindCode.FUNCTION)}

    @property
    def signals(self) -> list[tuple[str, Payload | None]]:
        """Sent and not consumed."""
        return [(signal.name, signal.payload) for signal in self.state.signals if not signal.step_id]

    @property
    def output(self) -> Payload | None:
        step = self.state.steps.get(OUTPUT_STEP)
        return None if step is None else step.output

    @property
    def result(self) -> Any:
        assert self.output is not None, (self.status, self.error)
        return msgspec.json.decode(self.output.data)

    @property
    def error(self) -> ErrorDetail | None:
        return self.state.error

    @property
    def problem(self) -> ErrorDetail | None:
        return self.state.problem

    @property
    def due_at(self) -> int | None:
        return self.state.due_at

    @property
    def status_text(self) -> tuple[str | None, float | None]:
        return self.state.status_text, self.state.progress
