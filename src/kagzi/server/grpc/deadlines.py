"""How long a call that waits may wait: until the server stops, and not beyond the caller's own deadline."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...core import limits

Result = TypeVar("Result")

# Kept of a caller's deadline for the way back: an answer that comes late is an answer lost, and with a poll, a claimed
# run.
MARGIN_MS = 500


class Deadlines:
    """End with the server: polls that are open then answer with what there is, and streams say goodbye."""

    def __init__(self) -> None:
        self._over = asyncio.Event()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def end(self) -> None:
        self._over.set()

    async def ended(self) -> None:
        await self._over.wait()

    async def poll(self, ask: Callable[[int], Awaitable[Result]], *, wait_ms: int, remaining_s: float | None) -> Result:
        """`ask(wait_ms)`, asked to wait less if the caller will; when the server stops it is asked again, to answer at
        once. A wait that is out of range is passed on as it is, to be refused."""
        if remaining_s is not None and 0 <= wait_ms <= limits.POLL_WAIT_MS:
            wait_ms = max(min(wait_ms, int(remaining_s * 1_000) - MARGIN_MS), 0)
        if wait_ms == 0 or self.over:
            return await ask(0)
        asking = asyncio.ensure_future(ask(wait_ms))
        ending = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            asking.cancel()  # does nothing to one that is done
        await asyncio.wait({asking})
        return await ask(0) if asking.cancelled() else asking.result()
