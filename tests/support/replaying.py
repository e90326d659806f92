"""A finished run, replayed on this machine: its code against its recorded steps, with nothing that could execute or
record.

    history = await history_of(run)                 # from a real server
    await check_replays(history, flows.order)       # many times, in many arrival orders

How results arrive may differ each time (in which pages, in which order within them); in which order they are delivered
is recorded.
`reorder` makes the history of another execution: one in which things that were going on at the same time ended in
another order.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from kagzi import Run, Workflow
from kagzi.core.error_details import ErrorDetail
from kagzi.core.records import ClaimedRun, HistoryPage, HistoryStep, Lease, Payload, RunRecord, StepRecord
from kagzi.core.run.outcomes import RunClosed
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.sdk.execution.ports import Answer, OnAnswer
from kagzi.sdk.worker.executor import Executor
from kagzi.sdk.worker.registry import Registry
from kagzi.v1 import worker_pb2 as pb
from kagzi.wire.common import read_error
from kagzi.wire.operations import write_answer
from kagzi.wire.tasks import write_history_step, write_task
from tests.support.timeouts import LOADED_MACHINE_S

TIMEOUT_S = LOADED_MACHINE_S
TIMES = 12
_STATUS_OF_ENDING = {
    "complete_run": RunStatus.COMPLETED,
    "fail_run": RunStatus.FAILED,
    "cancel_run": RunStatus.CANCELLED,
    "continue_as_new": RunStatus.COMPLETED,
}
_SILENT = ("set_status",)  # no result: whoever replays may say it again
_replace = msgspec.structs.replace


class History(NamedTuple):
    run: RunRecord
    steps: tuple[StepRecord, ...]


class End(NamedTuple):
    """How an execution ended. `value` is its output, as JSON, or the text of its error."""

    status: RunStatus
    value: Any


async def history_of(run: Run[Any]) -> History:
    """What the server has recorded of a run, by GetWorkflow and ListSteps."""
    backend = run._backend
    record = await backend.get(run.namespace, run_id=run.id)
    return History(record, await backend.steps(record.run))


async def check_replays(
    history: History, *workflows: Workflow[Any, Any], seed: int = 0, times: int = TIMES, reordered: bool = False
) -> None:
    """The code comes to the recorded end each time, without executing or recording anything.

    `reordered`: also if what was going on at the same time ends in other orders. Only for code that does not look at
    that.
    """
    expected = _end_of(history.run)
    registry = Registry(workflows)
    for number in range(times):
        rng = Random(seed + number)
        steps = reorder(history.steps, rng) if reordered and number else history.steps
        replayed = await replay(History(history.run, steps), registry, rng)
        assert replayed == expected, f"replay {number} came to another end"


async def replay(history: History, registry: Registry, rng: Random) -> End:
    executor = Executor(registry, kept_runs_max=0)
    port = ReplayPort(history, rng)
    try:
        executor.accept(port.task, port)
        async with asyncio.timeout(TIMEOUT_S):
            return await port.end
    finally:
        executor.release_all("the replay is over")
        async with asyncio.timeout(TIMEOUT_S):
            await executor.drained()
        executor.close()


def reorder(steps: Sequence[StepRecord], rng: Random) -> tuple[StepRecord, ...]:
    """The same results in another order: neighbours change places if the later one was begun before the earlier one
    ended."""
    results = sorted((step for step in steps if _is_movable(step)), key=lambda step: step.seq)
    seqs = [step.seq for step in results]
    for _ in range(4 * len(results)):
        place = rng.randrange(max(len(results) - 1, 1))
        pair = results[place : place + 2]
        if len(pair) == 2 and pair[1].created_at < (pair[0].finished_at or 0):
            results[place], results[place + 1] = pair[1], pair[0]
    moved = {step.step_id: seq for step, seq in zip(results, seqs, strict=True)}
    return tuple(_replace(step, seq=moved.get(step.step_id, step.seq)) for step in steps)


def _is_movable(step: StepRecord) -> bool:
    """What a race or a failure stopped depends on when that was."""
    kinds = (StepKind.FUNCTION, StepKind.CHILD, StepKind.SLEEP)
    return step.kind in kinds and step.status is StepStatus.COMPLETED and "race[" not in step.step_id


class ReplayPort:
    """Hands out the history and takes nothing but the end of the run. Implements kagzi.sdk.execution.ports.RunPort.

    No body begins without saying so: whoever executes one fails here.
    """

    def __init__(self, history: History, rng: Random) -> None:
        self.end: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._rng = rng
        recorded = [_recorded(step, number) for number, step in enumerate(history.steps, 1)]
        rng.shuffle(recorded)
        page_end = rng.randint(0, len(recorded))
        first, self._rest = recorded[:page_end], recorded[page_end:]
        self.task = write_task(_claimed(history.run, HistoryPage(tuple(first), bool(self._rest), page_end)))
        self.foreign_seq = 0
        self._closed = False

    def lease_is_over(self) -> bool:
        return False

    def ask_about_lease(self) -> Callable[[], None]:
        raise AssertionError("its lease is never over")

    def announce(self) -> pb.Operation:
        return self._operation(None)

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        return self._operation(on_answer)

    def _operation(self, on_answer: OnAnswer | None) -> pb.Operation:
        operation = pb.Operation()
        asyncio.get_running_loop().call_soon(self._left, operation, on_answer)
        return operation

    def _left(self, operation: pb.Operation, on_answer: OnAnswer | None) -> None:
        kind = operation.WhichOneof("kind")
        status = _STATUS_OF_ENDING.get(kind or "")
        if kind not in _SILENT and not self.end.done():
            if status is None:
                self.end.set_exception(AssertionError(f"a replay recorded something: {operation}"))
            else:
                self.end.set_result(End(status, _value(operation)))
        if on_answer is not None and not self._closed:
            message = write_answer(1, RunClosed(1_000_000, 0, status or RunStatus.PENDING), 0)
            on_answer(Answer(message.seq, message.at_us, message))

    async def fetch_history(self, after: int, known_seq: int = 0) -> Sequence[pb.HistoryStep]:
        for _ in range(self._rng.randrange(3)):
            await asyncio.sleep(0)
        return [write_history_step(step) for step in self._rest]

    def close(self) -> None:
        self._closed = True


def _claimed(run: RunRecord, page: HistoryPage) -> ClaimedRun:
    return ClaimedRun(
        run=run.run,
        lease=Lease(1, 1),
        worker_id="replay",
        workflow_id=run.workflow_id,
        workflow_type=run.workflow_type,
        version=run.version or "1",
        attempt=run.attempt,
        input=run.input,
        labels=run.labels,
        created_at=run.created_at,
        claimed_at=run.finished_at or 0,
        last_seq=run.last_seq,
        history=page,
        cancel_requested=run.status is RunStatus.CANCELLED,
        cancel_reason=run.cancel_reason,
        parent_run_id=run.parent_run_id,
    )


def _recorded(step: StepRecord, number: int) -> HistoryStep:
    return HistoryStep(
        step_id=step.step_id,
        kind=step.kind,
        status=step.status,
        begun_seq=number,
        attempt=step.attempt,
        seq=step.seq,
        at=step.finished_at or 0,
        output=step.output,
        error=step.error,
        retry_at=step.retry_at,
        wake_at=step.wake_at,
        child_run_id=step.child_run_id,
        details=step.details,
    )


def _end_of(run: RunRecord) -> End:
    if run.error is not None:
        return End(run.status, run.error.text)
    return End(run.status, None if run.continued_as else _plain(run.output))


def _value(operation: pb.Operation) -> Any:
    match operation.WhichOneof("kind"):
        case "complete_run":
            return _plain(Payload(operation.complete_run.output.data))
        case "fail_run":
            return _text(read_error(operation.fail_run.error))
        case "cancel_run":
            return _text(read_error(operation.cancel_run.error))
        case _:
            return None


def _text(error: ErrorDetail) -> str:
    return error.text


def _plain(payload: Payload | None) -> Any:
    return msgspec.json.decode(payload.data) if payload is not None and payload.data else None
