"""Messages gathered for a stream, and the one writer that sends whatever has come together since its last write."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

Write = Callable[[bytes], Awaitable[None]]

_WRITE_END_S = 2.0


class OutboundQueue:
    """`take` empties the box: it gives the messages to send now, serialised. `notify` says that there is something in
    it."""

    def __init__(self, take: Callable[[], Iterable[bytes]]) -> None:
        self._take = take
        self._changed = asyncio.Event()
        self._finished = False

    def notify(self) -> None:
        self._changed.set()

    def finish(self) -> None:
        """Send what is in the box, then end."""
        self._finished = True
        self._changed.set()

    async def deliver(self, write: Write) -> None:
        """Returns after `finish`, when everything was written. Raises what `write` raises."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            finished = self._finished
            for message in self._take():
                await whole(write(message))
            if finished:
                return


async def whole(writing: Awaitable[None]) -> None:
    """Await a write; if this is cancelled meanwhile, let it finish first: a call whose write was cut short cannot end
    any more. One that is done already (in process) costs no task."""
    if isinstance(writing, asyncio.Future) and writing.done():
        return
    sending = asyncio.ensure_future(writing)
    try:
        await asyncio.shield(sending)
    except asyncio.CancelledError:
        await asyncio.wait({sending}, timeout=_WRITE_END_S)
        raise
