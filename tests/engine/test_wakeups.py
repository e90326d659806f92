"""How often other servers are notified: at once, and in batches when there is much to send."""

import asyncio
import time
from collections.abc import Callable

from kagzi.engine.commit.wakeups import SPACING_S, Wakeups
from kagzi.store.protocol import TypeKey, Wake
from tests.support.polling import until

TURNS = 300  # of the loop: many more than one message takes


class RecordingBus:
    """A bus that keeps what was published."""

    def __init__(self) -> None:
        self.wakes: list[Wake] = []

    async def open(self, on_wake: Callable[[Wake], None]) -> None: ...

    async def publish(self, wake: Wake) -> None:
        self.wakes.append(wake)

    async def close(self) -> None: ...


async def test_one_wake_up_is_sent_at_once_and_many_in_batches() -> None:
    bus = RecordingBus()
    wakeups = Wakeups(bus)
    began = time.monotonic()
    running = asyncio.create_task(wakeups.run())
    for turn in range(TURNS):
        wakeups.pending(TypeKey("n", f"t{turn}"))
        await asyncio.sleep(0)
    took_s = time.monotonic() - began
    assert 1 <= len(bus.wakes) <= 2 + took_s / SPACING_S
    await until(lambda: sum(len(wake.pending) for wake in bus.wakes) == TURNS, what="nothing is forgotten")
    running.cancel()
