"""How long to wait before the next try. Growing, and jittered so that a crowd does not come back in step."""

from ...core.providers import Rng

FIRST_S = 0.05
LONGEST_S = 2.0


class Backoff:
    """50 ms to 2 s, half of it up to chance."""

    def __init__(self, rng: Rng, *, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._rng = rng
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def next_s(self) -> float:
        pause = self._next_s
        self._next_s = min(pause * 2, self._longest_s)
        return pause * (0.5 + 0.5 * self._rng.fraction())

    def reset(self) -> None:
        self._next_s = self._first_s
