"""What happened in a minute."""

import msgspec

from .times import US_PER_S, Timestamp

MINUTE_US = 60 * US_PER_S


class StatsBucket(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of a type that were started or ended in the minute that begins at `minute`. How long the half and 95 of a
    hundred of those that ended took at most, from their first claim; None if none of them was ever claimed."""

    minute: Timestamp
    workflow_type: str
    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    p50_us: int | None = None
    p95_us: int | None = None


def minute_of(at: Timestamp) -> Timestamp:
    return at - at % MINUTE_US
