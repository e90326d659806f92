"""How large messages of a worker go onto its stream: in parts, so that on a slow line heartbeats, and the operations of
other runs, go between them.

A part is as large as what the line carries in about half a second: on a fast one, parts cost nothing that matters.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ....core import limits
from ...transport.calls import write
from ..outbox import AT_ONCE_BYTES, Outbox, field

PART_TAG = b"\x32"
LAST_PART = b"\x38\x01"  # is_last_part: true

LEAST_BYTES = 16 * limits.KIB
FIRST_BYTES = 64 * limits.KIB
QUICK_S = 0.25
SLOW_S = 1.0


class Writing:
    """Writes to the streams of one session, one after the other. `due`: messages with what is due, but large
    operations; `beside`: a heartbeat, if one is due; `is_over`: whether nothing more may be written to the stream."""

    def __init__(
        self,
        outbox: Outbox,
        due: Callable[[], Iterable[bytes]],
        beside: Callable[[], bytes],
        is_over: Callable[[], bool],
    ) -> None:
        self._outbox = outbox
        self._due = due
        self._beside = beside
        self._is_over = is_over
        self._part_bytes = FIRST_BYTES
        self.sends_parts = False
        """Whether the server can read them."""

    async def again(self, call: Any, data: bytes) -> None:
        """Write a message that an earlier stream may not have delivered. Only heartbeats go between its parts: what
        the runs send is later than it."""
        self._outbox.large_written()
        await self._write(call, data, self._heartbeat)

    async def large(self, call: Any) -> None:
        """Write one large message, and what is due meanwhile."""
        await self._write(call, self._outbox.take_large(), self._due)
        self._outbox.large_written()

    def _heartbeat(self) -> Iterator[bytes]:
        if beside := self._beside():
            yield beside

    async def _write(self, call: Any, data: bytes, between: Callable[[], Iterable[bytes]]) -> None:
        if not self.sends_parts or len(data) <= self._part_bytes:
            await write(call, data)
            return
        start = 0
        while start < len(data) and not self._is_over():
            part = field(PART_TAG, data[start : start + self._part_bytes])
            start += self._part_bytes
            await self._timed(call, part if start < len(data) else part + LAST_PART)
            for other in between():
                await write(call, other)

    async def _timed(self, call: Any, part: bytes) -> None:
        time = asyncio.get_running_loop().time
        began_at = time()
        await write(call, part)
        seconds = time() - began_at
        if seconds > SLOW_S:
            self._part_bytes = max(self._part_bytes // 2, LEAST_BYTES)
        elif seconds < QUICK_S:
            self._part_bytes = min(self._part_bytes * 2, AT_ONCE_BYTES)
        self._outbox.at_once_bytes = self._part_bytes
