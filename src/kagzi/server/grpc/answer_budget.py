"""Limits the bytes of responses that a server holds at once: being read from the store, being serialised, or not yet
read by clients.

Calls whose response may be large reserve bytes before they read, and hold what they used until it has been sent. A call
that cannot reserve waits its turn, for a bounded time. No namespace can use the whole budget: clients that do not read
delay only their own namespace.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ...core import limits
from ...core.errors import ResourceExhausted, limit_reached

WAIT_S = 20.0


class Reservation:
    """The bytes that one call holds."""

    def __init__(self, answers: "Answers", namespace: str, size: int) -> None:
        self._answers = answers
        self._namespace = namespace
        self._size = size

    def use(self, size: int) -> None:
        """Reduces the reservation to this many bytes, now that the size of the response is known."""
        self._answers.change(self._namespace, size - self._size)
        self._size = size

    def release(self) -> None:
        self.use(0)


class Answers:
    """`total`: bytes of all namespaces together; `share`: of one. `kept`: a separate budget for small items that wait
    to be sent."""

    def __init__(self, total: int, share: int, kept: int = 0) -> None:
        self._total = total
        self._share = share
        self.keepable = kept
        self._used: Counter[str] = Counter()
        self._waiting: dict[asyncio.Future[None], tuple[str, int]] = {}

    @property
    def used(self) -> int:
        return self._used.total()

    @asynccontextmanager
    async def reserve(self, namespace: str, size: int = limits.ANSWER_RESERVED_BYTES) -> AsyncGenerator[Reservation]:
        """Raises ResourceExhausted if the bytes do not become available in time."""
        size = min(size, self._share)
        if self._waiting or not self._fits(namespace, size):
            await self._wait(namespace, size)
        else:
            self._used[namespace] += size
        reservation = Reservation(self, namespace, size)
        try:
            yield reservation
        finally:
            reservation.release()

    def change(self, namespace: str, by: int) -> None:
        self._used[namespace] += by
        if not self._used[namespace]:
            del self._used[namespace]
        if by < 0:
            self._let_in()

    def keep(self, size: int) -> bool:
        """Returns whether this many bytes can be kept until they are sent; if so, `release` them afterwards."""
        if size > self.keepable:
            return False
        self.keepable -= size
        return True

    def release(self, size: int) -> None:
        self.keepable += size

    def _fits(self, namespace: str, size: int) -> bool:
        return self.used + size <= self._total and self._used[namespace] + size <= self._share

    async def _wait(self, namespace: str, size: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = (namespace, size)
        self._let_in()
        try:
            async with asyncio.timeout(WAIT_S):
                await turn
        except BaseException as error:
            if self._waiting.pop(turn, None) is None:  # it was admitted at this very moment
                self.change(namespace, -size)
            if not isinstance(error, TimeoutError):
                raise
            raise ResourceExhausted(
                f"this server holds {self._used[namespace]} bytes of unread responses for namespace {namespace!r} and "
                f"{self.used} in total; the limits are {self._share} and {self._total}. "
                "Read responses as they arrive, ask for smaller pages, or try again.",
                metadata=limit_reached("answers_bytes", self._total),
            ) from None

    def _let_in(self) -> None:
        """Admits in order of arrival, except that a namespace at its share does not block others."""
        for turn, (namespace, size) in list(self._waiting.items()):
            if turn.cancelled():  # its task removes it when it runs
                continue
            if self.used + size > self._total:
                return
            if self._used[namespace] + size <= self._share:
                del self._waiting[turn]
                self._used[namespace] += size
                turn.set_result(None)
