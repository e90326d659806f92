"""Operations that wait for a read from the store. Those of one run keep their order; other runs and heartbeats do not
wait for them."""

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
from ..commit.weights import weight_bytes

logger = logging.getLogger("kagzi.engine")

Operation: TypeAlias = tuple[int, Command]


class DeferredOperations:
    """The waiting operations of one session. `resolve` reads the store; `queue` adds an operation to the journal and
    returns whether it did; `answer` receives refusals. Beyond about one batch, `drained` holds the stream back."""

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
        """By run: later operations of these runs must wait too. Read-only for others; a plain dict, as it is a hot
        path."""
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
        """Returns at once unless too much is waiting."""
        while self._bytes > BATCH_BYTES or sum(map(len, self.waiting.values())) > BATCH_OPERATIONS:
            await asyncio.wait([next(iter(self._tasks.values()))])  # cancelling this does not cancel the task

    async def _work_off(self, run_id: str) -> None:
        waiting = self.waiting[run_id]
        try:
            while waiting:
                operation_id, command = waiting[0]
                try:
                    if not await self._queue((operation_id, await self._resolve(command))):
                        return  # the session is closed: its worker repeats the operations elsewhere
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
        """Later operations must not be recorded without the first: a gap in a run's order would be worse."""
        self._answer([(operation_id, refused(problem)) for operation_id, _ in waiting])
