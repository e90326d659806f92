"""A steady load: so many starts a second, whatever becomes of them, each waited for by the client that started it."""

import asyncio
import time
from typing import NamedTuple

from kagzi import Kagzi, KagziError
from kagzi.sdk.workflow.workflow import Workflow

RESULT_TIMEOUT = "60s"


class Done(NamedTuple):
    """One run as its client saw it; times are `time.monotonic()`."""

    requested_at: float
    started_at: float
    ended_at: float
    run_id: str


class Load:
    """`errors` are what the client was told instead of a result, in words."""

    def __init__(self, client: Kagzi, flow: Workflow, argument: object, *, expected: object) -> None:
        self._client = client
        self._flow = flow
        self._argument = argument
        self._expected = expected
        self.done: list[Done] = []
        self.errors: list[str] = []

    async def run(self, per_second: float, seconds: float) -> None:
        """Returns when the last one has ended."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as callers:
            for count in range(int(per_second * seconds)):
                due = began + count / per_second
                if (rest := due - time.monotonic()) > 0:
                    await asyncio.sleep(rest)
                callers.create_task(self._one())

    async def _one(self) -> None:
        requested_at = time.monotonic()
        run_id = "not started"
        try:
            run = await self._client.start(self._flow, self._argument)
            run_id, started_at = run.id, time.monotonic()
            result = await run.result(timeout=RESULT_TIMEOUT)
        except (KagziError, TimeoutError) as error:
            self.errors.append(f"{run_id}: {type(error).__name__}: {error}")
            return
        if result != self._expected:
            self.errors.append(f"{run_id}: answered {result!r}")
        self.done.append(Done(requested_at, started_at, time.monotonic(), run_id))
