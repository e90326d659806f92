"""A clock that stands still until a test moves it."""

from kagzi.core.times import US_PER_MS, US_PER_S, Timestamp

# 2026-01-02T03:04:05.678901Z: not a whole second nor a whole millisecond, so that truncation shows.
BEGINNING: Timestamp = 1_767_323_045_678_901


class FakeClock:
    """A `kagzi.core.providers.Clock`. It never moves by itself."""

    def __init__(self, at: Timestamp = BEGINNING) -> None:
        self._at = at

    def now(self) -> Timestamp:
        return self._at

    def follow(self, store_now: Timestamp, sent_at: Timestamp, received_at: Timestamp) -> None:
        """Time is the test's affair: whatever the store says, this clock stays."""

    def advance(self, *, s: float = 0, ms: int = 0, us: int = 0) -> Timestamp:
        self._at += round(s * US_PER_S) + ms * US_PER_MS + us
        return self._at

    def set(self, at: Timestamp) -> Timestamp:
        self._at = at
        return at
