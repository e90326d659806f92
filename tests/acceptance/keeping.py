"""A supervisor of worker processes: those that die are replaced, as long as the block lasts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from tests.support.processes import Process

LONG_S = 600.0


@asynccontextmanager
async def replaced(workers: Sequence[Process], make: Callable[[], Awaitable[Process]]) -> AsyncIterator[list[Process]]:
    """Gives the list of those who have died, which grows."""
    dead: list[Process] = []
    living = list(workers)
    coming: set[asyncio.Future[Process]] = set()

    async def keep(place: int) -> None:
        while True:
            await living[place].wait(LONG_S)
            dead.append(living[place])
            successor = asyncio.ensure_future(make())
            coming.add(successor)
            living[place] = await asyncio.shield(successor)
            coming.discard(successor)

    keepers = [asyncio.create_task(keep(place)) for place in range(len(living))]
    try:
        yield dead
    finally:
        for keeper in keepers:
            keeper.cancel()
        await asyncio.wait(keepers)
        for worker in [*living, *await asyncio.gather(*coming)]:
            worker.kill()
    for keeper in keepers:
        if not keeper.cancelled():
            keeper.result()
