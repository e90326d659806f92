"""A finished run, replayed on this machine with kagzi.testing: its code against its recorded steps.

    history = await history_of(run)                 # from a real server
    await check_replays(history, flows.order)       # many times, in many arrival orders

How results arrive may differ each time (in which pages, in which order within them); in which order they are delivered
is recorded.
`reorder` makes the history of another execution: one in which things that were going on at the same time ended in
another order.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from kagzi import Run, Workflow
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.core.transfers.images import StepImage
from kagzi.sdk.worker.registry import Registry
from kagzi.testing import History
from kagzi.testing.replay.observation import Observation
from kagzi.testing.replay.port import ReplayPort, Verdict
from kagzi.testing.replay.replayer import play
from kagzi.testing.replay.tasks import task_of, was_cancelled
from kagzi.v1 import worker_pb2 as pb
from tests.support.timeouts import LOADED_MACHINE_S

TIMEOUT_S = LOADED_MACHINE_S
TIMES = 12
_STATUS_OF_OUTCOME = {
    "completed": RunStatus.COMPLETED,
    "failed": RunStatus.FAILED,
    "cancelled": RunStatus.CANCELLED,
    "continued": RunStatus.COMPLETED,
}
_replace = msgspec.structs.replace


class End(NamedTuple):
    """How an execution ended. `value` is its output, as JSON, or the text of its error."""

    status: RunStatus
    value: Any


async def history_of(run: Run[Any]) -> History:
    """What the server has recorded of a run."""
    lines = [line async for line in run.export()]
    return History.read(lines, run.id, namespace=run.namespace)


async def check_replays(
    history: History, *workflows: Workflow[Any, Any], seed: int = 0, times: int = TIMES, reordered: bool = False
) -> None:
    """The code comes to the recorded end each time, without executing or recording anything.

    `reordered`: also if what was going on at the same time ends in other orders. Only for code that does not look at
    that.
    """
    expected = _end_of(history)
    registry = Registry(workflows)
    for number in range(times):
        rng = Random(seed + number)
        played = reorder(history, rng) if reordered and number else history
        replayed = await replay(played, registry, rng)
        assert replayed == expected, f"replay {number} came to another end"


async def replay(history: History, registry: Registry, rng: Random) -> End:
    port = PagedPort(task_of(history, None, cancelled=was_cancelled(history), before=None), rng)
    async with asyncio.timeout(TIMEOUT_S):
        await play(registry, port, outside_wait_s=TIMEOUT_S)
    verdict = port.verdict
    assert verdict is not None, port.release_reason
    assert verdict.outcome in _STATUS_OF_OUTCOME, verdict
    return End(_STATUS_OF_OUTCOME[verdict.outcome], _value(verdict))


class PagedPort(ReplayPort):
    """The history arrives in two pages, whose steps are in any order."""

    def __init__(self, task: pb.Task, rng: Random) -> None:
        steps = list(task.history.steps)
        rng.shuffle(steps)
        page_end = rng.randint(0, len(steps))
        first, self._rest = steps[:page_end], steps[page_end:]
        task.history.CopyFrom(pb.HistoryPage(steps=first, has_more=bool(self._rest), next_after=page_end))
        self._rng = rng
        super().__init__(task, Observation())

    async def fetch_history(self, after: int, known_seq: int = 0) -> Sequence[pb.HistoryStep]:
        for _ in range(self._rng.randrange(3)):
            await asyncio.sleep(0)
        return self._rest


def reorder(history: History, rng: Random) -> History:
    """The same results in another order: neighbours change places if the later one was begun before the earlier one
    ended."""
    results = sorted((step for step in history.step_images if _is_movable(step)), key=lambda step: step.seq)
    seqs = [step.seq for step in results]
    for _ in range(4 * len(results)):
        place = rng.randrange(max(len(results) - 1, 1))
        pair = results[place : place + 2]
        if len(pair) == 2 and pair[1].created_at < (pair[0].finished_at or 0):
            results[place], results[place + 1] = pair[1], pair[0]
    moved = {step.step_id: seq for step, seq in zip(results, seqs, strict=True)}
    steps = [_replace(step, seq=moved.get(step.step_id, step.seq)) for step in history.step_images]
    return History(history.image, steps, namespace=history.namespace)


def _is_movable(step: StepImage) -> bool:
    """What a race or a failure stopped depends on when that was."""
    kinds = (StepKind.FUNCTION, StepKind.CHILD, StepKind.SLEEP)
    return step.kind in kinds and step.status is StepStatus.COMPLETED and "race[" not in step.step_id


def _end_of(history: History) -> End:
    if history.error is not None:
        return End(history.status, history.error.text)
    return End(history.status, None if history.continued_as else history.output)


def _value(verdict: Verdict) -> Any:
    if verdict.error is not None:
        return verdict.error.text
    if verdict.outcome == "continued" or verdict.payload is None or not verdict.payload.data:
        return None
    return msgspec.json.decode(verdict.payload.data)
