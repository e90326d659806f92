"""Durations as people write them: "30s", "5m 30s", "1 day", "2 weeks". A bare number is refused: it has no unit.

Also the range of durations and points in time: what a datetime, a Timestamp on the wire and both stores can hold.
"""

import re
from datetime import timedelta
from decimal import Decimal
from typing import TypeAlias

from .errors import InvalidArgument
from .limits import DURATION_MAX_US
from .public import exported
from .times import LAST_TIME, US_PER_S, Timestamp

_DAY_US = 86_400 * US_PER_S

Duration: TypeAlias = str | timedelta
"""A span of time: text with units (`"30s"`, `"5m 30s"`, `"1 day"`), or a timedelta. See `parse_duration`."""

_UNIT_US: dict[str, Decimal | int] = {}
for _microseconds, _names in (
    (Decimal("0.001"), "ns nsec nanos nanosecond nanoseconds"),
    (1, "us usec usecs µs microsecond microseconds"),
    (1_000, "ms msec msecs millis millisecond milliseconds"),
    (1_000_000, "s sec secs second seconds"),
    (60_000_000, "m min mins minute minutes"),
    (3_600_000_000, "h hr hrs hour hours"),
    (86_400_000_000, "d day days"),
    (604_800_000_000, "w wk wks week weeks"),
    (2_630_016_000_000, "M month months"),  # 30.44 days
    (31_557_600_000_000, "y yr yrs year years"),  # 365.25 days
):
    for _name in _names.split():
        _UNIT_US[_name] = _microseconds

_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ]+)\s*,?")
_BARE_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?\s*")
_MAX_US = 100 * 366 * 86_400_000_000


@exported
def parse_duration(value: Duration, *, what: str = "duration") -> timedelta:
    """Read a duration: `"30s"`, `"5m 30s"`, `"1 day"` or a timedelta. A bare number is refused: it has no unit.

    Args:
        value: Zero to 100 years, in ns, us, ms, s, m, h, d, w, month (30.44 days) or year (365.25 days). Fractions of a
            microsecond round up, so that nothing becomes zero by accident.
        what: What the value is called in the error.

    Raises InvalidArgument, naming `what`, the value and the remedy.
    """
    if isinstance(value, timedelta):
        return _within_limits(value // timedelta(microseconds=1), value, what)
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise InvalidArgument(f'{what}={value!r} has no unit. Write "{value}s".', field=what)
        raise InvalidArgument(
            f'{what}={value!r} is not a duration. Write a string such as "30s", or a timedelta.', field=what
        )
    if _BARE_NUMBER.fullmatch(value):
        raise InvalidArgument(f'{what}={value!r} has no unit. Write "{value.strip()}s".', field=what)
    total = Decimal(0)
    position = 0
    while position < len(value):
        part = _PART.match(value, position)
        if part is None:
            break
        number, unit = part.groups()
        scale = _UNIT_US.get(unit) or _UNIT_US.get(unit.lower())
        if scale is None:
            raise InvalidArgument(
                f'{what}={value!r}: unknown unit {unit!r}. Use us, ms, s, m, h, d or w, as in "5m 30s".', field=what
            )
        total += Decimal(number) * scale
        position = part.end()
    if position == 0 or value[position:].strip():
        raise InvalidArgument(
            f'{what}={value!r} is not a duration. Write for example "30s", "5m 30s" or "1 day".', field=what
        )
    return _within_limits(int(total.to_integral_value(rounding="ROUND_CEILING")), value, what)


def format_duration(duration: timedelta) -> str:
    """The shortest exact form: `5m 30s`, `1d`, `250ms`."""
    rest = duration // timedelta(microseconds=1)
    if rest == 0:
        return "0s"
    parts: list[str] = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, int(_UNIT_US[unit]))
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts)


def _within_limits(microseconds: int, value: Duration, what: str) -> timedelta:
    if microseconds < 0:
        raise InvalidArgument(f"{what}={value!r} is negative. Give a duration of zero or more.", field=what)
    if microseconds > _MAX_US:
        raise InvalidArgument(f"{what}={value!r} is over the limit of 100 years.", field=what)
    return timedelta(microseconds=microseconds)


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
