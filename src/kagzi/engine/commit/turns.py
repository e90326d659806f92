"""Limits large operations to a third of a journal's time while there are small ones: a large batch takes long, and a
caller that sends small operations one after the other would wait for one large batch for each."""

import asyncio
from collections.abc import Callable, Sequence

from ...core import limits

_LATELY_S = 1.0  # small operations that are older than this do not count
_LONGEST_REST_S = 1.0
_REST = 2  # multiples of the time that the large batch took


class Turns:
    """After a batch with large operations, the next one must wait for twice the time that it took."""

    def __init__(self) -> None:
        self._large_at = 0.0
        self._small_at = -_LATELY_S
        self._took_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def large_allowed(self) -> bool:
        return self._stopped or asyncio.get_running_loop().time() >= self._large_at

    def call_when_large_allowed(self, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._large_at, then)

    def written(self, sizes: Sequence[int], took_s: float, now: float) -> None:
        """A batch of operations of these sizes was written. `now`: by the event loop's clock."""
        self._took_s = took_s
        if min(sizes) <= limits.PAYLOAD_WARN_BYTES:
            self._small_at = now
        if max(sizes) > limits.PAYLOAD_WARN_BYTES:
            self.was_large()

    def was_large(self) -> None:
        """The operations of the last batch, or their responses, were large."""
        now = asyncio.get_running_loop().time()
        if now - self._small_at < _LATELY_S:
            self._large_at = now + min(_REST * self._took_s, _LONGEST_REST_S)

    def stop(self) -> None:
        """Large operations no longer have to wait."""
        self._stopped = True
