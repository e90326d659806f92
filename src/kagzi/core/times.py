"""Points in time are integers: microseconds since 1970 UTC. Both stores keep them, and cursors are exact."""

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Timestamp: TypeAlias = int
"""Microseconds since 1970-01-01 UTC."""

US_PER_MS = 1_000
US_PER_S = 1_000_000
LAST_TIME: Timestamp = 253_402_300_799_999_999
"""The last microsecond of the year 9999: the maximum of a datetime and of a Timestamp on the wire."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def from_datetime(moment: datetime, *, what: str = "datetime") -> Timestamp:
    """The timestamp of an aware datetime. A naive one is refused: its zone is unknown."""
    if moment.utcoffset() is None:  # also for a tzinfo without an offset
        from .errors import InvalidArgument  # noqa: PLC0415  errors needs times

        raise InvalidArgument(
            f"{what}={moment.isoformat()!r} has no time zone. Write datetime(..., tzinfo=UTC) or datetime.now(UTC).",
            field=what,
        )
    return (moment - _EPOCH) // _MICROSECOND


def to_datetime(at: Timestamp) -> datetime:
    return _EPOCH + timedelta(microseconds=at)


def moment_text(at: Timestamp) -> str:
    """For JSON: RFC 3339 in UTC, always with microseconds."""
    return to_datetime(at).isoformat(timespec="microseconds").replace("+00:00", "Z")


def us_from_timedelta(duration: timedelta) -> int:
    return duration // _MICROSECOND
