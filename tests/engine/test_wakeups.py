"""How often other servers are told: at once, and in parcels when there is much to tell."""

import asyncio
import time
from collections.abc import Callable

from kagzi.engine.commit.wakeups import SPACING_S, Wakeups
from kagzi.store.protocol import TypeKey, Wake

TURNS = 300  # of the loop: many more than one message takes


class Telling:
    """A bus that keeps what it was told."""

    def __init__(self) -> None:
        self.wakes: list[Wake] = []

    async def open(self, on_wake: Callable[[Wake], None]) -> None: ...

    async def publish(self, wake: Wake) -> None:
        self.wakes.append(wake)

    async def close(self) -> None: ...


async def test_one_wake_up_is_sent_at_once_and_many_in_batches() -> None:
    bus = Telling()
    wakeups = Wakeups(bus)
    began = time.monotonic()
    telling = asyncio.create_task(wakeups.run())
    for turn in range(TURNS):
        wakeups.pending(TypeKey("n", f"t{turn}"))
        await asyncio.sleep(0)
    took_s = time.monotonic() - began
    assert 1 <= len(bus.wakes) <= 2 + took_s / SPACING_S
    await asyncio.sleep(SPACING_S * 3)
    telling.cancel()
    assert sum(len(wake.pending) for wake in bus.wakes) == TURNS, "nothing is forgotten"
