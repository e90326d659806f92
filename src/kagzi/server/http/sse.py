"""Server-sent events: writes a stream until it ends or its reader disconnects."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from ...core.errors import KagziError
from ...core.limits import MIB
from ..grpc.deadlines import Deadlines

HEADERS = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
IDLE_S = 15.0
"""A comment is sent after this long without an event: it keeps proxies connected and detects a dead connection."""
BEHIND_BYTES = 1 * MIB
BEHIND_S = 10.0
"""A reader that is too far behind and does not catch up within this is disconnected; it resumes from its last event."""
_RETRY = b"retry: 1000\n\n"
_COMMENT = b":\n\n"


class EventStream:
    """What a handler returns for a stream: `frames` of whole events. Readers can resume where it ended, so it may be
    ended at any time."""

    def __init__(self, frames: AsyncGenerator[bytes]) -> None:
        self.frames = frames


def event(kind: str, data: Any, *, seq: int | None = None) -> bytes:
    head = f"event: {kind}\n" if seq is None else f"id: {seq}\nevent: {kind}\n"
    return head.encode() + b"data: " + _one_line(msgspec.json.encode(data)) + b"\n\n"


def _one_line(data: bytes) -> bytes:
    """Stored JSON values may contain line breaks between their parts."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ")


class Writing:
    """One stream to one reader. `write` returns when the reader may receive more."""

    def __init__(
        self,
        write: Callable[[bytes], Awaitable[None]],
        disconnected: Callable[[], Awaitable[None]],
        problem: Callable[[Exception], bytes],
        deadlines: Deadlines,
    ) -> None:
        self._write = write
        self._disconnected = disconnected
        self._problem = problem
        self._deadlines = deadlines

    async def run(self, first: bytes, frames: AsyncGenerator[bytes]) -> None:
        """Runs until the stream ends, the reader disconnects, or the server stops. Raises TimeoutError for a reader
        that is too far behind."""
        gone = asyncio.ensure_future(self._disconnected())
        over = asyncio.ensure_future(self._deadlines.ended())
        try:
            await self._send(_RETRY + first)
            async with aclosing(frames):
                await self._send_all(frames, (gone, over))
        finally:
            gone.cancel()
            over.cancel()

    async def _send_all(self, frames: AsyncGenerator[bytes], endings: tuple[asyncio.Future[None], ...]) -> None:
        while True:
            following = asyncio.ensure_future(anext(frames, None))
            try:
                while not following.done():
                    waited: list[asyncio.Future[Any]] = [following, *endings]
                    await asyncio.wait(waited, timeout=IDLE_S, return_when=asyncio.FIRST_COMPLETED)
                    if any(ending.done() for ending in endings):
                        return
                    if not following.done():
                        await self._send(_COMMENT)
                frame = following.result()
            except KagziError as error:
                await self._send(self._problem(error))
                return
            finally:
                if not following.done():
                    following.cancel()
                    await asyncio.wait((following,))
            if frame is None:
                return
            await self._send(frame)

    async def _send(self, data: bytes) -> None:
        async with asyncio.timeout(BEHIND_S):
            await self._write(data)
