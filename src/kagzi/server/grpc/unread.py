"""Counts data that workers have not read yet, with limits for each stream and for all together. While a stream is over
the limit, the server stops reading from it."""

import asyncio
from collections.abc import Callable

from ...core import limits
from ...core.budgets import ByteBudget


class Unread:
    """The unread data of all streams of a server."""

    def __init__(self, total_bytes: int = limits.UNREAD_TOTAL_BYTES) -> None:
        self.budget = ByteBudget(limits.UNREAD_SESSION_BYTES, total_bytes, limits.UNREAD_SHARE_BYTES)
        self.full: set[UnreadStream] = set()

    def recheck(self) -> None:
        """Called when data was read: streams that were blocked by the total limit may continue."""
        for stream in tuple(self.full):
            stream.recheck()


class UnreadStream:
    """Counts the unread data of one stream. Calls `on_change(full)` when it becomes full, and when it no longer is."""

    def __init__(self, unread: Unread) -> None:
        self._unread = unread
        self._bytes = 0
        self._closed = False
        self._readable = asyncio.Event()
        self._readable.set()
        self.on_change: Callable[[bool], None] = _nobody

    @property
    def is_full(self) -> bool:
        return self in self._unread.full

    def add(self, size: int) -> None:
        if self._closed:
            return
        self._bytes += size
        self._unread.budget.used_bytes += size
        if not self.is_full and self._unread.budget.is_over(self._bytes):
            self._unread.full.add(self)
            self._readable.clear()
            self.on_change(True)

    def read(self, size: int) -> None:
        """Called when this many bytes have been sent."""
        if self._closed:
            return
        self._bytes -= size
        self._unread.budget.used_bytes -= size
        if self._unread.full:
            self._unread.recheck()

    def recheck(self) -> None:
        if self.is_full and not self._unread.budget.is_over(self._bytes):
            self._unread.full.discard(self)
            self._readable.set()
            self.on_change(False)

    async def readable(self) -> None:
        """Returns when more may be read from the worker."""
        await self._readable.wait()

    def close(self) -> None:
        """The stream is over: its unread data no longer counts."""
        self.read(self._bytes)
        self._closed = True
        self._unread.full.discard(self)
        self._readable.set()


def _nobody(full: bool) -> None:
    """The default, until a listener is set."""
