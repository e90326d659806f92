"""Formats times for people in the local zone, as in logs. JSON has RFC 3339 in UTC. `TZ=UTC kagzi ...` shows UTC."""

import re
from datetime import UTC, datetime, timedelta

_UTC_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def now() -> datetime:
    from ..core.times import to_datetime
    from ..system import SystemClock

    return to_datetime(SystemClock().now())


def utc_text(at: datetime) -> str:
    """For JSON: RFC 3339 with microseconds."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def short_utc_text(at: datetime) -> str:
    """For JSON: times that are usually whole seconds, such as those of schedules."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def local_text(at: datetime | str | None) -> str:
    """`2026-11-16 09:30:05+01:00`. Empty without a time."""
    if at is None or at == "":
        return ""
    return local(at).isoformat(sep=" ", timespec="seconds")


def with_local_times(text: str) -> str:
    """Replaces the UTC times in a server's text with `local_text`."""
    return _UTC_TIME.sub(lambda time: local_text(time[0]), text)


def local(at: datetime | str) -> datetime:
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return moment.astimezone()


def age_text(then: datetime | str | None, now: datetime) -> str:
    """`5m 3s ago`, `in 2h`: the two largest units, in whole seconds."""
    if then is None:
        return ""
    gone = now - local(then)
    if gone < timedelta(0):
        return f"in {_units(round(-gone.total_seconds()))}"
    return f"{_units(int(gone.total_seconds()))} ago"


def took_text(start: datetime | str | None, end: datetime | str | None) -> str:
    return "" if start is None or end is None else span_text(local(end) - local(start))


def span_text(span: timedelta) -> str:
    """`14ms`, `1.6s`, `25s`, `5m 3s`: rounded to a readable precision."""
    milliseconds = round(span / timedelta(milliseconds=1))
    if milliseconds < 1_000:
        return f"{milliseconds}ms"
    tenths = round(span / timedelta(milliseconds=100))
    if tenths < 100:
        return f"{tenths / 10:.1f}s"
    return _units(round(span.total_seconds()))


def _units(seconds: int) -> str:
    """The two largest units, rounded: `45s`, `5m 3s`, `1h 5m`, `2d 3h`."""
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3_600:
        return _pair(seconds, 60, "m", "s")
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return _pair(minutes, 60, "h", "m")
    return _pair(round(seconds / 3_600), 24, "d", "h")


def _pair(count: int, size: int, large: str, small: str) -> str:
    whole, rest = divmod(count, size)
    return f"{whole}{large} {rest}{small}" if rest else f"{whole}{large}"
