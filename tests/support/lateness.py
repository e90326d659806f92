"""How late everything is on this machine while a test runs: others use the processors, too. For promises in seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

SLEEP_S = 0.25


class Lateness:
    """`worst_s`: by how much the worst of many short sleeps was too long, and a process too late to be started."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    async def _measure(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begin = loop.time()
            await asyncio.sleep(SLEEP_S)
            process = await asyncio.create_subprocess_exec("true")
            await process.wait()
            self.worst_s = max(self.worst_s, loop.time() - begin - SLEEP_S)


@asynccontextmanager
async def measured_lateness() -> AsyncIterator[Lateness]:
    """Measures as long as the block lasts."""
    lateness = Lateness()
    measuring = asyncio.create_task(lateness._measure())
    try:
        yield lateness
    finally:
        measuring.cancel()
        with suppress(asyncio.CancelledError):
            await measuring
