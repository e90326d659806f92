"""Taking a run's tasks down: when it parks and is not kept, when its lease is lost, when the worker stops, when it has ended."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.errors import InternalError, InvalidArgument, KagziError, ResourceExhausted
from ...v1 import common_pb2 as common
from ..worker.log_context import fields_of, name_of
from ..worker.ports import Answer
from .idle.await_graph import foreign_tasks
from .state import State
from .suspension import Suspended

if TYPE_CHECKING:
    from .run_execution import Run

logger = logging.getLogger("kagzi.worker")

GRACE_S = 5.0
_FIRST_LOOK_S = 0.1


class Unwinding:
    """Raises Suspended in every ctx call that waits, cancels every other task, and does `after` when all have ended.

    Code that will not end is left behind after a grace: it cannot record anything any more.
    """

    def __init__(self, run: "Run", after: Callable[[], None]) -> None:
        self._run = run
        self._after = after
        self._finished = False
        self._keeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        run = self._run
        outside = foreign_tasks(run.tasks, (), run.open)
        for task in run.tasks:
            task.add_done_callback(_look_at)
        for future in list(run.open):
            if not future.done():
                future.set_exception(Suspended())
                future.exception()  # looked at: its task may have been cancelled, and nobody else would
        current = asyncio.current_task()
        for task in outside:
            if task is not current:
                task.cancel()
        self._keeper = run.loop.create_task(self._end(set(run.tasks)), name=f"kagzi-unwind-{run.run_id}")

    def then(self, after: Callable[[], None]) -> None:
        """Do this when all have ended, instead of what was planned; at once if they have."""
        self._after = after
        if self._finished:
            after()

    async def _end(self, tasks: "set[asyncio.Future[Any]]") -> None:
        left = await stop(tasks, first_look_s=_FIRST_LOOK_S)
        for task in left:
            logger.error(
                "run %s: %r does not end although it was cancelled. It cannot record anything; it should let CancelledError pass.",
                self._run.run_id,
                task,
            )
        self._finished = True
        self._after()


def _look_at(task: "asyncio.Future[Any]") -> None:
    """It ended because it had to: nobody else will ask how, and the loop must not complain of that."""
    if not task.cancelled():
        task.exception()


async def stop(tasks: "set[asyncio.Future[Any]]", *, first_look_s: float = 0.0) -> "set[asyncio.Future[Any]]":
    """Wait for the tasks to end, cancelling those that do not do so by themselves. Returns those that will not."""
    if tasks and first_look_s:
        _, pending = await asyncio.wait(tasks, timeout=first_look_s)
    else:
        pending = tasks
    deadline = asyncio.get_running_loop().time() + GRACE_S
    while pending and asyncio.get_running_loop().time() < deadline:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=GRACE_S / 10)
    for task in tasks - pending:
        _look_at(task)
    return pending


def send_release(run: "Run", reason: str) -> None:
    run.port.send(partial(_released, run)).release.reason = reason


def hand_back(run: "Run", reason: str) -> None:
    """The server could not record something, which is no fault of the run: give it back, so that it is tried again. Also if its
    end could not be recorded."""
    logger.error(
        "%s is handed back, since the server could not record what it does: %s",
        name_of(run),
        reason,
        extra=fields_of(run),
    )
    if run.state is State.ENDED:
        send_release(run, reason)
    else:
        run.release(reason)


def rewind(run: "Run") -> Suspended:
    """The code asked for the time of a result that is still on its way: hand the run back; the next claim replays it. Runs of this
    workflow do not run ahead again. To be raised."""
    run.workflow.runs_ahead = False
    run.unwind(partial(send_release, run, "the time of the last result was needed"))
    return Suspended()


def _released(run: "Run", answer: Answer) -> None:
    if answer.detail is not None and answer.detail.WhichOneof("kind") == "refused":
        logger.warning("run %s could not be handed back: %s", run.run_id, answer.detail.refused.message)
    run.close()


def refusal(refused: common.ErrorDetail) -> KagziError:
    """What the server refused, as an error of the run."""
    if refused.code == common.ERROR_CODE_RESOURCE_EXHAUSTED:
        return ResourceExhausted(refused.message, metadata=refused.metadata)
    if refused.code == common.ERROR_CODE_INVALID_ARGUMENT:
        return InvalidArgument(refused.message, field=refused.subject_id, metadata=refused.metadata)
    return InternalError(f"the server refused an operation: {refused.message}", metadata=refused.metadata)
