"""Large operations get a third of a journal's time while small ones come, too: a batch of them takes long, and whoever
waits for the answer to one small operation before it sends the next would get on by one for each."""

import asyncio
from collections.abc import Callable, Sequence

from ...core import limits

_LATELY_S = 1.0  # small operations that were written that long ago do not count
_LONGEST_REST_S = 1.0
_REST = 2  # times as long as the large batch took


class Turns:
    """After a batch with large operations the next one may come when twice the time has passed that that one took."""

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
        """A batch of operations of these sizes. `now`: by the clock of the loop."""
        self._took_s = took_s
        if min(sizes) <= limits.PAYLOAD_WARN_BYTES:
            self._small_at = now
        if max(sizes) > limits.PAYLOAD_WARN_BYTES:
            self.was_large()

    def was_large(self) -> None:
        """Of the last batch: its operations, or their answers."""
        now = asyncio.get_running_loop().time()
        if now - self._small_at < _LATELY_S:
            self._large_at = now + min(_REST * self._took_s, _LONGEST_REST_S)

    def stop(self) -> None:
        """Nothing waits any more."""
        self._stopped = True
