"""Collects messages for a stream; a single writer sends everything collected since its last write."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

Write = Callable[[bytes], Awaitable[None]]

_WRITE_END_S = 2.0


class OutboundQueue:
    """`take` empties the queue: it returns the serialised messages to send now. `notify` says that the queue is not
    empty."""

    def __init__(self, take: Callable[[], Iterable[bytes]]) -> None:
        self._take = take
        self._changed = asyncio.Event()
        self._finished = False
        self.sent = 0
        """Number of messages sent."""

    def notify(self) -> None:
        self._changed.set()

    def finish(self) -> None:
        """Send what is in the queue, then end."""
        self._finished = True
        self._changed.set()

    async def deliver(self, write: Write) -> None:
        """Returns after `finish`, when everything was written. Raises what `write` raises."""
        writes = WholeWrites(write)
        await writes.run(self._deliver(writes.write))

    async def _deliver(self, write: Write) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            finished = self._finished
            for message in self._take():
                await write(message)
                self.sent += 1
            if finished:
                return


class WholeWrites:
    """The writes of one stream, none of which is cancelled halfway: a call with a cancelled write cannot end properly.

    The writer runs in one task per stream, because a task and a shield for each write would cost more than the write.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._is_writing = False
        self._is_over = False

    async def write(self, message: bytes) -> None:
        writing = self._write(message)
        if isinstance(writing, asyncio.Future) and writing.done():  # in process
            writing.result()
            return
        self._is_writing = True
        try:
            await writing
        finally:
            self._is_writing = False
        if self._is_over:
            raise asyncio.CancelledError

    async def run(self, writer: Coroutine[Any, Any, None]) -> None:
        """Runs `writer`, which calls `write`; raises what it raises. Cancelling this cancels the writer, but only after
        a write in progress has finished."""
        task = asyncio.ensure_future(writer)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            self._is_over = True
            if not self._is_writing:
                task.cancel()
            await asyncio.wait({task}, timeout=_WRITE_END_S)
            if task.done() and not task.cancelled():
                task.exception()  # the stream is over, whatever the result of its last write
            raise
