"""A run comes back to the worker that keeps its coroutine, and its history does not fit into the claim.

What the coroutine knows is not sent again: of those results the rest of the history has only the numbers, enough to see that it is
this coroutine's history. Meanwhile the run is held like any other.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from ...core.errors import LeaseLost
from ...v1 import worker_pb2 as pb
from ..worker.log_context import name_of_task
from ..worker.ports import Answer, RunPort
from .ledger import as_claimed
from .run_execution import Run

logger = logging.getLogger("kagzi.worker")


class Resumption:
    """Implements ports.Execution until the history is here. Then `resume` says which run goes on (the kept one, or a new one if the
    history is another), and that is told what this one is told."""

    def __init__(
        self,
        kept: Run,
        task: pb.Task,
        port: RunPort,
        *,
        resume: "Callable[[Sequence[pb.HistoryStep], float], Run]",
        closed: "Callable[[Resumption], None]",
    ) -> None:
        self._kept = kept
        self._task = task
        self._port = port
        self._resume = resume
        self._closed = closed
        self._accepted_at = kept.loop.time()
        self._run: Run | None = None  # the one that goes on
        self._fetching: asyncio.Task[None] | None = None
        self._leaving = False
        self._cancelled: str | None = None
        self._paused = False
        self._news = False

    def start(self) -> None:
        self._fetching = self._kept.loop.create_task(self._fetch(), name=f"kagzi-resume-{self._task.run_id}")

    async def _fetch(self) -> None:
        known_seq = self._kept.parking.known_seq()
        try:
            rest = await self._port.fetch_history(self._task.history.next_after, known_seq)
        except LeaseLost as error:
            self.abandon(str(error))
        except Exception as error:  # noqa: BLE001  whatever it is, the run is not to stay here for ever
            logger.warning("run %s: the rest of its history could not be read: %s", self._task.run_id, error)
            self.release("the history could not be read")
        else:
            if not self._leaving:
                self._go_on(rest)

    def _go_on(self, rest: Sequence[pb.HistoryStep]) -> None:
        self._news |= as_claimed(rest, self._task.last_seq)
        run = self._run = self._resume([*self._task.history.steps, *rest], self._accepted_at)
        self._closed(self)
        if self._cancelled is not None:
            run.cancel(self._cancelled)
        if self._paused:
            run.pause("")
        if self._news:
            run.news()

    def abandon(self, reason: str) -> None:
        if self._run is not None:
            self._run.abandon(reason)
            return
        logger.warning("%s is abandoned: %s", name_of_task(self._task), reason or "its lease was lost")
        self._leave()
        self._end()

    def release(self, reason: str) -> None:
        """Let the coroutine go, and hand the run back."""
        if self._run is not None:
            self._run.release(reason)
        elif not self._leaving:
            self._leave()
            self._port.send(self._released).release.reason = reason

    def cancel(self, reason: str) -> None:
        if self._run is not None:
            self._run.cancel(reason)
        else:
            self._cancelled = self._cancelled or reason

    def pause(self, reason: str) -> None:
        if self._run is not None:
            self._run.pause(reason)
        else:
            self._paused = True

    def server_failed(self, reason: str) -> None:
        if self._run is not None:
            self._run.server_failed(reason)
        else:
            self.release(reason)

    def news(self) -> None:
        if self._run is not None:
            self._run.news()
        else:
            self._news = True

    def _leave(self) -> None:
        self._leaving = True
        drop(self._kept)
        if self._fetching is not None and self._fetching is not asyncio.current_task():
            self._fetching.cancel()

    def _released(self, answer: Answer) -> None:
        if answer.detail is not None and answer.detail.WhichOneof("kind") == "refused":
            logger.warning("run %s could not be handed back: %s", self._task.run_id, answer.detail.refused.message)
        self._end()

    def _end(self) -> None:
        self._port.close()
        self._closed(self)


def drop(kept: Run) -> None:
    """Let the coroutine of a parked run go."""
    kept.unwind(_nothing)


def _nothing() -> None: ...
