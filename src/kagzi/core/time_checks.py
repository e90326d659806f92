"""The range of points in time and of durations: what a datetime, a Timestamp on the wire and both stores can hold."""

from .errors import InvalidArgument
from .limits import DURATION_MAX_US
from .times import LAST_TIME, US_PER_S, Timestamp

_DAY_US = 86_400 * US_PER_S


def check_time(value: Timestamp | None, field: str) -> None:
    """Raises InvalidArgument for a point in time outside the years 1970..9999."""
    if value is not None and not 0 <= value <= LAST_TIME:
        raise InvalidArgument(f"{field} is outside the years 1970..9999. Give a time in between.", field=field)


def check_duration(value_us: int | None, field: str, *, least_us: int = 0) -> None:
    """Raises InvalidArgument for a duration that is negative (or less than `least_us`) or longer than a century."""
    if value_us is not None and not least_us <= value_us <= DURATION_MAX_US:
        raise InvalidArgument(
            f"{field} is {value_us} us; it must be {least_us}..{DURATION_MAX_US} us "
            f"({DURATION_MAX_US // _DAY_US} days).",
            field=field,
        )
