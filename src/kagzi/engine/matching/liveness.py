"""When a worker counts as alive: how often heartbeats are written, and how old the last one may be."""

from ...core.limits import Settings
from ...core.times import US_PER_MS, Timestamp

_LATEST_POLL = 1.1  # in intervals: polls are jittered upwards
_ALONE_REFRESH_POLLS = 2.4  # a single server writes heartbeats with an extra statement, so most polls write none
_SLACK_MS = 1_000


class Liveness:
    """Workers send heartbeats; the next poll of their server writes them. A worker that was not written for a lease, or
    for the longest time that this can take, is offline. `alone`: this is the only server on the store."""

    def __init__(self, settings: Settings, *, alone: bool) -> None:
        poll_ms = settings.poll_interval_ms
        refresh_ms = _ALONE_REFRESH_POLLS * poll_ms if alone else 0.0
        noting_ms = (2 if alone else 1) * _LATEST_POLL * poll_ms
        written_after_ms = refresh_ms + settings.heartbeat_ms + noting_ms + _SLACK_MS
        self.refresh_s = refresh_ms / 1_000
        self.lease_s = settings.lease_ms / 1_000
        self._silence_us = int(max(settings.lease_ms, written_after_ms) * US_PER_MS)

    def alive_since(self, now: Timestamp) -> Timestamp:
        """A worker that has not reported since then is offline."""
        return now - self._silence_us
