"""Operations that wait for a look-up in the store. Those of one run keep their order; other runs and heartbeats go on
meanwhile."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeAlias

from ...core.errors import InvalidArgument, KagziError, PreconditionFailed, ServerUnavailable
from ...core.limits import BATCH_BYTES, BATCH_OPERATIONS
from ...core.run.commands import Command
from ...core.run.outcomes import Outcome
from ..checks.refusals import refused
from ..commit.write_queues import weight_bytes

logger = logging.getLogger("kagzi.engine")

Operation: TypeAlias = tuple[int, Command]


class DeferredOperations:
    """What one session has waiting. `resolve` looks up, `queue` puts one operation into the journal and answers whether
    it did; `answer` is told of refusals. At most about one batch waits: beyond that `drained` holds the stream back."""

    def __init__(
        self,
        *,
        resolve: Callable[[Command], Awaitable[Command]],
        queue: Callable[[Operation], Awaitable[bool]],
        answer: Callable[[list[tuple[int, Outcome]]], None],
        in_background: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[object]"],
    ) -> None:
        self._resolve = resolve
        self._queue = queue
        self._answer = answer
        self._in_background = in_background
        self.waiting: dict[str, deque[Operation]] = {}
        """By run: its operations have to line up here. To be read only; a plain dict, because each operation looks."""
        self._tasks: dict[str, asyncio.Task[object]] = {}
        self._bytes = 0

    def add(self, operation: Operation) -> None:
        run_id = operation[1].run.run_id
        self._bytes += weight_bytes(operation[1])
        waiting = self.waiting.get(run_id)
        if waiting is not None:
            waiting.append(operation)
            return
        self.waiting[run_id] = deque((operation,))
        self._tasks[run_id] = self._in_background(self._work_off(run_id))

    async def drained(self) -> None:
        """Returns at once unless too much waits."""
        while self._bytes > BATCH_BYTES or sum(map(len, self.waiting.values())) > BATCH_OPERATIONS:
            await asyncio.wait([next(iter(self._tasks.values()))])  # a stream that is cut meanwhile does not cut this

    async def _work_off(self, run_id: str) -> None:
        waiting = self.waiting[run_id]
        try:
            while waiting:
                operation_id, command = waiting[0]
                try:
                    if not await self._queue((operation_id, await self._resolve(command))):
                        return  # the session is over: its worker says all this again elsewhere
                except (InvalidArgument, PreconditionFailed) as error:
                    self._answer([(operation_id, refused(error))])
                except KagziError as error:
                    self._refuse_all(waiting, error)
                    return
                except Exception:
                    logger.exception("the lookup for %s of run %s failed", type(command).__name__, run_id)
                    self._refuse_all(waiting, ServerUnavailable("the lookup failed; see the server's log. Try again."))
                    return
                self._bytes -= weight_bytes(waiting.popleft()[1])
        finally:
            self._bytes -= sum(weight_bytes(command) for _, command in waiting)
            del self.waiting[run_id], self._tasks[run_id]

    def _refuse_all(self, waiting: Iterable[Operation], problem: KagziError) -> None:
        """What follows must not be recorded without the first: a hole in a run's order is worse."""
        self._answer([(operation_id, refused(problem)) for operation_id, _ in waiting])
