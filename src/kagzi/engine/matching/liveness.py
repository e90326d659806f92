"""Who counts as being there: how often signs of life are written, and how old the last one may be."""

from ...core.limits import Settings
from ...core.times import US_PER_MS, Timestamp

_LATEST_POLL = 1.1  # of an interval: polls are jittered upwards
_ALONE_REFRESH_POLLS = 2.4  # where noting beats costs a statement of its own, most polls go without
_SLACK_MS = 1_000


class Liveness:
    """A worker is heard of with every heartbeat; the next poll of its server notes it. Who was not noted for a lease,
    or for as long as all that can take, is not there. `alone`: no other server is on this store."""

    def __init__(self, settings: Settings, *, alone: bool) -> None:
        poll_ms = settings.poll_interval_ms
        refresh_ms = _ALONE_REFRESH_POLLS * poll_ms if alone else 0.0
        noting_ms = (2 if alone else 1) * _LATEST_POLL * poll_ms
        written_after_ms = refresh_ms + settings.heartbeat_ms + noting_ms + _SLACK_MS
        self.refresh_s = refresh_ms / 1_000
        self.lease_s = settings.lease_ms / 1_000
        self._silence_us = int(max(settings.lease_ms, written_after_ms) * US_PER_MS)

    def alive_since(self, now: Timestamp) -> Timestamp:
        """Who was not heard of since then is offline."""
        return now - self._silence_us
