"""Limits concurrent scans: reads whose cost grows with the stored data (counts, lists, statistics, exports).

Scans do not use the connections of other reads. Few run at once, and fewer of one namespace. Waiting scans are served
round robin over namespaces, so a namespace that asks for many delays only itself.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ..core import limits
from ..core.errors import ResourceExhausted, limit_reached


class ScanTurns:
    """At most `at_once` scans of all namespaces together, and `per_namespace` of one."""

    def __init__(self, at_once: int, per_namespace: int = limits.SCANS_PER_NAMESPACE) -> None:
        self._free = at_once
        self._per_namespace = per_namespace
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def take(self, namespace: str) -> AsyncGenerator[None]:
        """Wait for a turn, and hold it in the block. Raises ResourceExhausted if too many of this namespace wait
        already."""
        await self.enter(namespace)
        try:
            yield
        finally:
            self.leave(namespace)

    async def enter(self, namespace: str) -> None:
        """Like `take`; the caller must call `leave` afterwards."""
        if namespace not in self._waiting and self._may_run(namespace):
            self._begin(namespace)
            return
        waiting = self._waiting.setdefault(namespace, deque())
        if len(waiting) >= limits.SCANS_WAITING:
            raise ResourceExhausted(
                f"{len(waiting)} counts, lists, statistics or exports of namespace {namespace!r} are waiting, the "
                "limit. Ask for fewer at once, or try again.",
                metadata=limit_reached("scans_waiting", limits.SCANS_WAITING),
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(namespace)  # it got its turn just before it was cancelled
            else:
                self._forget(namespace, turn)
            raise

    def leave(self, namespace: str) -> None:
        self._free += 1
        self._running[namespace] -= 1
        if not self._running[namespace]:
            del self._running[namespace]
        self._give_turns()

    def _may_run(self, namespace: str) -> bool:
        return self._free > 0 and self._running[namespace] < self._per_namespace

    def _begin(self, namespace: str) -> None:
        self._free -= 1
        self._running[namespace] += 1

    def _give_turns(self) -> None:
        for namespace in list(self._waiting):
            if not self._may_run(namespace):
                continue
            waiting = self._waiting.pop(namespace)
            turn = waiting.popleft()
            while turn.cancelled() and waiting:  # cancelled, but its task has not yet removed it
                turn = waiting.popleft()
            if waiting:
                self._waiting[namespace] = waiting  # behind the other namespaces
            if not turn.cancelled():
                self._begin(namespace)
                turn.set_result(None)

    def _forget(self, namespace: str, turn: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(namespace)
        if waiting is not None and turn in waiting:
            waiting.remove(turn)
            if not waiting:
                del self._waiting[namespace]
