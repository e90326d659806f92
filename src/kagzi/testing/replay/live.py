"""Continues a run beyond its history: a server for one run, in this process. As in every store, core decides what its
commands do. Its clock jumps to the next timer when the run can only wait."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import msgspec

from ...core.error_details import Child, ErrorDetail
from ...core.ids import uuid7_of
from ...core.records import Payload, RunKey
from ...core.run.children import child_error
from ...core.run.commands import StartChild
from ...core.run.decide import decide
from ...core.run.outcomes import Begun, ChildStarted, Outcome, Recorded, Refused
from ...core.run.state import Relatives, RunState
from ...core.states import CODE_OF_RUN_STATUS, RunStatus, StepCode
from ...core.times import US_PER_S, Timestamp
from ...sdk.execution.ports import Answer, Fill, OnAnswer
from ...v1 import worker_pb2 as pb
from ...wire.operations import read_operation, write_answer
from .observation import Observation
from .port import ENDINGS, ReplayPort

_replace = msgspec.structs.replace


class ChildEnd(NamedTuple):
    """How a child ended."""

    status: RunStatus
    output: Payload | None
    error: ErrorDetail | None
    at: Timestamp


RunChild = Callable[[StartChild, Timestamp], Awaitable[ChildEnd | None]]
"""Executes a child that is started at this time. Returns None if the child does not end."""


class NoJitter:
    """A `kagzi.core.providers.Rng` that makes the backoffs of equal runs equal."""

    def fraction(self) -> float:
        return 0.0


class LivePort(ReplayPort):
    """Bodies run, and their results are recorded in `state`, which is discarded."""

    def __init__(self, task: pb.Task, observation: Observation, state: RunState, run_child: RunChild) -> None:
        super().__init__(task, observation)
        self.is_live = True
        self._state = state
        self._run_child = run_child
        self._began_at = self.loop.time()
        self._queue: list[tuple[pb.Operation, OnAnswer | None]] = []
        self._children: set[asyncio.Task[None]] = set()
        self._rng = NoJitter()

    @property
    def is_busy(self) -> bool:
        return bool(self._queue or self._children) or (self.execution is not None and self.execution.runs_bodies)

    def now_us(self) -> Timestamp:
        return self.task.claimed_at_us + int((self.loop.time() - self._began_at) * US_PER_S)

    def skip(self, seconds: float) -> None:
        """Move the clock forward."""
        self.task.claimed_at_us += int(seconds * US_PER_S)

    async def end_children(self) -> None:
        for child in self._children:
            child.cancel()
        if self._children:
            await asyncio.wait(self._children)

    # --- RunPort ------------------------------------------------------------------------------------------------------

    def announce(self) -> pb.Operation:
        return self._add(None)

    def begin(self, step_id: str, fill: Fill) -> Coroutine[Any, Any, None] | None:
        self.executed.append(step_id)
        fill(self._add(None))
        return None

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        return self._add(on_answer)

    def _add(self, on_answer: OnAnswer | None) -> pb.Operation:
        """Operations take effect in order, at the end of this iteration of the event loop."""
        if not self._queue:
            self.loop.call_soon(self._apply_all)
        operation = pb.Operation()
        self._queue.append((operation, on_answer))
        return operation

    def _apply_all(self) -> None:
        queue, self._queue = self._queue, []
        for operation, on_answer in queue:
            kind = operation.WhichOneof("kind") or ""
            if on_answer is not None and (kind in ENDINGS or kind == "release"):
                self.left(operation, on_answer)
            elif kind and not self.closed.done():
                self._apply(operation, on_answer)

    def _apply(self, operation: pb.Operation, on_answer: OnAnswer | None) -> None:
        if operation.WhichOneof("kind") == "begin_step" and operation.begin_step.once:
            self.executed.append(operation.begin_step.step_id)
        self.observation.events += 1
        now, state = self.now_us(), self._state
        command = read_operation(operation, state.run, state.lease, now)
        if isinstance(command, StartChild):
            command = self._with_ids(command, now)
        state.answer_bytes = 0
        outcome: Outcome = command if isinstance(command, Refused) else decide(state, command, now, self._rng)
        if isinstance(command, StartChild) and isinstance(outcome, ChildStarted) and outcome.created:
            child = self.loop.create_task(self._follow(command, now), name=f"kagzi-replay-{outcome.child_run_id}")
            self._children.add(child)
            child.add_done_callback(self._children.discard)
        message = write_answer(1, outcome, now)
        self._acknowledge(message.seq, 2 if operation.HasField("record_step") else 1)
        if on_answer is not None:
            on_answer(Answer(message.seq, message.at_us, None if isinstance(outcome, Recorded | Begun) else message))

    def _acknowledge(self, seq: int, numbers: int) -> None:
        if seq > self.last_seq:
            if seq - numbers > self.last_seq:
                self.foreign_seq = seq - numbers
            self.last_seq = seq

    # --- children -----------------------------------------------------------------------------------------------------

    def _with_ids(self, command: StartChild, now: Timestamp) -> StartChild:
        self._state.relatives = Relatives()
        namespace = self._state.run.namespace
        run_id = uuid7_of(namespace, now, self._state.seq + 1)
        workflow_id = command.start.workflow_id or run_id
        run = RunKey(namespace, run_id)
        return _replace(command, start=_replace(command.start, run=run, request_id=run_id, workflow_id=workflow_id))

    async def _follow(self, command: StartChild, now: Timestamp) -> None:
        """Execute the child, and give its result to the step that waits for it."""
        end = await self._run_child(command, now)
        state = self._state
        step = state.steps[command.step_id]
        execution = self.execution
        if end is None or step.has_result or execution is None or self.closed.done():
            return
        self.skip(max(end.at - self.now_us(), 0) / US_PER_S)
        completed = end.status is RunStatus.COMPLETED
        step.seq = state.next_result_seq()
        step.status = StepCode.COMPLETED if completed else StepCode.FAILED
        step.finished_at, step.output = self.now_us(), end.output
        if not completed:
            start = command.start
            child = Child(start.run.run_id, start.workflow_type, start.workflow_id)
            step.error = child_error(child, CODE_OF_RUN_STATUS[end.status], end.error)
        self.observation.events += 1
        execution.results_available()
