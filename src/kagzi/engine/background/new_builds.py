"""After a deploy, runs that wait for a signal are woken once: the new code may have another timeout for the wait.

Nothing else would wake a run that waits without a timeout. It begins when all workers of a version have the same new
build, since others might take the woken runs. What has been woken is stored, so that another server can continue.
"""

import asyncio
import logging
from contextlib import suppress

from ...core.errors import KagziError
from ...core.providers import Clock
from ...core.text.plurals import counted
from ...core.workflow_types.versions import BuildReplay
from ...store.protocol import Store
from ..commit.dispatcher import Dispatcher
from ..commit.outages import backoff_s
from ..matching.liveness import Liveness

logger = logging.getLogger("kagzi.engine")

RUNS_AT_ONCE = 100
_AFTER_WOKEN_S = 1.0  # at most 100 runs a second
_BETWEEN_S = 0.005
_POLL_S = 60.0  # a worker that was lost reports nothing
_CALL_TIMEOUT_S = 30.0
_LONGEST_PAUSE_S = 30.0


class NewBuilds:
    def __init__(self, store: Store, *, clock: Clock, liveness: Liveness, dispatcher: Dispatcher) -> None:
        self._store = store
        self._clock = clock
        self._liveness = liveness
        self._dispatcher = dispatcher
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """A worker has registered or left."""
        self._changed.set()

    async def run(self) -> None:
        failures = 0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await self._changed.wait()
            self._changed.clear()
            try:
                while (replay := await self._some()) is not None:
                    failures = 0
                    await asyncio.sleep(_AFTER_WOKEN_S if replay.woken else _BETWEEN_S)
            except (KagziError, TimeoutError) as error:
                failures += 1
                logger.warning("runs could not be woken for a new build, which is tried again: %s", error)
                self._changed.set()
                await asyncio.sleep(backoff_s(failures, most_s=_LONGEST_PAUSE_S))

    async def _some(self) -> BuildReplay | None:
        now = self._clock.now()
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            alive_since = self._liveness.alive_since(now)
            replay, effects = await self._store.wake_for_new_builds(alive_since, now, RUNS_AT_ONCE)
        self._dispatcher.dispatch(effects)
        if replay is not None and replay.woken:
            logger.info(
                "woken, to take the timeouts that the new build of their workers has: %s of workflow %r, version %s",
                counted(replay.woken, "run"),
                replay.key.workflow_type,
                replay.version,
            )
        return replay
