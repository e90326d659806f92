"""Parked runs whose coroutines are cached for a while, and how they resume.

Results that a cached coroutine knows are not sent again: if the history does not fit into the claim, the rest of it has
only the seqs of those results, enough to see whether the history is this coroutine's. Until the rest has arrived, the
run is leased like any other.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from ...core.errors import LeaseLost
from ...v1 import worker_pb2 as pb
from ..worker.log_context import name_of
from .ledger import as_claimed
from .ports import Answer, RunPort
from .run_execution import RunExecution

logger = logging.getLogger("kagzi.worker")

KEPT_RUNS_MAX = 1_000
KEPT_S = 300.0


class KeptRuns:
    """Parked runs whose coroutines are cached, by run id; their number and their time here are limited. Dropped ones
    are torn down."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, count_max: int = KEPT_RUNS_MAX, age_max_s: float = KEPT_S
    ) -> None:
        self._loop = loop
        self._count_max = count_max
        self._age_max_s = age_max_s
        self._kept: OrderedDict[str, tuple[float, RunExecution]] = OrderedDict()
        self._sweep: asyncio.TimerHandle | None = None

    def keep(self, run: RunExecution, *, wakes_in_s: float | None) -> None:
        """Cache the run if it is likely to return in time. Otherwise, or if there are too many, drop one."""
        if self._count_max == 0 or wakes_in_s is None or wakes_in_s > self._age_max_s:
            drop(run)
            return
        previous = self.take(run.run_id)
        if previous is not None:
            drop(previous)
        self._kept[run.run_id] = (self._loop.time() + self._age_max_s, run)
        if len(self._kept) > self._count_max:
            self._drop_oldest()
        self._arm()

    def take(self, run_id: str) -> RunExecution | None:
        kept = self._kept.pop(run_id, None)
        return None if kept is None else kept[1]

    def drop_all(self) -> None:
        while self._kept:
            self._drop_oldest()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def __len__(self) -> int:
        return len(self._kept)

    def _drop_oldest(self) -> None:
        drop(self._kept.popitem(last=False)[1][1])

    def _arm(self) -> None:
        if self._sweep is None and self._kept:
            oldest = next(iter(self._kept.values()))[0]
            self._sweep = self._loop.call_at(oldest, self._drop_old)

    def _drop_old(self) -> None:
        self._sweep = None
        now = self._loop.time()
        while self._kept and next(iter(self._kept.values()))[0] <= now:
            self._drop_oldest()
        self._arm()


def drop(kept: RunExecution) -> None:
    """Drop the cached coroutine of a parked run."""
    kept.tear_down(_nothing)


def _nothing() -> None: ...


def known_seq(kept: RunExecution) -> int:
    """All results up to this seq are here, or were delivered."""
    return min(kept.ledger.known_seq, kept.incoming.known_seq())


def fits(kept: RunExecution, steps: Iterable[pb.HistoryStep]) -> bool:
    """Whether the cached coroutine is where this history says the run is, and waits for no result that it is supposed
    to know."""
    known, steps = known_seq(kept), list(steps)
    return kept.ledger.fits(steps) and not any(
        0 < step.seq <= known and step.step_id in kept.waits.by_id for step in steps
    )


class Resumption:
    """Implements ports.Execution until the history has arrived. Then `resume` returns the run that continues (the
    cached one, or a new one if the history differs), which receives the requests made here."""

    def __init__(
        self,
        kept: RunExecution,
        task: pb.Task,
        port: RunPort,
        *,
        resume: "Callable[[Sequence[pb.HistoryStep], float], RunExecution]",
        closed: "Callable[[Resumption], None]",
    ) -> None:
        self._kept = kept
        self._task = task
        self._port = port
        self._resume = resume
        self._closed = closed
        self._accepted_at = kept.claim.timers.time()
        self._run: RunExecution | None = None  # the run that continues
        self._requests: list[Callable[[RunExecution], None]] = []  # requests that arrived before it was known
        self._fetching: asyncio.Task[None] | None = None
        self._leaving = False

    def start(self) -> None:
        self._fetching = self._kept.claim.loop.create_task(self._fetch(), name=f"kagzi-resume-{self._task.run_id}")

    async def _fetch(self) -> None:
        try:
            rest = await self._port.fetch_history(self._task.history.next_after, known_seq(self._kept))
        except LeaseLost as error:
            self.abandon(str(error))
        except Exception as error:  # noqa: BLE001  after any error the run must leave this worker
            logger.warning("run %s: the rest of its history could not be read: %s", self._task.run_id, error)
            self.release("the history could not be read")
        else:
            if not self._leaving:
                self._continue(rest)

    def _continue(self, rest: Sequence[pb.HistoryStep]) -> None:
        if as_claimed(rest, self._task.last_seq):
            self.results_available()
        run = self._run = self._resume([*self._task.history.steps, *rest], self._accepted_at)
        self._closed(self)
        for request in self._requests:
            request(run)

    def _pass_on(self, request: "Callable[[RunExecution], None]") -> None:
        if self._run is not None:
            request(self._run)
        else:
            self._requests.append(request)

    def cancel(self, reason: str) -> None:
        self._pass_on(lambda run: run.cancel(reason))

    def pause(self, reason: str) -> None:
        self._pass_on(lambda run: run.pause(reason))

    def results_available(self) -> None:
        self._pass_on(RunExecution.results_available)

    def abandon(self, reason: str) -> None:
        if self._run is not None:
            self._run.abandon(reason)
            return
        logger.warning("%s is abandoned: %s", name_of(self._task), reason or "its lease was lost")
        self._leave()
        self._end()

    def release(self, reason: str) -> None:
        """Drop the coroutine, and hand the run back."""
        if self._run is not None:
            self._run.release(reason)
        elif not self._leaving:
            self._leave()
            self._port.send(self._released).release.reason = reason

    def server_failed(self, reason: str) -> None:
        if self._run is not None:
            self._run.server_failed(reason)
        else:
            self.release(reason)

    def _leave(self) -> None:
        self._leaving = True
        drop(self._kept)
        if self._fetching is not None and self._fetching is not asyncio.current_task():
            self._fetching.cancel()

    def _released(self, answer: Answer) -> None:
        refusal = answer.refusal
        if refusal is not None:
            logger.warning("run %s could not be handed back: %s", self._task.run_id, refusal.message)
        self._end()

    def _end(self) -> None:
        self._port.close()
        self._closed(self)
