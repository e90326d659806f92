"""How long a waiting call may wait: until the server stops, and not beyond the caller's own deadline."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ...core import limits

Result = TypeVar("Result")

# Reserved from the caller's deadline for sending the response: a late response is lost, and with a poll, so is a
# claimed run.
MARGIN_MS = 500


class Deadlines:
    """End when the server stops: open polls then return what they have, and streams end with a notice."""

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
        """Calls `ask(wait_ms)`, with a shorter wait if the caller's deadline is earlier. When the server stops, asks
        again without a wait. A wait that is out of range is passed on unchanged, to be refused."""
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
            asking.cancel()  # no effect if it is done
        await asyncio.wait({asking})
        return await ask(0) if asking.cancelled() else asking.result()
